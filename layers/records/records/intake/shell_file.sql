-- find: return the file, in the order of ShellFile
SELECT id::text, patient_id::text, raw_file, mime_type, processing_session_id::text FROM records.shell_files WHERE id = %(file)s;

-- lock: lock the file, and return its session
SELECT processing_session_id::text FROM records.shell_files WHERE id = %(file)s FOR UPDATE;

-- find_pass: return the job of a pass by its key, in the order of NextJob
SELECT id::text, payload ->> 'job_lane', (payload ->> 'estimated_tokens')::integer,
    (payload #>> '{document_metadata,page_count}')::integer
FROM signalbox.jobs WHERE job_type = 'ai_processing' AND idempotency_key = %(key)s;
