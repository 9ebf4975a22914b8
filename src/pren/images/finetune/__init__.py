"""Fine-tune the last stages of a backbone on the seen classes."""
