INSERT INTO records.user_profiles (id, full_name, date_of_birth)
VALUES ('a1000000-0000-4000-8000-000000000001', 'Ana Lima', '1980-02-29');

INSERT INTO records.shell_files (id, patient_id, raw_file, filename, mime_type)
VALUES
    ('f1000000-0000-4000-8000-000000000001', 'a1000000-0000-4000-8000-000000000001',
     'uploads/f1000000-0000-4000-8000-000000000001', 'letter.pdf', 'application/pdf'),
    ('f1000000-0000-4000-8000-000000000002', 'a1000000-0000-4000-8000-000000000001',
     'uploads/f1000000-0000-4000-8000-000000000002', 'scan.png', 'image/png');
