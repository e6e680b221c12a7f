"""How a command says that it cannot go on."""


class CommandError(Exception):
    """The message is one line for the person at the terminal: what is wrong, what to do."""
