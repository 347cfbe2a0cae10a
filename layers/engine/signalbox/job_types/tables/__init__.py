"""Implement the job types import_table and export_table: rows of a table from and to files in S3."""
