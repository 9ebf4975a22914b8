"""Many fits with one purpose: choosing parameters (`tuning`) and comparing methods (`comparison`)."""
