"""What the command line itself refuses or reports: one line each, that says what, which and what next."""

from signalbox_laptop.errors import LaptopError


class UsageRefused(LaptopError):
    """What was typed can't be meant: exit code 2."""


class CommandFailed(LaptopError):
    """The command was understood, and could not be carried out."""


class FunctionFailed(CommandFailed):
    """A function was invoked and answered with an error, of which `kind` is the type."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
