# SPDX-License-Identifier: MIT
# Jobs of tenants, stored in PostgreSQL and run by Sidekiq: a tenant has slots, and its jobs get them in order of id.
require "digest"
require "json"
require "pg"
require "sidekiq"
require "sidekiq/api"

# Debian 12's Sidekiq causes warnings of its redis gem with every job.
Redis.silence_deprecations = true if defined?(Redis) && Redis.respond_to?(:silence_deprecations=)

class TenantQueue
  # Not a StandardError, so that a job's own rescue does not catch it.
  class Lost < Interrupt; end

  # A separate connection, which also holds the lock of a run.
  def self.open
    PG.connect { |db| yield new(db) }
  end

  def initialize(db)
    @db = db
  end

  # Returns the id of the job: that of an unfinished one, if the same was requested within 10 minutes.
  def add(tenant, receiver, method, arguments)
    call = [receiver, method, JSON.generate(arguments)]
    request = Digest::SHA256.hexdigest(JSON.generate(call))
    # The id is taken under the lock, so that none is committed after a higher id of its tenant was claimed.
    job = locked(tenant) do
      first(<<~SQL, tenant, request) || first(<<~SQL, tenant, *call, request)
        select id from jobs
        where tenant = $1 and request = $2 and state in ('queued', 'running')
          and queued_at > clock_timestamp() - interval '10 minutes'
        order by id limit 1
      SQL
        insert into jobs (tenant, receiver, method, arguments, request) values ($1, $2, $3, $4, $5) returning id
      SQL
    end
    queue_next_job(tenant)
    job["id"].to_i
  end

  # Claims until all slots of the tenant are taken or no job waits. Pushes after the commit: a worker could be faster.
  def queue_next_job(tenant)
    while (run = locked(tenant) { |slots| claim(tenant, slots) })
      push(*run)
    end
  end

  # Returns the call to make, or nil if this attempt has begun before. The lock belongs to the connection: the server
  # releases it when the process is dead, and not while it is only slow.
  def begin(job, attempt)
    return unless first("select pg_try_advisory_lock($1, $2) as ours", job, attempt)["ours"] == "t"

    first(<<~SQL, job, attempt, ENV["SQMGR_WORKER"], Process.pid)
      with run as (
        update runs set started = clock_timestamp(), worker = $3, pid = $4
        where job = $1 and attempt = $2 and started is null
        returning started
      )
      update jobs set started_at = run.started from run where id = $1
      returning tenant, receiver, method, arguments
    SQL
  end

  # Interrupts the block as soon as the connection, and with it the lock, is lost.
  def guarded
    worker = Thread.current
    watch = Thread.new do
      loop { @db.socket_io.wait_readable && @db.consume_input }
    rescue PG::Error, IOError, SystemCallError
      worker.raise(Lost, "the connection that holds the lock of this run is gone")
    end
    yield
  ensure
    watch&.kill&.join
  end

  # A run that another process has ended is not ended twice.
  def finish(tenant, job, attempt, outcome, statistics, error)
    locked(tenant) do
      rows(<<~SQL, job, attempt, outcome, statistics && JSON.generate(statistics), error)
        with run as (
          update runs set ended = clock_timestamp(), outcome = $3
          where job = $1 and attempt = $2 and ended is null
          returning ended
        )
        update jobs set state = $3, ended_at = run.ended, statistics = $4, error = $5 from run where id = $1
      SQL
    end
    queue_next_job(tenant)
  end

  # Ends a run that has begun and that no process holds. Its job waits again, in its old place, until it has died too
  # often.
  def take_over(job, attempt, finder)
    tenant = first("select tenant from jobs where id = $1", job)["tenant"].to_i
    taken = locked(tenant) do
      first("select pg_try_advisory_xact_lock($1, $2) as ours", job, attempt)["ours"] == "t" &&
        first(<<~SQL, job, attempt, finder)
          with run as (
            update runs set ended = clock_timestamp(), outcome = 'died', found_by = $3
            where job = $1 and attempt = $2 and started is not null and ended is null
            returning ended
          )
          update jobs set state = case when attempt < max_attempts then 'queued' else 'error' end,
            ended_at = case when attempt = max_attempts then run.ended end,
            error = case when attempt = max_attempts then 'its worker died in each of ' || attempt || ' attempts' end
          from run where id = $1
          returning id
        SQL
    end
    queue_next_job(tenant) if taken
  end

  # Repairs the effects of a death at any point: a run that no process holds, a claim that was never pushed or whose
  # message was lost, an unfilled slot. An extra message does no harm: its attempt has begun.
  def sweep
    runs = rows("select job, attempt, started from runs where ended is null")
    begun, waiting = runs.partition { |run| run["started"] }
    begun.each { |run| take_over(run["job"].to_i, run["attempt"].to_i, "the sweep") }
    queued = Sidekiq::Queue.new("tenants").map(&:jid)
    waiting.map { |run| [run["job"].to_i, run["attempt"].to_i] }.each do |run|
      push(*run) unless queued.include?(run.join("-"))
    end
    # The process that holds a tenant's lock fills its slots next.
    rows(<<~SQL).each { |tenant| queue_next_job(tenant["id"].to_i) }
      select id from tenants where exists (select from jobs where tenant = tenants.id and state = 'queued')
      for update skip locked
    SQL
  end

  private

  def rows(sql, *values)
    @db.exec_params(sql, values).to_a
  end

  def first(...)
    rows(...).first
  end

  # All changes of a tenant's jobs are made under the lock of its row, and later statements count: the statement that
  # waits for the lock still sees the earlier data.
  def locked(tenant)
    @db.transaction do
      row = first("select slots from tenants where id = $1 for update", tenant)
      raise ArgumentError, "there is no tenant #{tenant}" unless row

      yield row["slots"].to_i
    end
  end

  # Waits for the row of the job instead of skipping it: a later job would overtake it.
  def claim(tenant, slots)
    taken = rows("select slot from runs where tenant = $1 and ended is null", tenant).map { |run| run["slot"].to_i }
    return if taken.size >= slots

    job = first(<<~SQL, tenant) or return
      update jobs set state = 'running', attempt = attempt + 1
      where id = (select id from jobs where tenant = $1 and state = 'queued' order by id limit 1 for update)
      returning id, attempt
    SQL
    run = [job["id"].to_i, job["attempt"].to_i]
    slot = ((1..slots).to_a - taken).first
    rows("insert into runs (job, attempt, tenant, slot) values ($1, $2, $3, $4)", *run, tenant, slot)
    run
  end

  # The sweep pushes what is not pushed here.
  def push(job, attempt)
    Sidekiq::Client.push("class" => RunJob, "args" => [job, attempt], "jid" => "#{job}-#{attempt}")
  rescue StandardError => e
    Sidekiq.logger.warn("job #{job}, attempt #{attempt} is not pushed: #{e.message}")
  end
