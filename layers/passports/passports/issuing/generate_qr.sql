-- lock: the version; a second job for it waits
SELECT tenant_id, status, payload_hash, proof_root_hash, receipt_hash, qr_payload
FROM passports.passport_versions
WHERE id = %(passport_version_id)s AND tenant_id::text = coalesce(%(tenant)s, tenant_id::text)
FOR UPDATE;

-- store: its QR code, which stays
UPDATE passports.passport_versions SET qr_payload = %(qr_payload)s, qr_png = %(qr_png)s
WHERE id = %(passport_version_id)s AND tenant_id = %(tenant_id)s;
