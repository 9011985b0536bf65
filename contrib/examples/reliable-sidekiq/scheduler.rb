# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# Moves each due job to its queue in one step. Sidekiq's own scheduler removes a job first and pushes it then: the job
# is lost if Redis refuses it, because it is full or fails over.
require "json"
require "sidekiq"
require "sidekiq/scheduled"

class Scheduler
  MOVE = <<~LUA
    if redis.call("zscore", KEYS[1], ARGV[1]) then
      redis.call("sadd", KEYS[2], ARGV[3])
      redis.call("lpush", KEYS[3], ARGV[2])
      redis.call("zrem", KEYS[1], ARGV[1])
    end
  LUA

  def initialize(*)
    @done = false
  end

  def terminate
    @done = true
  end

  def enqueue_jobs
    Sidekiq.redis do |redis|
      %w[retry schedule].each do |set|
        while !@done && (text = due(redis, set))
          move(redis, set, text)
        end
      end
    end
  end

  private

  def due(redis, set)
    redis.call("ZRANGEBYSCORE", set, "-inf", Time.now.to_f, "LIMIT", 0, 1).first
  end

  def move(redis, set, text)
    job = JSON.parse(text)
    pushed = JSON.generate(job.merge("enqueued_at" => Time.now.to_f))
    redis.call("EVAL", MOVE, 3, set, "queues", "queue:#{job["queue"]}", text, pushed, job["queue"])
  end
end

# If Redis is down at its start, the thread of Sidekiq 7 that calls this dies. No retry is moved then, and the process
# dies of that error with its running jobs once it is quieted.
module Scheduler::Survives
  private

  def cleanup
    super
  rescue => error
    Sidekiq.logger.warn("scheduler: #{error.message}")
  end
end
Sidekiq::Scheduled::Poller.prepend(Scheduler::Survives) if Sidekiq::Scheduled::Poller.private_method_defined?(:cleanup)
