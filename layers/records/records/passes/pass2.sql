-- read_entities: return what the first pass has found
SELECT entities FROM records.pass1_entity_metrics WHERE processing_session_id = %(session)s;

-- supersede_conditions: mark the file's conditions of other sessions as superseded
UPDATE records.patient_conditions SET superseded_at = now()
WHERE shell_file_id = %(file)s AND processing_session_id <> %(session)s AND superseded_at IS NULL;

-- supersede_medications: mark the file's medications of other sessions as superseded
UPDATE records.patient_medications SET superseded_at = now()
WHERE shell_file_id = %(file)s AND processing_session_id <> %(session)s AND superseded_at IS NULL;

-- write_conditions: write the session's conditions
INSERT INTO records.patient_conditions (
    patient_id, shell_file_id, processing_session_id, entity_no, name, code, code_system, status, onset_date, confidence
)
SELECT %(patient)s, %(file)s, %(session)s, entity_no, name, code, code_system, status, onset_date, confidence
FROM jsonb_to_recordset(%(rows)s) AS r (
    entity_no integer, name text, code text, code_system text, status text, onset_date date, confidence real
);

-- write_medications: write the session's medications
INSERT INTO records.patient_medications (
    patient_id, shell_file_id, processing_session_id, entity_no, name, dose, frequency, started_on, stopped_on, confidence
)
SELECT %(patient)s, %(file)s, %(session)s, entity_no, name, dose, frequency, started_on, stopped_on, confidence
FROM jsonb_to_recordset(%(rows)s) AS r (
    entity_no integer, name text, dose text, frequency text, started_on date, stopped_on date, confidence real
);

-- count: return how many conditions and medications the session has
SELECT (SELECT count(*) FROM records.patient_conditions WHERE processing_session_id = %(session)s),
    (SELECT count(*) FROM records.patient_medications WHERE processing_session_id = %(session)s);
