# SPDX-License-Identifier: MIT
# The application of preload-ruby.bats. Writes what it observes to the folder where it runs.
require_relative "app"
require "json"
require "securerandom"

module Told
  # What a Ruby child inherits: variables, options, sockets.
  CHILD = <<~RUBY.tr("\n", ";")
    fds = Dir.children("/proc/self/fd").map(&:to_i).select { |fd| fd > 2 }
    sockets = fds.select { |fd| File.socket?("/proc/self/fd/\#{fd}") }
    puts [ENV["RUBYOPT"], ENV["SQMGR_TEMPLATE"], sockets, $LOADED_FEATURES.grep(/sqmgr-preload/)].inspect
  RUBY

  def self.line(file, text = Process.pid)
    File.write(file, "#{text}\n", mode: "a")
  end

  def self.child
    IO.popen(["ruby", "-e", CHILD], &:read).chomp
  end

  def self.original_child
    defined?(Bundler) ? Bundler.with_original_env { child } : child
  end

  def self.random
    [rand(2**64), Random.rand, [*1..99].shuffle.first(9), SecureRandom.hex(8)].map(&:to_s)
  end
end

# Reports what its worker inherits, and keeps the worker busy until a file exists.
class Tell
  include Counted

  def perform(path)
    counted do
      facts = { env: ENV.to_h, child: Told.child, original: Told.original_child, random: Told.random }
      File.write("facts.#{Process.pid}.new", JSON.generate(facts))
      File.rename("facts.#{Process.pid}.new", "facts.#{Process.pid}")
      wait_for(path)
    end
  end
end

# Reports the caller of a method of that object.
module Watched
  def self.watch(owner, name)
    return unless owner.respond_to?(name)

    owner.singleton_class.prepend(Module.new do
      define_method(name) do |*arguments|
        Told.line("called.#{name}")
        super(*arguments)
      end
    end)
  end
end

Sidekiq.configure_server do |config|
  config.on(:fork) { Told.line("forks") }
  config.on(:startup) { Told.line("startups") }
  trap(:TERM) { Told.line("terms") }
  at_exit { Told.line("exits") }
  Watched.watch(Process, :warmup)
  Process.singleton_class.prepend(Module.new do
    def _fork
      raise "not now" if File.exist?("refuse")

      super.tap { |child| sleep 0.3 if child > 0 && File.exist?("dawdle") }
    end
  end)

  # State that forks would share.
  Told.random
  Sidekiq::CLI.instance.identity
  Sidekiq.logger.info("booting")
  BUFFERED = File.open("buffered", "a")
  BUFFERED.write("once\n")
  Sidekiq.redis { |redis| redis.set("booted", Process.pid) }

  Told.line("boot", Told.child)
  Told.line("boot", Told.original_child)
  Told.line("loaded")
end