end

class RunJob
  include Sidekiq::Job
  # Only the queue decides on retries.
  sidekiq_options queue: "tenants", retry: false

  def perform(job, attempt)
    TenantQueue.open do |queue|
      call = queue.begin(job, attempt)
      # Begun before, by a process that is dead or still running.
      next queue.take_over(job, attempt, "its message") unless call

      tenant = call["tenant"].to_i
      queue.finish(tenant, job, attempt, *run(queue, tenant, call))
    end
  rescue TenantQueue::Lost => e
    logger.warn("job #{job}, attempt #{attempt}: #{e.message}")
  end

  private

  def run(queue, tenant, call)
    receiver = Object.const_get(call["receiver"]).new(tenant)
    statistics = queue.guarded { receiver.public_send(call["method"], *JSON.parse(call["arguments"])) }
    ["success", statistics, nil]
  rescue StandardError => e
    ["error", nil, "#{e.class}: #{e.message}"]
  end
end

# `report.async.execute(...)` queues the call `report.execute(...)` for a worker, and returns the id of the job.
module Async
  class Call < BasicObject
    def initialize(receiver)
      @receiver = receiver
    end

    # Reports a missing method here, and not in a worker.
    def method_missing(name, *arguments)
      method = @receiver.public_method(name)
      ::TenantQueue.open { |queue| queue.add(@receiver.tenant, @receiver.class.name, method.name, arguments) }
    end
  end

  def async
    Call.new(self)
  end
end
