-- serves: 2
-- The end of a transactional job goes in one message with its COMMIT: that a lease was lost has to be an error, or what
-- the job did would be committed all the same.

CREATE FUNCTION signalbox.refuse_lost_lease(job uuid) RETURNS uuid[] LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the lease on job % is another''s by now', job USING ERRCODE = 'SB001';
END $$;
