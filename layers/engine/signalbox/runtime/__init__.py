"""What a function reads and writes around an invocation: settings, payloads, logs, metrics."""
