# SPDX-License-Identifier: MIT
# A STAND-IN for GoodJob, which is in no Debian package. It follows the sources of GoodJob 4.19.2 (commit 81db22b) statement
# by statement: a comment names file and line of the source. Paths begin in lib/good_job, those of models in
# app/models/good_job. Without cron, batches, concurrency limits and pauses; its lock strategy is `advisory`, the default. A
# job that is due later begins at the next poll.
# ActiveJob and ActiveRecord are Debian's.
# Usage: good_job_standin.rb start
#        good_job_standin.rb enqueue COUNT CLASS ARGUMENT...
#        good_job_standin.rb schema FILE
# Environment: DATABASE_URL; RECORDS; GOOD_JOB_QUEUES, GOOD_JOB_MAX_THREADS, GOOD_JOB_POLL_INTERVAL,
# GOOD_JOB_SHUTDOWN_TIMEOUT, GOOD_JOB_ADVISORY_LOCK_HEARTBEAT as in GoodJob; STALE_INTERVAL is a constant there.
require_relative "jobs"

STALE_INTERVAL = Float(ENV["STALE_INTERVAL"] || 30) # process.rb:12
EXPIRED_INTERVAL = 300 # process.rb:14
MAX_THREADS = Integer(ENV["GOOD_JOB_MAX_THREADS"] || 5)
QUEUES = ENV["GOOD_JOB_QUEUES"] || "*"

