-- find: the sources of a version, of the job's tenant if it has one; not if its package is another tenant's
SELECT tenant_id::text, rules_source, tests_source FROM passports.rule_package_versions AS version
WHERE id = %(rule_package_version_id)s
  AND (%(tenant_id)s::text IS NULL OR tenant_id::text = %(tenant_id)s)
  AND NOT EXISTS (
      SELECT FROM passports.rule_packages AS package
      WHERE package.id = version.rule_package_id AND package.tenant_id <> version.tenant_id);

-- lock: the sources and the status, which stay as they are until the run is written
SELECT rules_source, tests_source, status FROM passports.rule_package_versions
WHERE id = %(rule_package_version_id)s AND tenant_id = %(tenant_id)s
FOR UPDATE;

-- find_run: the run that a job has written, and whether it is the first one of its version to pass, which validates
SELECT status, total_cases, passed_count, failed_count, first_failure, (id::text = (
    SELECT payload ->> 'run_id' FROM passports.events
    WHERE tenant_id = %(tenant_id)s AND aggregate_type = 'RulePackageVersion'
      AND aggregate_id = %(rule_package_version_id)s
      AND event_type = 'TESTS_RUN' AND payload ->> 'status' = 'PASSED'
    ORDER BY seq LIMIT 1)) IS TRUE
FROM passports.rule_tests_runs
WHERE id = %(run_id)s AND tenant_id = %(tenant_id)s AND rule_package_version_id = %(rule_package_version_id)s;

-- add_run: the run, once for its job
INSERT INTO passports.rule_tests_runs
    (id, tenant_id, rule_package_version_id, seed, total_cases, passed_count, failed_count, status, first_failure)
VALUES (%(run_id)s, %(tenant_id)s, %(rule_package_version_id)s, %(seed)s, %(total_cases)s, %(passed_count)s,
        %(failed_count)s, %(status)s, %(first_failure)s);

-- validate: the version, which is still a draft
UPDATE passports.rule_package_versions SET status = 'VALIDATED'
WHERE id = %(rule_package_version_id)s AND tenant_id = %(tenant_id)s AND status = 'DRAFT';
