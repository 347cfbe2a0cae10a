-- list_stale: list organisations to compare, the longest neglected first
-- Those without a customer only while they are active: otherwise they need none. The order is that of the index
-- organizations_billing_stale, so that the limit ends the reading.
SELECT id, name, plan, subscription_status, stripe_customer_id, payment_failed_at
FROM forecasts.organizations
WHERE deleted_at IS NULL
    AND CASE
        WHEN stripe_customer_id IS NULL THEN status = 'active'
        -- At the limit counts as stale: a daily run comes at the same second each day.
        ELSE last_billing_sync_at IS NULL OR last_billing_sync_at <= %(before)s
    END
ORDER BY greatest(last_billing_sync_at, billing_sync_failed_at) NULLS FIRST, id
LIMIT %(limit)s;

-- adopt_customer: note the customer made at Stripe, unless one has been noted meanwhile
WITH adopted AS (
    UPDATE forecasts.organizations SET stripe_customer_id = %(customer)s
    WHERE id = %(id)s AND stripe_customer_id IS NULL AND deleted_at IS NULL
    RETURNING id
)
INSERT INTO forecasts.audit_logs (organization_id, actor, action, entity_type, entity_id, detail, created_at)
SELECT id, %(actor)s, 'customer.created', 'organization', id, jsonb_build_object('customer', %(customer)s::text), %(now)s
FROM adopted;

-- record: note the comparison, and repair what differed, only if the organisation is still as it was when compared
-- A webhook may have come while Stripe was asked, and what it wrote is newer than our answer.
WITH compared AS (
    UPDATE forecasts.organizations
    SET plan = %(plan)s,
        subscription_status = %(status)s,
        payment_failed_at = CASE
            WHEN %(paid)s THEN NULL
            WHEN subscription_status IS NOT DISTINCT FROM %(status)s THEN payment_failed_at
            WHEN %(status)s IN ('past_due', 'unpaid') THEN coalesce(payment_failed_at, %(now)s)
            ELSE payment_failed_at
        END,
        last_billing_sync_at = %(now)s,
        billing_sync_failed_at = NULL
    WHERE id = %(id)s AND deleted_at IS NULL AND stripe_customer_id = %(customer)s
        AND plan = %(our_plan)s AND subscription_status IS NOT DISTINCT FROM %(our_status)s
        AND payment_failed_at IS NOT DISTINCT FROM %(our_payment_failed_at)s
    RETURNING id
), noted AS (
    INSERT INTO forecasts.audit_logs (organization_id, actor, action, entity_type, entity_id, detail, created_at)
    SELECT id, %(actor)s, 'billing.repaired', 'organization', id, %(differences)s, %(now)s
    FROM compared WHERE %(differences)s::jsonb <> '{}'
)
SELECT id FROM compared;

-- postpone: move an organisation that failed behind those that wait as long
UPDATE forecasts.organizations SET billing_sync_failed_at = %(now)s WHERE id = %(id)s;
