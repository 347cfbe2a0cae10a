"""Check whether forecasts are as good as they should be."""
