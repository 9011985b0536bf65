# SPDX-License-Identifier: MIT
# One run of a job: the process that ran it, and the process that had loaded the
# application.
class Run < ActiveRecord::Base
  LOADER = Process.pid

  def self.note(number, **what)
    create!(number: number, worker: ENV["SQMGR_WORKER"], pid: Process.pid, loader: LOADER, **what)
  end
end
