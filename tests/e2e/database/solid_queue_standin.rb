# SPDX-License-Identifier: MIT
# A STAND-IN for Solid Queue, which is in no Debian package. It follows the sources of Solid Queue 1.5.0 (commit 29e818d)
# statement by statement: a comment names file and line of the source. Paths begin in lib/solid_queue, those of models in
# app/models/solid_queue. Without concurrency limits and recurring tasks. ActiveJob and ActiveRecord are Debian's.
# Usage: solid_queue_standin.rb start [--mode fork|async]
#        solid_queue_standin.rb enqueue COUNT CLASS ARGUMENT...
#        solid_queue_standin.rb schema FILE
# Environment: DATABASE_URL; RECORDS; QUEUES, THREADS, DISPATCHER=1, DISPATCHER=only for what config/queue.yml says;
# SHUTDOWN_TIMEOUT, PROCESS_HEARTBEAT_INTERVAL, PROCESS_ALIVE_THRESHOLD for config.solid_queue, in seconds. After
# SHUTDOWN_TIMEOUT the threads release their claims, while the process exits: EXIT_DELAY gives the threads so many seconds.
require_relative "jobs"

SHUTDOWN_TIMEOUT = Float(ENV["SHUTDOWN_TIMEOUT"] || 5) # solid_queue.rb:33
EXIT_DELAY = Float(ENV["EXIT_DELAY"] || 0)
PROCESS_HEARTBEAT_INTERVAL = Float(ENV["PROCESS_HEARTBEAT_INTERVAL"] || 60) # solid_queue.rb:30
PROCESS_ALIVE_THRESHOLD = Float(ENV["PROCESS_ALIVE_THRESHOLD"] || 300) # solid_queue.rb:31

# Rails 8 configures SQLite so, with a timeout of 5 s. PRAGMA busy_timeout waits without giving up the lock of the Ruby VM:
# another thread of the process that has begun a transaction then cannot end it, and "database is locked" follows.
if ActiveRecord::Base.connection.adapter_name == "SQLite"
  ActiveRecord::Base.connection.class.prepend(Module.new do
    def configure_connection
      super
      deadline = nil
      (@raw_connection || @connection).busy_handler do |count| # busy_handler_timeout= of sqlite3 2.0
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60 if count.zero?
        sleep 0.001
        Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
      end
      execute("PRAGMA journal_mode = WAL")
      execute("PRAGMA foreign_keys = ON")
    end

    def begin_db_transaction = execute("BEGIN IMMEDIATE TRANSACTION")
  end)
  ActiveRecord::Base.connection_pool.disconnect!
end

class Row < ActiveRecord::Base # record.rb:4
  self.abstract_class = true

  def self.non_blocking_lock = lock("FOR UPDATE SKIP LOCKED") # record.rb:15
end

class JobRow < Row # job.rb:4
  self.table_name = "solid_queue_jobs"
  after_create :prepare_for_execution # job/executable.rb:14

  def self.enqueue(active_job, scheduled_at: Time.current) # job.rb:29, 57
    active_job.scheduled_at = scheduled_at if active_job.respond_to?(:scheduled_at=) && ActiveJob.version >= Gem::Version.new("7.1")
    create!(queue_name: active_job.queue_name || "default", active_job_id: active_job.job_id,
            priority: active_job.priority || 0, scheduled_at: scheduled_at, class_name: active_job.class.name,
            arguments: ActiveSupport::JSON.encode(active_job.serialize))
  end

  def prepare_for_execution # job/executable.rb:61
    if scheduled_at.nil? || scheduled_at <= Time.current # job/schedulable.rb:32
      ready
    else
      ScheduledRow.create_or_find_by!(job_id: id) { |row| row.assume(self) } # job/schedulable.rb:41
    end
  end

  def ready = ReadyRow.create_or_find_by!(job_id: id) { |row| row.assume(self) } # job/executable.rb:105

  def finished! = touch(:finished_at) # job/executable.rb:81

  def failed_with(exception) # job/retryable.rb:18, failed_execution.rb:40
    error = { exception_class: exception.class.name, message: exception.message, backtrace: exception.backtrace }
    FailedRow.transaction(requires_new: true) { FailedRow.create!(job_id: id, error: ActiveSupport::JSON.encode(error)) }
  rescue ActiveRecord::RecordNotUnique
    FailedRow.find_by(job_id: id)&.update!(error: ActiveSupport::JSON.encode(error))
  end
end

class ExecutionRow < Row # execution.rb:4
  self.abstract_class = true
  belongs_to :job, class_name: "JobRow"

  def assume(job) # execution/job_attributes.rb:24
    self.queue_name = job.queue_name
    self.priority = job.priority
    self.scheduled_at = job.scheduled_at if has_attribute?(:scheduled_at)
  end
