-- serves: 2
-- Where import_table makes its staging tables: the one place where the functions' role may create anything. Schemas are
-- made by the migrator's log-in, since the owner's group need not be allowed to.

RESET ROLE;
CREATE SCHEMA signalbox_staging;
