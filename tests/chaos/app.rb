# SPDX-License-Identifier: MIT
# The application of the chaos test. Its ledger is a file, because the test also breaks Redis: a line is written
# immediately, and survives the process.
require "sidekiq"

# Debian 12's Sidekiq causes warnings of its redis gem with every job.
Redis.silence_deprecations = true if defined?(Redis) && Redis.respond_to?(:silence_deprecations=)

class ChaosJob
  include Sidekiq::Worker
  sidekiq_options retry: false

  LEDGER = File.open(File.join(ENV.fetch("CHAOS"), "ledger"), "a")

  def perform(seconds)
    start_time = File.read("/proc/self/stat").rpartition(")").last.split[19]
    run = format("%s %d.%s.%s", jid, Process.pid, start_time, SecureRandom.hex(6))
    LEDGER.syswrite("started #{run}\n")
    sleep seconds
    LEDGER.syswrite("done #{run}\n")
  end
end
