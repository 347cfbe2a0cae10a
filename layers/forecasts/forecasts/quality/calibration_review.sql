-- list_candidates: the next page of the candidates that wait for review, each with its tile's coefficients now
-- As text: numbers are compared as they are written.
SELECT candidate.id::text, candidate.tile_id, candidate.proposed::text, candidate.violation_reason,
    current.coefficients::text
FROM forecasts.calibration_candidates AS candidate
LEFT JOIN forecasts.calibration_coefficients AS current USING (tile_id)
WHERE candidate.reviewed_at IS NULL AND candidate.created_at <= %(now)s AND candidate.id::text > %(after)s
ORDER BY candidate.id::text
LIMIT %(page)s;

-- list_coefficients: the next page of all tiles' coefficients
SELECT tile_id, coefficients::text FROM forecasts.calibration_coefficients
WHERE tile_id > %(after)s
ORDER BY tile_id
LIMIT %(page)s;

-- list_changed: coefficients as they were when calibration was last asked for, and as they are, where the two differ
-- The last request by the clock, whichever slot it was for: otherwise several weeks' steps would add up to a leap.
-- Without tiles that had a candidate reviewed since: the person may have applied it.
SELECT current.tile_id, before.value::text, current.coefficients::text
FROM (
    SELECT requested_at, coefficients_before FROM forecasts.calibration_requests
    ORDER BY requested_at DESC
    LIMIT 1
) AS asked
CROSS JOIN LATERAL jsonb_each(asked.coefficients_before) AS before
JOIN forecasts.calibration_coefficients AS current ON current.tile_id = before.key
WHERE current.coefficients <> before.value
    AND NOT EXISTS (
        SELECT FROM forecasts.calibration_candidates AS candidate
        WHERE candidate.tile_id = current.tile_id AND candidate.reviewed_at >= asked.requested_at
    )
ORDER BY current.tile_id;
