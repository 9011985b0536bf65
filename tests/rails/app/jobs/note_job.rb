# SPDX-License-Identifier: MIT
# Leaves a row, once it has slept for so long, or a file has come to be.
class NoteJob < ActiveJob::Base
  def perform(number, wait)
    wait.is_a?(String) ? (sleep 0.05 until File.exist?(wait)) : sleep(wait)
    Run.note(number)
  end
end
