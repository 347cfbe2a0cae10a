"""Between files in S3 and tables: what import_table and export_table are made of."""
