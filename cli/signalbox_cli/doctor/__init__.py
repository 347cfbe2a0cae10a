"""The modules here make the checks of `signalbox doctor`."""