# concerns/good_job/advisory_lockable.rb
module AdvisoryLockable
  def self.bigint(sql) = "('x' || substr(md5(#{sql}), 1, 16))::bit(64)::bigint" # :582
  def self.joins(table) # :252, 599, 604
    bits = "(#{bigint("'#{table}' || '-' || #{table}.id::text")})::bit(64)"
    "LEFT JOIN pg_locks ON pg_locks.locktype = 'advisory' AND pg_locks.objsubid = 1 " \
      "AND pg_locks.classid = substring(#{bits} from 1 for 32)::bit(32)::int " \
      "AND pg_locks.objid = substring(#{bits} from 33 for 32)::bit(32)::int"
  end

  def lockable_key = "#{self.class.table_name}-#{id}" # :755
  def advisory_lock(connection) = lock_by("pg_try_advisory_lock", connection) # :397
  def advisory_unlock(connection) = lock_by("pg_advisory_unlock", connection) # :503

  private

  def lock_by(function, connection)
    key = connection.quote(lockable_key)
    connection.select_value("SELECT #{function}(#{AdvisoryLockable.bigint("#{key}::text")}) AS locked")
  end
end

class JobRow < ActiveRecord::Base # job.rb
  include AdvisoryLockable
  self.table_name = "good_jobs"

  def self.enqueue(active_job, scheduled_at: nil) # job.rb:335, 498
    now = Time.current
    create!(id: active_job.job_id, active_job_id: active_job.job_id, job_class: active_job.class.name,
            queue_name: active_job.queue_name.presence || "default", priority: active_job.priority || 0,
            serialized_params: active_job.serialize, created_at: now, scheduled_at: scheduled_at || now)
  end

  def self.of_queues(text) # job.rb:213, 245
    kind = text[0] if text.start_with?("-", "+")
    names = text.delete_prefix("-").delete_prefix("+").split(",").map(&:strip)
    return all if names.include?("*")

    kind == "-" ? where.not(queue_name: names).or(where(queue_name: nil)) : where(queue_name: names)
  end

  # Yields the job that was taken, or nil. advisory_lockable.rb:333, job.rb:385
  def self.with_advisory_lock_claim
    connection_pool.with_connection do |connection|
      candidates = where(finished_at: nil).of_queues(QUEUES).where("scheduled_at <= ?", Time.current)
                                          .order(Arel.sql("priority ASC NULLS LAST"), created_at: :asc).select(:id).limit(1000)
      job = where("good_jobs.id IN (WITH rows AS MATERIALIZED (#{candidates.to_sql}) SELECT rows.id FROM rows WHERE " \
                  "pg_try_advisory_lock(#{AdvisoryLockable.bigint("'good_jobs' || '-' || rows.id::text")}) LIMIT 1)").to_a.first
      begin
        yield(job)
      ensure
        job&.advisory_unlock(connection)
      end
    end
  end

  def executable? # job.rb:909
    reload.finished_at.blank?
  rescue ActiveRecord::RecordNotFound
    false
  end

  def perform(lock_id) # job.rb:761
    execution = nil
    transaction do # job.rb:790
      now = Time.current
      execution = ExecutionRow.create!(active_job_id: id, job_class: job_class, queue_name: queue_name, process_id: lock_id,
                                       serialized_params: serialized_params, scheduled_at: scheduled_at || created_at, created_at: now)
      update!(performed_at: now, executions_count: (executions_count || 0) + 1, locked_by_id: lock_id, locked_at: Time.current, lock_type: 0)
    end
    begin
      ActiveJob::Base.execute(serialized_params) # job.rb:814
    rescue StandardError => e
      error = "#{e.class}: #{e.message}"
    end
    assign_attributes(locked_by_id: nil, locked_at: nil, lock_type: nil, error: error, finished_at: Time.current) # job.rb:861
    execution.assign_attributes(finished_at: finished_at, error: error)
    transaction do # job.rb:895
      execution.save!
      save!
    end
  end
end

class ExecutionRow < ActiveRecord::Base
  self.table_name = "good_job_executions"
  attribute :duration, :string
end

class ProcessRow < ActiveRecord::Base # process.rb
  include AdvisoryLockable
  self.table_name = "good_job_processes"
  after_destroy { JobRow.where(locked_by_id: id).update_all(locked_by_id: nil) } # process.rb:51

  # The notifier's rows are written by its own connection, which holds the advisory lock (OverridableConnection).
  def self.override_connection(connection)
    Thread.current[:process_connection] = connection
    yield
  ensure
    Thread.current[:process_connection] = nil
  end
  def self.connection = Thread.current[:process_connection] || super
  def self.lease_connection = connection
  def self.with_connection(**options, &block) = Thread.current[:process_connection] ? yield(connection) : super

  def self.process_state # process.rb:111
    active = $scheduler&.active_threads || 0
    { hostname: Socket.gethostname, pid: Process.pid, memory: File.read("/proc/self/smaps_rollup")[/^Pss:\s+(\d+)/, 1].to_i,
      proctitle: $PROGRAM_NAME, preserve_job_records: true, retry_on_unhandled_error: false,
      schedulers: [{ name: "GoodJob::Scheduler(queues=#{QUEUES} max_threads=#{MAX_THREADS})", queues: QUEUES, max_threads: MAX_THREADS,
                     active_threads: active, available_threads: MAX_THREADS - active, max_cache: 10_000, active_cache: 0,
                     available_cache: 10_000, empty_executions_count: 0, errored_executions_count: 0, succeeded_executions_count: 0,
                     total_executions_count: 0, check_queue_at: nil, execution_at: nil }], # scheduler.rb:209
      cron_enabled: false, total_succeeded_executions_count: 0, total_errored_executions_count: 0,
      database_connection_pool: { size: 30, active: 1 } }
  end

  def self.cleanup # process.rb:67, 74
    rows = joins(AdvisoryLockable.joins("good_job_processes"))
    rows.where(lock_type: 0).where(pg_locks: { locktype: nil })
        .or(rows.where(lock_type: nil).where("good_job_processes.updated_at < ?", EXPIRED_INTERVAL.seconds.ago)).to_a.each do |row|
      JobRow.where(locked_by_id: row.id).update_all(locked_by_id: nil, locked_at: nil)
      row.delete
    end
  end

  def refresh_if_stale(cleanup: false) # process.rb:130, 141
    return if updated_at && updated_at >= STALE_INTERVAL.seconds.ago

    begin
      reload
      update(state: self.class.process_state, updated_at: Time.current)
    rescue ActiveRecord::RecordNotFound
      @new_record = true
      self.created_at = self.updated_at = nil
      state_will_change!
      save
    end
    self.class.cleanup if cleanup
  end
end

class Tracker # capsule_tracker.rb
  def initialize
    @monitor = Monitor.new
    @locks = 0
    @id = SecureRandom.uuid
  end

  def id_for_lock # :42
    @monitor.synchronize do
      next if @locks.zero?

      if @row
        @row.refresh_if_stale
      else
        create(false)
      end
      @row&.id
    end
  end

  def register(with_advisory_lock: false) # :71
    @monitor.synchronize do
      if with_advisory_lock
        if @row
          ProcessRow.transaction { @row.advisory_lock(ProcessRow.connection) && @row.update(lock_type: 0) } if @locked_by != ProcessRow.connection # :75
        else
          create(true)
        end
        @locked_by = ProcessRow.connection
      end
      @locks += 1
    end
    return unless block_given?

    begin
      yield
    ensure
      unregister
    end
  end

  def unregister(with_advisory_lock: false) # :103
    @monitor.synchronize do
      return if @locks.zero?

      locked = with_advisory_lock && @row && @locked_by == ProcessRow.connection
      if @locks == 1
        ProcessRow.transaction do
          @row.advisory_unlock(ProcessRow.connection) if locked
          @row&.destroy
        end
        @row = nil
        @refresh&.cancel
        @refresh = nil
      elsif locked
        ProcessRow.transaction { @row.advisory_unlock(ProcessRow.connection) && @row.update(lock_type: nil) }
      end
      @locked_by = nil if locked
      @locks -= 1
    end
  end

  def renew = @monitor.synchronize { @row&.refresh_if_stale(cleanup: true) } # :136

  private

  def create(lock) # :51, 83, process.rb:88
    ProcessRow.transaction do
      @row = ProcessRow.create!(id: @id, state: ProcessRow.process_state, lock_type: (0 if lock))
      @row.advisory_lock(ProcessRow.connection) if lock
    end
    schedule_refresh
  rescue ActiveRecord::RecordNotUnique
    @row = ProcessRow.find(@id)
    @row.update(state: ProcessRow.process_state, updated_at: Time.current)
  end

  def schedule_refresh # :170
    return if @refresh

    @refresh = Concurrent::ScheduledTask.execute(STALE_INTERVAL * (1 + 0.1 * rand)) do
      wrap_in_executor do
        @monitor.synchronize do
          next unless @locks.positive?

          @refresh = nil
          schedule_refresh
          renew
        end
      end
    rescue StandardError => e
      on_thread_error(e)
    end
  end
end

class Scheduler # scheduler.rb: a job is followed by the next one, as long as there are any
  attr_reader :active_threads

  def initialize(tracker)
    @tracker = tracker
    @executor = Concurrent::ThreadPoolExecutor.new(min_threads: 0, max_threads: MAX_THREADS, max_queue: MAX_THREADS, fallback_policy: :discard)
    @active_threads = 0
    @mutex = Mutex.new
  end

  def create_thread # :141, 282
    @mutex.synchronize do
      return if !@executor.running? || @active_threads >= MAX_THREADS

      @active_threads += 1
    end
    @executor.post do
      found = wrap_in_executor { perform_next }
    rescue StandardError => e
      on_thread_error(e)
    ensure
      @mutex.synchronize { @active_threads -= 1 }
      create_thread if found # :203
    end
  end

  def perform_next # job_performer.rb:32, job.rb:385
    @tracker.register do
      lock_id = @tracker.id_for_lock
      JobRow.with_advisory_lock_claim do |job|
        next false unless job&.executable?

        create_thread # :290
        job.perform(lock_id)
        true
      end
    end
  end

  def shutdown(timeout) # :99
    @executor.shutdown
    return if @executor.wait_for_termination(timeout.negative? ? nil : timeout)

    @executor.kill
    @executor.wait_for_termination(1)
  end
end

class Notifier # notifier.rb, notifier/process_heartbeat.rb
  def initialize(tracker, scheduler)
    @tracker = tracker
    @scheduler = scheduler
    @lock = ActiveModel::Type::Boolean.new.cast(ENV["GOOD_JOB_ADVISORY_LOCK_HEARTBEAT"]) || false # configuration.rb:430
    @running = true
    @thread = Thread.new do
      while @running
        begin
          listen
        rescue StandardError => e
          on_thread_error(e)
          sleep 5 if @running # notifier.rb:184
        end
      end
    end
  end

  def listen # notifier.rb:204
    pool = ActiveRecord::Base.connection_pool
    connection = pool.checkout.tap { |taken| pool.remove(taken) } # notifier.rb:259
    connection.execute("SET application_name = 'GoodJob::Notifier'")
    connection.execute("LISTEN good_job")
    ProcessRow.override_connection(connection) do # process_heartbeat.rb:18
      ProcessRow.cleanup
      @tracker.register(with_advisory_lock: @lock)
    end
    while @running
      wrap_in_executor { @tracker.renew } # process_heartbeat.rb:24
      connection.raw_connection.wait_for_notify(1) { @scheduler.create_thread } # notifier.rb:274
      connection.raw_connection.async_exec("SELECT 1") # notifier.rb:278
    end
    connection.execute("UNLISTEN *")
    ProcessRow.override_connection(connection) { @tracker.unregister(with_advisory_lock: @lock) } # process_heartbeat.rb:34
  ensure
    connection&.disconnect!
  end

  def shutdown # notifier.rb:129
    @running = false
    @thread.join
  end
end

def start # cli.rb:110, capsule.rb:34
  tracker = Tracker.new
  scheduler = $scheduler = Scheduler.new(tracker)
  notifier = Notifier.new(tracker, scheduler)
  poller = Concurrent::TimerTask.new(execution_interval: Float(ENV["GOOD_JOB_POLL_INTERVAL"] || 10), run_now: true) { scheduler.create_thread } # capsule.rb:46
  poller.execute
  stop = Concurrent::Event.new
  %w[INT TERM].each { |signal| trap(signal) { Thread.new { stop.set }.join } } # cli.rb:129
  sleep 0.01 until stop.wait(1)
  notifier.shutdown # capsule.rb:63, good_job.rb:208
  poller.shutdown
  scheduler.shutdown(Float(ENV["GOOD_JOB_SHUTDOWN_TIMEOUT"] || -1))
end

class Adapter # adapter.rb:168
  def enqueue(job) = enqueue_at(job, nil)
  def enqueue_after_transaction_commit? = false

  def enqueue_at(job, timestamp)
    row = JobRow.enqueue(job, scheduled_at: timestamp && Time.at(timestamp))
    JobRow.connection.execute("NOTIFY good_job, #{JobRow.connection.quote({ queue_name: row.queue_name }.to_json)}") # adapter.rb:219
  end
end
ActiveJob::Base.queue_adapter = Adapter.new
ActiveJob::Base.logger = nil

module GoodJob
  # sqmgr's preloading begins once the application is set up.
  class CLI
    def start # cli.rb:110
      set_up_application!
      run
    end

    def set_up_application!; end # cli.rb:174: here, the file has loaded it

    private

    def run = Object.send(:start)
  end
end

run_command { GoodJob::CLI.new.start }
