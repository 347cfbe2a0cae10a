"""The checks of `signalbox doctor`."""
