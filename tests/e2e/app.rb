# SPDX-License-Identifier: MIT
# The application of the end-to-end tests. Every job counts its starts and ends in Redis.
require "sidekiq"

# Debian 12's Sidekiq causes warnings of its redis gem with every job.
Redis.silence_deprecations = true if defined?(Redis) && Redis.respond_to?(:silence_deprecations=)

# A job that must end between two heartbeats needs them further apart than the default of 5 or 10 seconds.
if ENV["BEAT_PAUSE"] && defined?(Sidekiq::Launcher)
  Sidekiq::Launcher.send(:remove_const, :BEAT_PAUSE)
  Sidekiq::Launcher.const_set(:BEAT_PAUSE, Integer(ENV["BEAT_PAUSE"]))
end

module Counted
  def counted
    Sidekiq.redis { |redis| redis.hincrby("ledger:started", jid, 1) }
    yield
    Sidekiq.redis { |redis| redis.hincrby("ledger:done", jid, 1) }
  end

  def wait_for(path)
    sleep 0.05 until File.exist?(path)
  end

  def self.included(job)
    job.include Sidekiq::Worker
    job.sidekiq_options retry: false
  end
end

class Sleep
  include Counted

  def perform(seconds)
    counted { sleep seconds }
  end
end

# Runs until a file exists.
class Hold
  include Counted

  def perform(path, _ballast = nil)
    counted { wait_for(path) }
  end
end

# Like Hold, for `interruptible`.
class Import < Hold
end

# Allocates memory that it never frees, reports its pid, and runs until a file exists.
class Leak
  include Counted
  HOARD = []

  def perform(megabytes, path)
    counted do
      HOARD << "x" * (megabytes << 20)
      Sidekiq.redis { |redis| redis.set("leak:pid", Process.pid) }
      wait_for(path)
    end
  end
end

class Crash
  include Counted

  def perform
    counted { Process.kill(:KILL, Process.pid) }
  end
end

# Leaves an orphan that exits a moment later.
class Orphan
  include Counted

  def perform
    counted do
      system("(sleep 0.3; redis-cli -s \"${REDIS_URL#unix://}\" set orphan:pid $$) >/dev/null &")
    end
  end
end
