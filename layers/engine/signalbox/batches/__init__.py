"""How a task works through many rows: page by page, within its budget and a safe share of the table."""
