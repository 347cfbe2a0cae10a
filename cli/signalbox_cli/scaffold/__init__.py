"""Write a pack, or a task or a job type in one, from the texts in `files`, as `signalbox new` does."""
