"""The one exception that means "the user can fix this"."""


class PrenError(Exception):
    """Something a user can cause and can mend.

    The message says what is wrong, where, and what to do about it. The command line prints it and exits with 2;
    anything else that escapes is a defect of ours.
    """
