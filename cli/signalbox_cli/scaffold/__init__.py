"""What `signalbox new` writes: a pack, or a task or a job type in one, from the texts in `files`."""
