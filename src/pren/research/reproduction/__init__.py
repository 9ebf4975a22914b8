"""The paper's tables and figures as commands: what it printed, and beside it what comes out here."""
