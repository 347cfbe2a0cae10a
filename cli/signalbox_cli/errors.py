"""Define the errors of the command line: each is one line that says what, which one, and what to do next."""

from signalbox_laptop.errors import LaptopError


class UsageRefused(LaptopError):
    """The typed command makes no sense: exit code 2."""


class CommandFailed(LaptopError):
    """The command was understood but could not be carried out."""


class FunctionFailed(CommandFailed):
    """A function was invoked and returned an error; `kind` is the error's type."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
