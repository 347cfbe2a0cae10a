"""The command `signalbox`."""