end

class FailedRow < ExecutionRow
  self.table_name = "solid_queue_failed_executions"
end

class ScheduledRow < ExecutionRow # scheduled_execution.rb
  self.table_name = "solid_queue_scheduled_executions"

  def self.dispatch_next_batch(size) # scheduled_execution.rb:14
    transaction do
      job_ids = where(scheduled_at: ..Time.current).order(:scheduled_at, :priority, :job_id).limit(size).non_blocking_lock.pluck(:job_id)
      next 0 if job_ids.empty?

      jobs = JobRow.where(id: job_ids).to_a # execution/dispatching.rb:10, job/executable.rb:35, execution.rb:21
      ReadyRow.insert_all(jobs.map { |job| { job_id: job.id, queue_name: job.queue_name, priority: job.priority, created_at: Time.current } })
      where(id: where(job_id: job_ids).pluck(:id)).delete_all # execution/dispatching.rb:13
    end
  end
end

class ReadyRow < ExecutionRow # ready_execution.rb
  self.table_name = "solid_queue_ready_executions"

  def self.claim(queue_list, limit, process_id) # ready_execution.rb:10
    relations(queue_list).flat_map do |relation|
      select_and_lock(relation, process_id, limit).tap { |locked| limit -= locked.size }
    end
  end

  def self.relations(queue_list) # queue_selector.rb:12
    paused = PauseRow.all.pluck(:queue_name) # queue_selector.rb:73
    return [all] if queue_list.include?("*") && paused.empty? # queue_selector.rb:14

    names = queue_list.flat_map do |name| # queue_selector.rb:34, 60
      next [name] unless name.include?("*")

      (name == "*" ? all : where("queue_name LIKE ?", name.tr("*", "%"))).distinct.pluck(:queue_name)
    end
    (names.uniq - paused).map { |name| where(queue_name: name) }
  end

  def self.select_and_lock(relation, process_id, limit) # ready_execution.rb:23
    return [] if limit <= 0

    transaction do
      candidates = relation.order(priority: :asc, job_id: :asc).limit(limit).non_blocking_lock.select(:id, :job_id).to_a # :34
      next [] if candidates.none?

      now = Time.current
      ClaimedRow.insert_all!(candidates.map { |row| { job_id: row.job_id, process_id: process_id, created_at: now } }) # claimed_execution.rb:19
      claimed = ClaimedRow.where(job_id: candidates.map(&:job_id), process_id: process_id).load # :20
      where(id: candidates.index_by(&:job_id).values_at(*claimed.map(&:job_id)).map(&:id)).delete_all # ready_execution.rb:42
      claimed.to_a
    end
  end
end

class PauseRow < Row
  self.table_name = "solid_queue_pauses"
end

class ClaimedRow < ExecutionRow # claimed_execution.rb
  self.table_name = "solid_queue_claimed_executions"
  belongs_to :process, class_name: "ProcessRow", optional: true

  def perform # claimed_execution.rb:64, 94
    begin
      arguments = ActiveSupport::JSON.decode(job.arguments).merge("provider_job_id" => job.id)
      # Rails 7.1 and later replace a connection that the job outlived. Rails 6.1 does so for one that is taken anew.
      ActiveRecord::Base.connection_pool.release_connection
      ActiveJob::Base.execute(arguments)
    rescue Exception => e # rubocop:disable Lint/RescueException
      error = e
    end
    error ? failed_with(error) : unless_already_finalized { job.finished! }
    raise error if error
  end

  def release = unless_already_finalized { job.ready } # claimed_execution.rb:75
  def failed_with(error) = unless_already_finalized { job.failed_with(error) } # claimed_execution.rb:88

  def unless_already_finalized # claimed_execution.rb:118
    transaction do
      next false unless self.class.unscoped.lock.find_by(id: id)

      yield
      destroy!
    end
  end
end

class ProcessRow < Row # process.rb
  self.table_name = "solid_queue_processes"
  store :metadata, coder: JSON
  has_many :supervisees, class_name: "ProcessRow", foreign_key: :supervisor_id
  has_many :claimed_executions, class_name: "ClaimedRow", foreign_key: :process_id
  after_destroy { claimed_executions.includes(:job).each(&:release) if kind == "Worker" } # process/executor.rb:11, 20

  def heartbeat # process.rb:22
    restore_attributes
    with_lock { touch(:last_heartbeat_at) }
  end

  def deregister(pruned: false) # process.rb:30
    destroy!
    supervisees.each(&:deregister) unless supervisor_id.present? || pruned
  end

  def fail_all_claimed_executions_with(error) # process/executor.rb:14
    claimed_executions.includes(:job).each { |row| row.failed_with(error) } if kind == "Worker"
  end

  def self.prune(excluding) # process/prunable.rb:13, 24
    where(last_heartbeat_at: ..PROCESS_ALIVE_THRESHOLD.seconds.ago).where.not(id: excluding.id).non_blocking_lock.each do |row|
      row.fail_all_claimed_executions_with(RuntimeError.new("Process was found dead and pruned (last heartbeat at: #{row.last_heartbeat_at})"))
      row.deregister(pruned: true)
    end
  end
