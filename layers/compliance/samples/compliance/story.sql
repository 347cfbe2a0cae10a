-- Each row is a line of what came of the sample data.
SELECT 'a scanned permit gives ' || (metadata ->> 'ai_extractions') || ' obligations, '
    || (SELECT count(*) FROM compliance.review_queue_items) || ' for a person to review' FROM compliance.extraction_logs
UNION ALL
SELECT count(*) || ' deadlines have passed, and people are alerted' FROM compliance.deadlines WHERE status = 'OVERDUE'
UNION ALL
SELECT 'a generator is at ' || round(max(100 * current_year_hours / annual_run_hour_limit)) || ' % of its hours'
FROM compliance.generators
UNION ALL
SELECT 'of ' || row_count || ' imported rows ' || success_count || ' are created, ' || error_count || ' are bad'
FROM compliance.excel_imports
UNION ALL
SELECT 'a pack of evidence is sent, with ' || integrity_errors_count || ' file that was altered' FROM compliance.audit_packs;
