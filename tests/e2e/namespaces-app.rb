# SPDX-License-Identifier: MIT
# The application of the tests of workers in namespaces. Each job records the process that runs it: the worker's name in
# RAN_BY, the PID namespace, and the pid there.
require_relative "app"

# Hides the two log lines of each job.
Sidekiq.logger.level = Logger::WARN

module Placed
  def counted
    by = [ENV.fetch("RAN_BY"), File.readlink("/proc/self/ns/pid"), Process.pid].join(" ")
    Sidekiq.redis { |redis| redis.call("hset", "ran", jid, by) }
    super
  end
end
[Sleep, Hold, Leak].each { |job| job.prepend(Placed) }

# Pushes jobs while FOLDER/go exists, and prints the id of each.
def feed(folder)
  require "sidekiq/api"
  while File.exist?("#{folder}/go")
    puts Sleep.perform_async(0.2) if Sidekiq::Queue.new.size < 20
    $stdout.flush
    sleep 0.05
  end
end
