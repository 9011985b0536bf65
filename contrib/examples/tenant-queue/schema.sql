-- SPDX-License-Identifier: MIT
-- The queue of the tenants' jobs. Constraints forbid invalid states, whatever the programs do.

create table tenants (
    id integer primary key,
    slots integer not null check (slots > 0)
);

create table jobs (
    id integer generated always as identity primary key,
    tenant integer not null references tenants,
    receiver text not null,
    method text not null,
    arguments jsonb not null,
    -- A hash of the request.
    request text not null,
    state text not null default 'queued' check (state in ('queued', 'running', 'success', 'error')),
    attempt integer not null default 0,
    max_attempts integer not null default 3,
    queued_at timestamptz not null default clock_timestamp(),
    started_at timestamptz,
    ended_at timestamptz,
    statistics jsonb,
    error text,
    check (attempt <= max_attempts)
);

create index on jobs (tenant, id) where state = 'queued';
create index on jobs (tenant, request) where state in ('queued', 'running');

-- An attempt holds its slot from claimed to ended, and runs from started to ended.
create table runs (
    job integer references jobs,
    attempt integer,
    tenant integer not null references tenants,
    slot integer not null,
    worker text,
    pid integer,
    claimed timestamptz not null default clock_timestamp(),
    started timestamptz,
    ended timestamptz,
    outcome text check (outcome in ('success', 'error', 'died')),
    -- The process that found the death.
    found_by text,
    primary key (job, attempt),
    check (claimed <= started and started <= ended),
    check ((ended is null) = (outcome is null))
);

create unique index one_run_in_a_slot on runs (tenant, slot) where ended is null;
create unique index one_run_of_a_job on runs (job) where ended is null;

-- Current backlog and the age of its first job: for jobs without a slot, which more workers do not help, and for jobs
-- with a slot that wait for a worker, which need more workers.
create view waits as
    select tenants.id as tenant, slots,
        (select count(*) from runs where tenant = tenants.id and ended is null) as taken,
        (select count(*) from jobs where tenant = tenants.id and state = 'queued') as for_slot,
        (select clock_timestamp() - min(queued_at) from jobs where tenant = tenants.id and state = 'queued')
            as slot_wait,
        (select count(*) from runs where tenant = tenants.id and started is null) as for_worker,
        (select clock_timestamp() - min(claimed) from runs where tenant = tenants.id and started is null)
            as worker_wait
    from tenants
    order by id;
