# SPDX-License-Identifier: MIT
# One run of a job: who ran it, and which process had loaded the application for that one.
class Run < ActiveRecord::Base
  LOADER = Process.pid

  def self.note(number, **what)
    create!(number: number, worker: ENV["SQMGR_WORKER"], pid: Process.pid, loader: LOADER, **what)
  end
end
