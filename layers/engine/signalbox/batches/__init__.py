"""Work through many rows: page by page, within the task's budget and a safe share of the table."""
