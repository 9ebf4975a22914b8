"""How far labels can be trusted: what a model says about its own answers."""
