# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# Tasks of many jobs, each with a row in PostgreSQL that records its state. A job class takes part by `include
# AsyncTask` and `sidekiq_options async_task: true`; the first argument of its jobs is the task's id.
require "connection_pool"
require "json"
require "pg"
require "sidekiq"

module AsyncTask
  # The work is impossible, and a retry would not help.
  class Failed < StandardError; end

  # A later run of the same job has begun.
  class Superseded < StandardError; end

  # A process stopped during a transaction does not hold its locks forever.
  POOL = ConnectionPool.new(size: 12) { PG.connect(options: "-c idle_in_transaction_session_timeout=10s") }

  def self.db
    POOL.with do |db|
      db.reset unless db.status == PG::CONNECTION_OK
      yield db
    end
  end

  # Rows are inserted first and jobs pushed second: a job that ran before the commit would not find its row. The sweep
  # finds jobs that were not pushed, because Redis was down or the process died in between.
  def self.transaction
    pushes = []
    db { |db| db.transaction { yield db, pushes } }
    push(pushes)
  end

  def self.push(jobs)
    jobs.each { |job| Sidekiq::Client.push(job) }
  rescue StandardError => e
    Sidekiq.logger.warn("jobs are left to the sweep: #{e.message}")
  end

  # LAST is the class of a job that runs when all others of the task have ended. Returns the task's id.
  def self.start(name, jobs:, last: nil)
    task = nil
    transaction do |db, pushes|
      task = db.exec_params(<<~SQL, [name, jobs, last&.name]).getvalue(0, 0).to_i
        INSERT INTO tasks (name, jobs, last) VALUES ($1, $2, $3) RETURNING id
      SQL
      yield Step.new(db, pushes, task)
    end
    task
  end

  # Commits the work of a job together with its end, in one transaction.
  Step = Struct.new(:db, :pushes, :task) do
    def exec(sql, *values)
      db.exec_params(sql, values)
    end

    def enqueue(job_class, lists)
      jobs = lists.map { |list| { "class" => job_class, "jid" => SecureRandom.hex(12), "args" => [task, *list] } }
      exec(<<~SQL, task, job_class.name, JSON.dump(jobs.map { |job| job.slice("jid", "args") }))
        INSERT INTO events (task_id, class, jid, args)
        SELECT $1, $2, jid, args FROM jsonb_to_recordset($3) AS job (jid text, args jsonb)
      SQL
      pushes.concat(jobs)
    end

    # Without the lock, two jobs that end at once would each assume that the other is still running.
    def enqueue_last
      row = exec("SELECT last FROM tasks WHERE id = $1 AND last IS NOT NULL FOR NO KEY UPDATE", task).first
      return if !row || exec("SELECT FROM events WHERE task_id = $1 AND NOT final LIMIT 1", task).any?

      exec("UPDATE tasks SET last = NULL WHERE id = $1", task)
      enqueue(Object.const_get(row["last"]), [[]])
    end
  end

  # One run of a job. Only the latest run can change the event: the number of its attempt is a fence.
  class Run
    attr_reader :attempt, :ended

    # If a worker died, or Sidekiq pushed its jobs back, the event is still `working`, and the job runs again. A job
    # whose event is an error is a duplicate: the other one waits for its retry.
    def self.begin(jid)
      row = AsyncTask.db { |db| db.exec_params(<<~SQL, [jid, Process.pid]).first }
        UPDATE events SET state = 'working', attempt = attempt + 1, pid = $2, changed_at = clock_timestamp()
        WHERE jid = $1 AND state IN ('enqueue', 'working') RETURNING task_id, attempt
      SQL
      row && new(jid, row["task_id"].to_i, row["attempt"].to_i)
    end

    def initialize(jid, task, attempt)
      @jid, @task, @attempt = jid, task, attempt
    end

    def message(text)
      AsyncTask.db do |db|
        db.exec_params("UPDATE events SET messages = messages || $2::text WHERE jid = $1", [@jid, text])
      end
    end

    def late
      message("attempt #{@attempt} came too late")
    end

    def end_as(state, text = nil)
      AsyncTask.transaction do |db, pushes|
        ended = db.exec_params(<<~SQL, [@jid, @attempt, state, text]).cmd_tuples
          UPDATE events
          SET state = $3, messages = array_remove(messages || $4::text, NULL), changed_at = clock_timestamp()
          WHERE jid = $1 AND attempt = $2 AND state = 'working'
        SQL
        raise Superseded if ended.zero?

        step = Step.new(db, pushes, @task)
        yield step if block_given?
        step.enqueue_last unless state == "error"
      end
      @ended = true
    end
  end

  def self.included(job_class)
    job_class.include Sidekiq::Job
  end

  attr_accessor :run

  def attempt
    run.attempt
  end

  def message(text)
    run.message(text)
  end

  def finish(&effect)
    run.end_as("finish", &effect)
  end

  class ServerMiddleware
    def call(job, payload, _queue)
      return yield unless payload["async_task"]

      job.run = Run.begin(payload["jid"])
      return unless job.run

      begin
        yield
        job.finish unless job.run.ended
      rescue Superseded
        job.run.late
      rescue Failed => e
        ended?(job.run, "failed", e.message)
      rescue StandardError => e
        raise if ended?(job.run, "error", "#{e.class}: #{e.message}")
      end
    end

    private

    def ended?(run, state, text)
      run.end_as(state, text)
    rescue Superseded
      run.late
      false
    end
  end

  # Inserts a new job's row. Also the only way back from an error, because Sidekiq pushes retries like any job.
  class ClientMiddleware
    def call(_job_class, payload, _queue, _redis)
      return yield unless payload["async_task"]

      values = [payload["jid"], payload["args"].first, payload["class"].to_s, JSON.dump(payload["args"])]
      AsyncTask.db { |db| db.exec_params(<<~SQL, values) }
        INSERT INTO events (jid, task_id, class, args) VALUES ($1, $2, $3, $4)
        ON CONFLICT (jid) DO UPDATE SET state = 'enqueue', changed_at = clock_timestamp()
        WHERE events.state = 'error' AND NOT events.gave_up
      SQL
      yield
    end
  end

  # No further retry: after Sidekiq's last one, or if the sweep finds that a retry is useless.
  def self.give_up(db, pushes, jids, text = nil)
    tasks = db.exec_params(<<~SQL, [PG::TextEncoder::Array.new.encode(jids), text]).column_values(0)
      UPDATE events
      SET state = 'error', gave_up = true, messages = array_remove(messages || $2::text, NULL),
          changed_at = clock_timestamp()
      WHERE jid = ANY($1) AND NOT final RETURNING task_id
    SQL
    tasks.uniq.sort.each { |task| Step.new(db, pushes, task.to_i).enqueue_last }
  end

  Sidekiq.configure_client do |config|
    config.client_middleware { |chain| chain.add ClientMiddleware }
  end

  Sidekiq.configure_server do |config|
    require_relative "sweep"
    config.client_middleware { |chain| chain.add ClientMiddleware }
    config.server_middleware { |chain| chain.add ServerMiddleware }
    config.death_handlers << lambda { |payload, _error|
      transaction { |db, pushes| give_up(db, pushes, [payload["jid"]]) } if payload["async_task"]
    }
    config.on(:startup) { Sweep.start }
  end
end
