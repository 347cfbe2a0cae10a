-- lock_passport: the passport with its product; a second compile of it waits, so that each gets a version of its own
SELECT passport.tenant_id, product.sku, product.attributes::text
FROM passports.passports AS passport
JOIN passports.battery_products AS product
    ON product.id = passport.battery_product_id AND product.tenant_id = passport.tenant_id
WHERE passport.id = %(passport_id)s AND passport.tenant_id::text = coalesce(%(tenant)s, passport.tenant_id::text)
FOR UPDATE OF passport;

-- find_snapshot: its status
SELECT status FROM passports.data_snapshots WHERE id = %(snapshot_id)s AND tenant_id = %(tenant_id)s;

-- find_rules: their status and source
SELECT status, rules_source FROM passports.rule_package_versions
WHERE id = %(rule_package_version_id)s AND tenant_id = %(tenant_id)s;

-- list_facts: the snapshot's facts; those that are missing or another tenant's are null
-- The payload is read for one comparison with its canonical bytes, and for nothing else.
SELECT fact.fact_type, fact.fact_key, fact.schema_version, fact.payload::text, fact.payload_canonical, fact.payload_hash
FROM passports.data_snapshot_items AS item
LEFT JOIN passports.facts AS fact
    ON fact.id = item.fact_id AND fact.tenant_id = %(tenant_id)s AND item.tenant_id = %(tenant_id)s
WHERE item.snapshot_id = %(snapshot_id)s;

-- store: the next version of the passport
INSERT INTO passports.passport_versions
    (tenant_id, passport_id, version, snapshot_id, rule_package_version_id, payload_canonical, payload_hash,
     proof_canonical, proof_root_hash, receipt_canonical, receipt_hash, compiler_build_id, issued_at)
SELECT %(tenant_id)s, %(passport_id)s, coalesce(max(version), 0) + 1, %(snapshot_id)s, %(rule_package_version_id)s,
    %(payload)s, %(payload_hash)s, %(proof)s, %(proof_root_hash)s, %(receipt)s, %(receipt_hash)s, %(build_id)s,
    %(issued_at)s
FROM passports.passport_versions WHERE passport_id = %(passport_id)s AND tenant_id = %(tenant_id)s
RETURNING id::text, version;
