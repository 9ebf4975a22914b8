"""Labels and what is known of them: a saved model in use, the result of a run, tables in every format."""
