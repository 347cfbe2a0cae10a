"""Find upstream weather data: where it lies, under which keys, and which of it makes a run."""
