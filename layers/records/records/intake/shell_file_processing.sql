-- begin_session: let the file be processed by this session
UPDATE records.shell_files
SET status = 'processing', page_count = %(pages)s, ocr_spatial_data = %(key)s, processing_session_id = %(session)s, processed_at = NULL
WHERE id = %(file)s;
