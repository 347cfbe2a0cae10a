-- serves: 2
-- Where import_table makes its staging tables: the one place where the functions' role may create anything.

CREATE SCHEMA signalbox_staging;
