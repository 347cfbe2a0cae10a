-- escape: one column, with an apostrophe before what a spreadsheet would take for a formula
-- By format() a value is as COPY writes it: a cast would strip the blanks of a char.
CASE WHEN {0} IS NOT NULL THEN regexp_replace(format('%s', {0}), '^[=+@\t\r-]', '''\&') END AS {0}
