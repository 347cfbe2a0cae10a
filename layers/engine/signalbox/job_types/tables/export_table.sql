-- escape: return one column, with an apostrophe before what a spreadsheet would read as a formula
-- format() writes a value as COPY does: a cast would strip the blanks of a char.
CASE WHEN {0} IS NOT NULL THEN regexp_replace(format('%s', {0}), '^[=+@\t\r-]', '''\&') END AS {0}
