# SPDX-License-Identifier: MIT
# The application of the demo: two kinds of jobs, which count their starts and ends in Redis.
require "sidekiq"

# Debian 12's Sidekiq causes warnings of its redis gem with every job.
Redis.silence_deprecations = true if defined?(Redis) && Redis.respond_to?(:silence_deprecations=)

module Counted
  def counted
    Sidekiq.redis { |redis| redis.hincrby("ledger:started", jid, 1) }
    yield
    Sidekiq.redis { |redis| redis.hincrby("ledger:done", jid, 1) }
  end
end

class Report
  include Sidekiq::Worker
  include Counted
  sidekiq_options retry: false

  def perform(seconds)
    counted { sleep seconds }
  end
end

# Retains its memory forever, as a leak does.
class Import
  include Sidekiq::Worker
  include Counted
  sidekiq_options retry: false

  HOARD = []

  def perform(megabytes, seconds)
    counted do
      Sidekiq.redis { |redis| redis.set("demo:bloated", Process.pid) }
      HOARD << "x" * (megabytes << 20)
      sleep seconds
    end
  end
end
