# SPDX-License-Identifier: MIT
# The application of many hosts' tests. Its jobs are counted in a file, LEDGER, and not in Redis, which may lose what was
# last written there.
require_relative ENV["SENTINELS"] ? "sentinel-app" : "app"

# Two lines for each job would hide what matters.
Sidekiq.logger.level = Logger::WARN

class Noted
  include Sidekiq::Worker
  sidekiq_options retry: false

  def note(word)
    File.write(ENV.fetch("LEDGER"), "#{word} #{jid} #{Socket.gethostname}\n", mode: "a")
  end

  # Takes so long, and as long as there is a file of that name.
  def perform(seconds, path = "")
    note("started")
    sleep seconds
    sleep 0.05 while File.exist?(path)
    note("done")
  end
end

# Pushes jobs until there is no FOLDER/go, a few more than are run, and notes each that Redis took; while there is
# FOLDER/pause it pushes none. A Redis that is away is asked again.
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
