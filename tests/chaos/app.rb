# SPDX-License-Identifier: MIT
# The application of the chaos test. Its ledger is a file, since Redis is among what the test breaks: a line written
# at once at its end outlives the process that wrote it.
require "sidekiq"

# Debian 12's Sidekiq draws warnings from its redis gem with every job.
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
