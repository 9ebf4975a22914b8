"""The page to settle labels in, and the service that predicts: one application on one address."""