end

# processes/base.rb, processes/registrable.rb
class Process_
  attr_reader :name, :row

  def initialize
    @name = "#{kind.downcase}-#{SecureRandom.hex(10)}" # processes/base.rb:39
    @stopped = false
    @reader, @writer = IO.pipe # processes/interruptible.rb:36
  end

  def metadata = {}

  def register(supervisor = nil) # processes/registrable.rb:20, process.rb:13
    wrap_in_executor do
      @row = ProcessRow.create!(kind: kind, name: name, pid: Process.pid, hostname: Socket.gethostname,
                                supervisor_id: supervisor&.id, metadata: metadata.compact, last_heartbeat_at: Time.current)
    end
    @heartbeat = Concurrent::TimerTask.new(execution_interval: PROCESS_HEARTBEAT_INTERVAL) { wrap_in_executor { heartbeat } } # :41
    @heartbeat.add_observer { |_, _, error| on_thread_error(error) if error }
    @heartbeat.execute
  end

  def heartbeat # processes/registrable.rb:56
    @row&.heartbeat
  rescue ActiveRecord::RecordNotFound
    @row = nil
    wake_up
  end

  def deregister # processes/registrable.rb:10, 32
    @heartbeat&.shutdown
    wrap_in_executor { @row&.deregister }
  end

  def stop = @stopped = true

  def wake_up = @writer.write_nonblock(".", exception: false) # processes/interruptible.rb:19

  def interruptible_sleep(seconds) # processes/interruptible.rb:27
    @reader.read_nonblock(11, exception: false) if seconds.positive? && @reader.wait_readable(seconds)
  end
end

# processes/poller.rb, processes/runnable.rb in mode async
class Poller < Process_
  def start(supervisor) # processes/runnable.rb:11, 46, app_executor.rb:21
    @thread = Thread.new do
      register(supervisor)
      run
    rescue Exception => e # rubocop:disable Lint/RescueException
      on_thread_error(e)
      raise
    end
    @thread.report_on_exception = false
    @thread.object_id
  end

  def alive? = @thread&.alive?

  def stop # processes/runnable.rb:18
    super
    wake_up
  end

  def run # processes/poller.rb:24
    until @stopped || !@row # processes/runnable.rb:65
      delay = wrap_in_executor { poll }
      interruptible_sleep(delay)
    end
  ensure
    shutdown
    deregister
  end

  def shutdown; end
end

class Dispatcher < Poller # dispatcher.rb
  def kind = "Dispatcher"
  def metadata = { polling_interval: 1, batch_size: 500, concurrency_maintenance_interval: 600 } # dispatcher.rb:26
  def poll = ScheduledRow.dispatch_next_batch(500).zero? ? 1 : 0 # dispatcher.rb:35
end

class Worker < Poller # worker.rb
  def initialize
    super
    @queues = ENV.fetch("QUEUES", "*").split(",")
    @threads = Integer(ENV.fetch("THREADS", "3"))
    @available = Concurrent::AtomicFixnum.new(@threads) # pool.rb:14
    @mutex = Mutex.new
    @pool = Concurrent::ThreadPoolExecutor.new(min_threads: 0, idletime: 60, fallback_policy: :abort, max_threads: @threads, max_queue: @threads) # pool.rb:51
  end

  def kind = "Worker"
  def metadata = { polling_interval: 0.1, queues: @queues.join(","), thread_pool_size: @threads } # worker.rb:25

  def poll # worker.rb:29
    ReadyRow.claim(@queues, @available.value, @row.id).each { |claimed| post(claimed) }
    @available.value.positive? ? 0.1 : 600
  end

  def post(claimed) # pool.rb:18
    @available.decrement
    Concurrent::Promises.future_on(@pool, claimed) do |execution|
      wrap_in_executor do
        execution.perform
      ensure
        @available.increment
        @mutex.synchronize { wake_up if @available.value.positive? }
      end
    end.on_rejection! { |error| on_thread_error(error) }
  end

  def shutdown # worker.rb:45
    @pool.shutdown
    @pool.wait_for_termination(SHUTDOWN_TIMEOUT)
  end
