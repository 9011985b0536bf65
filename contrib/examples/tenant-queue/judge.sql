-- SPDX-License-Identifier: MIT
-- Prints one line for each violation of a promise, over all jobs and runs; none if all were kept. Reads the file
-- `work`, in which the reports themselves recorded start and end, independently of the queue.

\set ON_ERROR_STOP on
\set QUIET on
\pset format unaligned
\pset tuples_only on

create temporary table note (name text, tenant integer, token text, event text, at float8);
\copy note from 'app/work'
create temporary view held as select *, tstzrange(claimed, ended) as during from runs;
create temporary view work as
    select name, tenant, token, min(at) filter (where event = 'begin') as began,
        min(at) filter (where event = 'end') as ended
    from note group by name, tenant, token;
-- A job waits from its request, or from the death of its run, until it is claimed next.
create temporary view queued as
    select id, tenant, attempt,
        tstzrange(coalesce(lag(ended) over (partition by id order by attempt), queued_at), claimed) as during
    from (
        select jobs.id, jobs.tenant, runs.attempt, queued_at, claimed, ended from jobs join runs on runs.job = jobs.id
        union all
        select id, tenant, attempt + 1, queued_at, null, null from jobs where state = 'queued'
    ) as waits;

select 'lost: job ' || id || ' is ' || state from jobs where state not in ('success', 'error');

-- The maximum of held slots is reached when one is claimed.
select 'slots: tenant ' || one.tenant || ' held ' || count(*) || ' as job ' || one.job || ' was claimed'
from runs as one join tenants on tenants.id = one.tenant
    join held on held.tenant = one.tenant and held.during @> one.claimed
group by one.tenant, slots, one.job, one.attempt having count(*) > slots;

select 'slots: tenant ' || one.tenant || ' had ' || count(*) || ' at work as ' || one.name || ' began'
from work as one join tenants on tenants.id = one.tenant
    join work as other on other.tenant = one.tenant and other.began <= one.began and other.ended > one.began
where one.ended is not null
group by one.tenant, slots, one.token, one.name having count(*) > slots;

select 'order: job ' || runs.job || ' was claimed while job ' || queued.id || ' waited'
from runs join queued on queued.tenant = runs.tenant and queued.id < runs.job and queued.during @> runs.claimed;

select 'once: runs ' || one.attempt || ' and ' || other.attempt || ' of job ' || one.job || ' overlap'
from held as one
    join held as other on other.job = one.job and other.attempt > one.attempt and other.during && one.during;

select 'once: ' || one.name || ' began again at ' || other.began || ', and ended at ' || one.ended
from work as one join work as other on other.name = one.name and other.began >= one.began and other.token <> one.token
where one.ended > other.began;

select 'once: ' || name || ' began ' || count(*) || ' times, in ' || max(runs) || ' runs'
from work join (
    select arguments ->> 0 as name, count(started) as runs from jobs join runs on job = id group by 1
) as called using (name)
group by name having count(*) > max(runs);

select 'attempts: job ' || id || ' has ' || jobs.attempt || ', and ' || count(job) || ' runs, at most ' || max_attempts
from jobs left join runs on job = id
group by id having count(job) <> jobs.attempt or max(runs.attempt) <> jobs.attempt or count(job) > max_attempts;

select 'audit: job ' || id || ' is ' || state || ', and its last run ' || coalesce(outcome, 'has no end')
from jobs left join runs on job = id and runs.attempt = jobs.attempt
where state is distinct from case outcome when 'died' then 'error' else outcome end;

select 'audit: job ' || id || ' lacks a time, its statistics or its error' from jobs
where not coalesce(queued_at <= started_at and started_at <= ended_at, false) or statistics is null and error is null;
