# SPDX-License-Identifier: MIT
# The application of the upgrade matrix. Counts jobs in a file, LEDGER.
require_relative "../e2e/app"

# Hides the two log lines of each job.
Sidekiq.logger.level = Logger::WARN

class Noted
  include Sidekiq::Worker
  sidekiq_options retry: false

  def note(word)
    File.write(ENV.fetch("LEDGER"), "#{word} #{jid} #{Socket.gethostname}\n", mode: "a")
  end

  def perform(seconds)
    note("started")
    sleep seconds
    note("done")
  end
end

# Pushes jobs while FOLDER/go exists, slightly more than are run, and records each that Redis accepted. Retries while Redis
# is down.
def feed(folder, capacity)
  require "sidekiq/api"
  while File.exist?("#{folder}/go")
    places(capacity).times { File.write("#{folder}/pushed", "#{Noted.perform_async(0.5)}\n", mode: "a") }
    sleep 0.2
  end
end

def places(capacity)
  [capacity - Sidekiq::Queue.new.size, 0].max
rescue Redis::BaseError
  0
end