end

class Supervisor < Process_ # supervisor.rb, async_supervisor.rb
  def initialize(mode)
    @mode = mode
    super()
    @instances = {}
    @signals = []
  end

  def kind = "Supervisor(#{@mode})" # supervisor.rb:53

  def start # supervisor.rb:37
    %i[QUIT INT TERM].each { |signal| trap(signal) { @signals << signal and wake_up } } # supervisor/signals.rb:17
    register
    wrap_in_executor do # supervisor/maintenance.rb:32, claimed_execution.rb:6
      ClaimedRow.left_joins(:process).where(solid_queue_processes: { id: nil }).includes(:job).each do |row|
        row.failed_with(RuntimeError.new("The process that was running this job no longer exists"))
      end
    end
    kinds = [(Dispatcher if ENV["DISPATCHER"]), (Worker if ENV["DISPATCHER"] != "only")].compact # configuration.rb:57
    kinds.each { |kind| start_process(kind) }
    @maintenance = Concurrent::TimerTask.new(run_now: true, execution_interval: PROCESS_ALIVE_THRESHOLD) { wrap_in_executor { ProcessRow.prune(@row) } } # supervisor/maintenance.rb:11
    @maintenance.add_observer { |_, _, error| on_thread_error(error) if error }
    @maintenance.execute
    supervise
  end

  def start_process(kind) # supervisor.rb:89
    if @mode == "fork"
      pid = fork { fork_worker(kind) }
      @instances[pid] = kind
    else
      process = kind.new
      @instances[process.start(@row)] = process
    end
  end

  # Only the row and the life of a fork: its jobs are of no interest here. processes/supervised.rb:28
  def fork_worker(kind)
    process = kind.new
    %w[INT TERM].each { |signal| trap(signal) { process.stop and process.wake_up } }
    process.register(@row)
    process.interruptible_sleep(1) until process.instance_variable_get(:@stopped)
    process.deregister
    exit!
  end

  def supervise # supervisor.rb:71
    until @stopped
      $0 = "solid-queue-#{@mode}-supervisor(1.5.0): supervising #{@instances.keys.join(", ")}" # supervisor.rb:142, processes/procline.rb:8
      while (signal = @signals.shift) # supervisor/signals.rb:31
        stop
        signal == :QUIT ? terminate_immediately : terminate_gracefully
      end
      next if @stopped

      replace_terminated unless @mode == "fork"
      interruptible_sleep(1) # supervisor.rb:82
    end
  ensure
    @maintenance&.shutdown # supervisor.rb:133
    deregister
  end

  def replace_terminated # async_supervisor.rb:20, 25
    @instances.reject { |_, process| process.alive? }.each do |id, process|
      @instances.delete(id)
      wrap_in_executor do # supervisor/maintenance.rb:39
        ProcessRow.find_by(name: process.name)&.fail_all_claimed_executions_with(RuntimeError.new("Thread #{process.name} terminated unexpectedly"))
      end
      start_process(process.class)
    end
  end

  def terminate_gracefully # supervisor.rb:104, async_supervisor.rb:38, timer.rb:7
    return @instances.each_key { |pid| Process.kill(:TERM, pid) && Process.wait(pid) } if @mode == "fork"

    @instances.each_value(&:stop)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + SHUTDOWN_TIMEOUT
    sleep 0.1 while @instances.each_value.any?(&:alive?) && (SHUTDOWN_TIMEOUT.zero? || Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline)
    sleep EXIT_DELAY # none in Solid Queue
    terminate_immediately if @instances.each_value.any?(&:alive?)
  end

  def terminate_immediately # async_supervisor.rb:44, fork_supervisor.rb:24
    @mode == "fork" ? @instances.each_key { |pid| Process.kill(:QUIT, pid) } : exit!
  end
end

# lib/active_job/queue_adapters/solid_queue_adapter.rb
class Adapter
  def enqueue(job) = JobRow.enqueue(job)
  def enqueue_at(job, timestamp) = JobRow.enqueue(job, scheduled_at: Time.at(timestamp))
  def enqueue_after_transaction_commit? = false
end
ActiveJob::Base.queue_adapter = Adapter.new
ActiveJob::Base.logger = nil

module SolidQueue
  # sqmgr's preloading begins here.
  class Supervisor
    def self.start(mode:) = ::Supervisor.new(mode).start # supervisor.rb:11
  end
end

run_command do
  mode = ARGV[ARGV.index("--mode") + 1] if ARGV.include?("--mode") # cli.rb:30
  SolidQueue::Supervisor.start(mode: mode || ENV["SOLID_QUEUE_SUPERVISOR_MODE"] || "fork")
end
