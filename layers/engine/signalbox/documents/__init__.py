"""Read and write documents: text from PDF and from scans, rows from spreadsheets, a model's answers, PDF reports."""
