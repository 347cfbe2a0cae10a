"""Read and write what a function needs around an invocation: settings, payloads, logs, metrics."""
