"""What operators do with jobs: list, cancel, retry, pause and cap them."""
