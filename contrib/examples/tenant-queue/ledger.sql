-- SPDX-License-Identifier: MIT
-- Results of the jobs of each tenant.
\pset footer off

select tenants.id as tenant, slots, count(*) as jobs,
    count(*) filter (where state = 'success') as success, count(*) filter (where state = 'error') as error,
    sum(attempt) as attempts, max(attempt) as most,
    round(extract(epoch from max(ended_at) - min(started_at))::numeric, 1) as seconds
from jobs join tenants on tenants.id = jobs.tenant
group by tenants.id order by tenants.id;

select count(*) as died, count(*) filter (where found_by = 'its message') as found_by_message,
    count(*) filter (where found_by = 'the sweep') as found_by_sweep
from runs where outcome = 'died';

select tenant,
    date_trunc('milliseconds', percentile_disc(0.5) within group (order by claimed - queued_at)) as waited_for_slot,
    date_trunc('milliseconds', max(claimed - queued_at)) as longest,
    date_trunc('milliseconds', percentile_disc(0.5) within group (order by started - claimed)) as waited_for_worker,
    date_trunc('milliseconds', max(started - claimed)) as longest
from runs join jobs using (tenant)
where id = job and runs.attempt = 1
group by tenant order by tenant;
