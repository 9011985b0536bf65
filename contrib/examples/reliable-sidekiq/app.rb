# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# Jobs that record start and end in a ledger, which is a file: no failure of Redis affects it.
require "sidekiq"
require_relative "outbox"
require_relative "scheduler"

# Debian 12's Sidekiq causes warnings of its redis gem with every job.
Redis.silence_deprecations = true if defined?(Redis) && Redis.respond_to?(:silence_deprecations=)

module Ledger
  # Writes each line at once, so that lines of several processes do not mix.
  def self.write(event, job)
    line = [format("%.3f", Time.now), event, job["jid"], job["queue"], job["class"], job["args"].first, Process.pid]
    File.open(ENV.fetch("LEDGER"), "a") { |file| file.syswrite("#{line.join(" ")}\n") }
  end

  class Middleware
    def call(_instance, job, _queue)
      Ledger.write("begun", job)
      yield
      Ledger.write("done", job)
    rescue => error
      Ledger.write("failed", job)
      raise error
    end
  end
end

class Work
  include Sidekiq::Job
  sidekiq_options retry: 1

  def perform(_name)
  end
end

# Runs until its file exists.
class Hold
  include Sidekiq::Job
  sidekiq_options retry: 1

  def perform(path)
    sleep 0.1 until File.exist?(path)
  end
end

class Broken
  include Sidekiq::Job
  sidekiq_options retry: 1
  sidekiq_retry_in { 1 }

  def perform(name)
    raise ArgumentError, "#{name} cannot be done"
  end
end

OUTBOX = Outbox.new(ENV.fetch("OUTBOX"), replicas: 1, journal: lambda { |event, jobs|
  jobs.each { |job| Ledger.write(event, job) }
}).install

# No automatic reconnects: WAIT on another connection would report on another server.
REDIS = {
  url: "redis://mymaster",
  sentinels: ENV.fetch("SENTINELS").split.map { |host| {host: host, port: 26379} },
  role: :master,
  reconnect_attempts: 0
}.freeze

Sidekiq.configure_client { |config| config.redis = REDIS }

Sidekiq.configure_server do |config|
  # A fetch that times out while Redis is slow loses the job in flight.
  config.redis = REDIS.merge(timeout: 30)
  config.server_middleware { |chain| chain.add Ledger::Middleware }
  config.death_handlers << ->(job, _error) { Ledger.write("dead", job) }

  # A failed job whose retry and death Redis both refused: no other place has it.
  config.error_handlers << proc do |error, context|
    if context[:context] == "Internal exception!"
      job = JSON.parse(context[:jobstr])
      Ledger.write("kept", job)
      OUTBOX.keep([job], error.message)
    end
  end

  options = config.respond_to?(:options) ? config.options : config
  options[:scheduled_enq] = Scheduler
  # Values for a test of a minute.
  options[:poll_interval_average] = 2
  config.on(:startup) { OUTBOX.start }
end
