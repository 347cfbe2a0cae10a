"""Whether forecasts are as good as they should be."""
