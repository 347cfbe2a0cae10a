"""Define the errors of the laptop's stack: each message says what, which one, and what to do next."""


class LaptopError(Exception):
    """The person at the laptop should read this error without a traceback."""


class StackRunning(LaptopError):
    """A stack already runs in this home folder."""


class PortTaken(LaptopError):
    """Another program listens on the port that the stack was asked to use."""


class DatabaseUnfit(LaptopError):
    """The previous stack's database can't be used any more."""


class ParameterRefused(LaptopError):
    """The template does not have this parameter, or refuses its value."""


class ResourceFailed(LaptopError):
    """The stack's own function did not make a resource, such as the database's schema."""


class DeployFailed(LaptopError):
    """The template can't be deployed, or a resource of it can't be made."""
