-- read_columns: return a table's columns in order, each with its type and its place in the primary key
SELECT a.attname, format_type(a.atttypid, -1), coalesce(array_position(k.indkey::smallint[], a.attnum), -1)
FROM pg_attribute AS a
JOIN pg_class AS c ON c.oid = a.attrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_index AS k ON k.indrelid = c.oid AND k.indisprimary
WHERE n.nspname = %(schema)s AND c.relname = %(name)s AND c.relkind = ANY (%(kinds)s)
    AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum;

-- find_private: return why a schema is private, if it is
SELECT reason FROM signalbox.private_schemas WHERE name = %(schema)s;

-- prepare: for this transaction, fix the format of values, and limit statements to the job's time
SELECT set_config('timezone', 'UTC', true), set_config('datestyle', 'ISO, YMD', true),
    set_config('intervalstyle', 'iso_8601', true), set_config('bytea_output', 'hex', true),
    set_config('extra_float_digits', '1', true), set_config('statement_timeout', %(milliseconds)s, true);
