-- Each row is a line of what came of the sample data.
SELECT count(*) || ' passport is signed, with a QR code and ' || (SELECT count(*) FROM passports.passport_exports) || ' exports'
FROM passports.passport_versions WHERE status = 'SIGNED' AND qr_png IS NOT NULL
UNION ALL
SELECT count(*) || ' events are in ' || count(DISTINCT aggregate_id) || ' chains of hashes' FROM passports.events;
