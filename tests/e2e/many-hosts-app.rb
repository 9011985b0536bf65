# SPDX-License-Identifier: MIT
# The application of the tests with many hosts. Counts jobs in a file, LEDGER: Redis may lose its latest writes.
require_relative ENV["SENTINELS"] ? "sentinel-app" : "app"

# Hides the two log lines of each job.
Sidekiq.logger.level = Logger::WARN

class Noted
  include Sidekiq::Worker
  sidekiq_options retry: false

  def note(word)
    File.write(ENV.fetch("LEDGER"), "#{word} #{jid} #{Socket.gethostname}\n", mode: "a")
  end

  # Takes this long, and as long as a file of that name exists.
  def perform(seconds, path = "")
    note("started")
    sleep seconds
    sleep 0.05 while File.exist?(path)
    note("done")
  end
end

# Pushes jobs while FOLDER/go exists, slightly more than are run, and records each that Redis accepted. Pauses while
# FOLDER/pause exists. Retries while Redis is down.
def feed(folder, capacity)
  require "sidekiq/api"
  while File.exist?("#{folder}/go")
    if File.exist?("#{folder}/pause")
      File.write("#{folder}/paused", "")
    else
      places(capacity).times { File.write("#{folder}/pushed", "#{Noted.perform_async(0.5)}\n", mode: "a") }
    end
    sleep 0.2
  end
end

def places(capacity)
  [capacity - Sidekiq::Queue.new.size, 0].max
rescue Redis::BaseError
  0
end
