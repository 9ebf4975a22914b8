"""A backbone that learns the seen classes first, from its last stages on."""
