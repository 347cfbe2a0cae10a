"""List, cancel, retry, pause and cap jobs for operators."""
