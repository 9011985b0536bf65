# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# Moves due jobs to their queues, each in one step. Sidekiq's own takes a job out first and pushes it then: one that
# Redis does not take back, since it is full or fails over, is lost.
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

# Where Redis is away as it begins, the thread of Sidekiq 7 that calls this dies. No retry is moved then, and the process
# dies of that error, with the jobs it runs, once it is told to take no more.
module Scheduler::Survives
  private

  def cleanup
    super
  rescue => error
    Sidekiq.logger.warn("scheduler: #{error.message}")
  end
end
Sidekiq::Scheduled::Poller.prepend(Scheduler::Survives) if Sidekiq::Scheduled::Poller.private_method_defined?(:cleanup)
