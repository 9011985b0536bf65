# SPDX-License-Identifier: MIT
# Sleeps for a time, or waits for a file, then inserts a row.
class NoteJob < ActiveJob::Base
  def perform(number, wait)
    wait.is_a?(String) ? (sleep 0.05 until File.exist?(wait)) : sleep(wait)
    Run.note(number)
  end
end
