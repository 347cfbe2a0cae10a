"""Ask a model about a file in three passes, and wait for a person where it may be another patient's."""
