-- find_narrative: return the session's narrative
SELECT id::text FROM records.clinical_narratives WHERE processing_session_id = %(session)s;

-- read_rows: return the session's conditions and medications, as the model reads them
SELECT 'condition', jsonb_build_object(
    'id', id, 'name', name, 'code', code, 'code_system', code_system, 'status', status, 'onset_date', onset_date
)
FROM records.patient_conditions WHERE processing_session_id = %(session)s
UNION ALL
SELECT 'medication', jsonb_build_object(
    'id', id, 'name', name, 'dose', dose, 'frequency', frequency, 'started_on', started_on, 'stopped_on', stopped_on
)
FROM records.patient_medications WHERE processing_session_id = %(session)s;

-- find_named: return the narrative to supersede, if it is the patient's
SELECT FROM records.clinical_narratives WHERE id = %(narrative)s AND patient_id = %(patient)s;

-- supersede: mark the file's narratives of other sessions, and the one that is named, as superseded
UPDATE records.clinical_narratives SET superseded_at = now()
WHERE superseded_at IS NULL AND (
    (shell_file_id = %(file)s AND processing_session_id <> %(session)s) OR id = %(superseded)s
);

-- write_narrative: write the session's narrative
INSERT INTO records.clinical_narratives (patient_id, shell_file_id, processing_session_id, narrative, sources, model)
VALUES (%(patient)s, %(file)s, %(session)s, %(narrative)s, %(sources)s, %(model)s)
RETURNING id::text;

-- complete_file: say that the file is processed
UPDATE records.shell_files SET status = 'completed', processed_at = now() WHERE id = %(file)s;
