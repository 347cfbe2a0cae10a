-- index: let the search for bad rows read only the rows that it tries
CREATE INDEX ON {table} (line);

-- analyze: give the planner statistics, or it would not use the index
ANALYZE {table};

-- find_bad_values: return the first rows with a value that its column does not take, each with the first such column
SELECT DISTINCT ON (line) line, (pg_input_error_info(value, type)).sql_error_code, name
FROM (SELECT * FROM {table} WHERE {is_bad} ORDER BY line LIMIT {most}) AS bad
CROSS JOIN LATERAL (VALUES {values}) AS v (place, name, value, type)
WHERE pg_input_is_valid(value, type) IS FALSE
ORDER BY line, place;

-- drop_bad_values: delete all of those rows
DELETE FROM {table} WHERE {is_bad};

-- create_search: create a function for this transaction, with a plan made once: its INSERT runs thousands of times
CREATE FUNCTION {function} (
    first bigint, finish bigint, most bigint, shown integer, OUT written bigint, OUT bad bigint, OUT faults jsonb
) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS {body};

-- body: insert in the order of the file, more and more rows at once, and half as many after a fault
#variable_conflict use_column
<<search>>
DECLARE
    place bigint := $1;  -- what comes before is done
    upto bigint;
    size bigint := greatest($2 - $1, 1);
    fault_before bigint := $1;  -- a bad row lies between place and this
    last_fault bigint := $1;
    count bigint;
    state text;
    broken text;
    culprit text;
BEGIN
    written := 0;
    bad := 0;
    faults := '[]';
    WHILE search.place < $2 LOOP
        search.upto := least(search.place + search.size, $2);
        BEGIN
            {insert};
            GET DIAGNOSTICS count = ROW_COUNT;
            written := written + search.count;
            search.place := search.upto;
            search.size := CASE
                WHEN search.place < search.fault_before THEN greatest((search.fault_before - search.place) / 2, 1)
                ELSE search.size * 2
            END;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR raise_exception OR program_limit_exceeded THEN
            IF search.upto > search.place + 1 THEN
                search.fault_before := search.upto;
                search.size := (search.upto - search.place) / 2;
            ELSE
                GET STACKED DIAGNOSTICS
                    state = RETURNED_SQLSTATE, broken = CONSTRAINT_NAME, culprit = COLUMN_NAME;
                bad := bad + 1;
                IF bad <= $4 THEN
                    faults := faults || jsonb_build_array(jsonb_build_array(
                        search.place, search.state, coalesce(nullif(search.broken, ''), nullif(search.culprit, ''))
                    ));
                END IF;
                EXIT WHEN bad > $3;
                search.place := search.upto;
                -- The next one is likely to be as far away as this one was.
                search.size := greatest(search.place - search.last_fault, 1);
                search.last_fault := search.place;
            END IF;
        END;
    END LOOP;
END

-- search: return how many rows were written, how many are bad, and the first bad ones
SELECT written, bad, faults FROM {function} ({first}, {finish}, {most}, {shown});

-- drop_search: drop the function after its last use in the transaction
DROP FUNCTION {function};
