# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# Requeues jobs that were lost between Redis and a worker: events that have not ended, without a job anywhere in Redis.
require "sidekiq/api"
require "sidekiq/launcher"

module AsyncTask
  module Sweep
    EVERY = 3
    # A job on its way from its queue to its worker is in no key until the worker's next heartbeat. So an event counts
    # as lost if its job is missing for longer than two heartbeats, without a change meanwhile. If that is wrong,
    # because a worker is too slow, the job runs twice at once, and only the later run counts.
    AFTER = 2 * Sidekiq::Launcher::BEAT_PAUSE + 2
    LIMIT = 5

    def self.start
      Thread.new do
        loop do
          sleep EVERY
          run
        rescue StandardError => e
          Sidekiq.logger.error("sweep: #{e.class}: #{e.message}")
        end
      end
    end

    def self.run
      AsyncTask.transaction do |db, pushes|
        next unless db.exec("SELECT pg_try_advisory_xact_lock(7433)").getvalue(0, 0) == "t"

        open = db.exec("SELECT jid FROM events WHERE NOT final").column_values(0)
        next if open.empty?

        lost = look(db, open - jids_in_redis)
        hopeless, lost = lost.partition { |event| event["swept"].to_i > LIMIT || dead?(event["jid"]) }
        pushes.concat(lost.map { |event| job_of(event) })
        AsyncTask.give_up(db, pushes, hopeless.map { |event| event["jid"] }, "given up: its workers died")
      end
    end

    # Returns the lost events, and records events that are missing for the first time.
    def self.look(db, missed)
      missed = PG::TextEncoder::Array.new.encode(missed)
      db.exec_params(<<~SQL, [missed])
        UPDATE events SET missed_at = NULL WHERE missed_at IS NOT NULL AND NOT final AND jid <> ALL($1)
      SQL
      lost = db.exec_params(<<~SQL, [missed, AFTER]).to_a
        UPDATE events
        SET swept = swept + 1, missed_at = clock_timestamp(), messages = messages || 'put back by the sweep'::text
        WHERE jid = ANY($1) AND NOT final AND missed_at > changed_at AND missed_at < now() - $2 * interval '1 second'
        RETURNING jid, class, args, swept
      SQL
      db.exec_params(<<~SQL, [missed])
        UPDATE events SET missed_at = clock_timestamp()
        WHERE jid = ANY($1) AND NOT final AND (missed_at IS NULL OR missed_at < changed_at)
      SQL
      lost
    end

    def self.job_of(event)
      event.slice("jid").merge("class" => Object.const_get(event["class"]), "args" => JSON.parse(event["args"]))
    end

    # The work list of a dead process exists for a minute, unless sqmgr has requeued its jobs.
    def self.jids_in_redis
      waiting = Sidekiq::Queue.all + [Sidekiq::RetrySet.new, Sidekiq::ScheduledSet.new]
      running = Sidekiq::Workers.new.map { |_, _, work| work.respond_to?(:job) ? work.job.jid : work["payload"]["jid"] }
      waiting.flat_map { |jobs| jobs.map(&:jid) } + running
    end

    def self.dead?(jid)
      !Sidekiq::DeadSet.new.find_job(jid).nil?
    end
  end
end
