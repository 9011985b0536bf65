# SPDX-License-Identifier: MIT
# Counts the jobs that this Sidekiq process has done, and those that failed, and adds the figures to its heartbeat in
# Redis. Sidekiq itself publishes only totals of all processes. sqmgr judges a release by these figures (rollout_trial),
# and starts workers with this file in RUBYOPT.
#
# Any Ruby process may load this file, from 2.5 on: it waits until Sidekiq is loaded, and requires nothing. No error in it
# reaches Sidekiq.
module SqmgrOutcomes
  CLASSES = %w[Sidekiq::Launcher Sidekiq::Processor].freeze
  CLASSES_MAX = 100 # job classes whose failures are counted, each by at most so many bytes of its name
  NAME_MAX = 100
  TTL = 60 # seconds, as Sidekiq's own

  # Extends the counters of Sidekiq::Processor. With an argument, Sidekiq puts a number back that it could not write.
  module Processed
    def incr(*amount)
      SqmgrOutcomes.count_processed if amount.empty?
      super
    end
  end

  module Failed
    def incr(*amount)
      SqmgrOutcomes.count_failed if amount.empty?
      super
    end
  end

  # Prepended to Sidekiq::Launcher.
  module Heartbeat
    private

    def ❤(*)
      result = super
      SqmgrOutcomes.publish(self)
      result
    end
  end

  @lock = Mutex.new
  @processed = @failed = 0
  @classes = Hash.new(0)

  class << self
    def hook
      name = Module.instance_method(:name) # a class may have a `name` of its own
      TracePoint.new(:end) do |trace|
        begin
          if CLASSES.include?(name.bind(trace.self).call) && attach
            trace.disable
            leave_environment
          end
        rescue StandardError
          trace.disable
        end
      end.enable
    rescue ArgumentError
      nil # TruffleRuby has no such events: nothing is counted
    end

    def count_processed
      @lock.synchronize { @processed += 1 }
    rescue StandardError
      nil
    end

    def count_failed
      context = defined?(Sidekiq::Context) && Sidekiq::Context.current
      name = context.respond_to?(:key?) ? context[:class].to_s.byteslice(0, NAME_MAX).scrub("") : ""
      @lock.synchronize do
        @failed += 1
        @classes[name] += 1 if !name.empty? && (@classes.key?(name) || @classes.size < CLASSES_MAX)
      end
    rescue StandardError
      nil
    end

    # After the heartbeat. If that could not be written and the key has expired, nothing is written either: Sidekiq tells
    # by the key whether it has to register its process again.
    def publish(launcher)
      key = launcher.send(:identity)
      figures = fields
      launcher.send(:redis) do |connection|
        next unless connection.hget(key, "beat")

        connection.multi do |transaction|
          if transaction.respond_to?(:hmset)
            transaction.hmset(key, *figures)
          else
            transaction.call("HSET", key, *figures)
          end
          transaction.expire(key, TTL)
        end
      end
    rescue StandardError
      nil
    end

    private

    # Returns true once the classes are complete.
    def attach
      return false unless defined?(Sidekiq::Processor::PROCESSED) && defined?(Sidekiq::Processor::FAILURE) &&
                          defined?(Sidekiq::Launcher) && Sidekiq::Launcher.private_method_defined?(:❤)

      Sidekiq::Processor::PROCESSED.extend(Processed)
      Sidekiq::Processor::FAILURE.extend(Failed)
      Sidekiq::Launcher.prepend(Heartbeat)
      true
    end

    def fields
      @lock.synchronize do
        name, failures = @classes.max_by { |_, n| n }
        # Sidekiq counts a failure before the job.
        ["sqmgr_processed", [@processed, @failed].max, "sqmgr_failed", @failed, "sqmgr_failed_class", name || "",
         "sqmgr_failed_class_count", failures || 0]
      end
    end

    # Removes this file from the options that child processes inherit.
    def leave_environment
      environments = defined?(Bundler::ORIGINAL_ENV) ? [ENV, Bundler::ORIGINAL_ENV] : [ENV]
      environments.each do |environment|
        leave_options(environment, "RUBYOPT", nil)
        leave_options(environment, "BUNDLER_ORIG_RUBYOPT", "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL")
      end
    end

    def leave_options(environment, name, none)
      options = environment[name].to_s
      left = options.sub(/(?<!\S)-r#{Regexp.escape(__FILE__)}(\s+|\z)/, "")
      return if left == options

      left = left.strip.empty? ? none : left.rstrip
      left ? environment[name] = left : environment.delete(name)
    end
  end
end

SqmgrOutcomes.hook
