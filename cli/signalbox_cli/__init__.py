"""Define the command `signalbox`."""
