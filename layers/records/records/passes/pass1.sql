-- read_profile: return the patient's name and birth date
SELECT full_name, date_of_birth FROM records.user_profiles WHERE id = %(patient)s;

-- write_entities: keep what was found, and what it cost
INSERT INTO records.pass1_entity_metrics (
    shell_file_id, processing_session_id, entities, entities_detected, model, input_tokens, output_tokens, processing_ms
)
VALUES (
    %(file)s, %(session)s, %(entities)s, %(detected)s, %(model)s, %(input_tokens)s, %(output_tokens)s, %(milliseconds)s
);

-- write_classification: keep how likely the file is another patient's
INSERT INTO records.profile_classification_audit (
    shell_file_id, patient_id, processing_session_id, contamination_risk_score, manual_review_required,
    cross_profile_risk_detected, reasons
)
VALUES (%(file)s, %(patient)s, %(session)s, %(score)s, %(needs_review)s, %(crosses)s, %(reasons)s);

-- read_result: return the counts and flags of a pass that has ended
SELECT m.entities_detected, c.contamination_risk_score, c.manual_review_required, c.cross_profile_risk_detected
FROM records.pass1_entity_metrics AS m
JOIN records.profile_classification_audit AS c USING (processing_session_id)
WHERE m.processing_session_id = %(session)s;
