-- people: the live users with a role in the company, and the sites of the company that they are assigned to
SELECT u.id::text, u.email, u.phone, array_agg(DISTINCT r.role),
       array(SELECT a.site_id::text FROM compliance.user_site_assignments a
             JOIN compliance.sites s ON s.id = a.site_id AND s.company_id = %(company_id)s
             WHERE a.user_id = u.id)
FROM compliance.user_roles r JOIN compliance.users u ON u.id = r.user_id AND u.deleted_at IS NULL
WHERE r.company_id = %(company_id)s
GROUP BY u.id ORDER BY u.id;
