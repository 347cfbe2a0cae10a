"""What the laptop's stack raises when it can't do what it was asked: the message says what, which and what next."""


class LaptopError(Exception):
    """Anything that the person at the laptop should read, without a traceback."""


class StackRunning(LaptopError):
    """A stack already runs in this home folder."""


class PortTaken(LaptopError):
    """Another program listens on the port that the stack was asked to use."""


class DeployFailed(LaptopError):
    """The template can't be deployed, or a resource of it can't be made."""
