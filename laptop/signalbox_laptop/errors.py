"""What the laptop's stack raises when it can't do what it was asked: the message says what, which and what next."""


class LaptopError(Exception):
    """Anything that the person at the laptop should read, without a traceback."""


class StackRunning(LaptopError):
    """A stack already runs in this home folder."""


class PortTaken(LaptopError):
    """Another program listens on the port that the stack was asked to use."""


class DatabaseUnfit(LaptopError):
    """The database of the last time can't be used any more."""


class ParameterRefused(LaptopError):
    """A parameter that the template does not have, or a value that it does not take."""


class ResourceFailed(LaptopError):
    """The stack's own function did not make a resource, such as the database's schema."""


class DeployFailed(LaptopError):
    """The template can't be deployed, or a resource of it can't be made."""
