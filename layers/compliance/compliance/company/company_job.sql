-- lock: the company, unless another job of it is at work; rows that refer to it may still be inserted
SELECT deleted_at FROM compliance.companies WHERE id = %(company_id)s FOR NO KEY UPDATE SKIP LOCKED;

-- exists: whether there is such a company
SELECT 1 FROM compliance.companies WHERE id = %(company_id)s;

-- site: whether the site is one of the company's
SELECT 1 FROM compliance.sites WHERE id = %(site_id)s AND company_id = %(company_id)s;
