# SPDX-License-Identifier: MIT
# The application of the row "deploy": a job that sleeps, and records its starts and its end in Redis.
require "sidekiq"

# Debian 12's Sidekiq causes warnings of its redis gem with every job.
Redis.silence_deprecations = true if defined?(Redis) && Redis.respond_to?(:silence_deprecations=)

class DeployJob
  include Sidekiq::Worker
  sidekiq_options retry: false

  def perform(seconds)
    Sidekiq.redis do |redis|
      redis.hincrby("ledger:started", jid, 1)
      redis.rpush("ledger:times", Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond))
    end
    sleep seconds
    Sidekiq.redis { |redis| redis.hincrby("ledger:done", jid, 1) }
  end
end
