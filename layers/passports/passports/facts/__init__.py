"""Read documents, and keep their facts."""
