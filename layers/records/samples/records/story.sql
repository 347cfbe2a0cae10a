-- Each row is a line of what came of the sample data.
SELECT 'a letter gives ' || count(DISTINCT c.id) || ' condition, ' || count(DISTINCT m.id) || ' medication and a narrative'
FROM records.patient_conditions AS c, records.patient_medications AS m
UNION ALL
SELECT count(*) || ' scan names somebody else, and waited for a doctor' FROM records.profile_classification_audit
WHERE review_decision = 'approved';
