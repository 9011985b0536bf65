# SPDX-License-Identifier: MIT
# The application: a tenant's reports. Records its work in the file `work`, with which the records of the queue are
# compared.
require "securerandom"
require_relative "tenant_queue"

class Report
  include Async
  attr_reader :tenant

  def initialize(tenant)
    @tenant = tenant
  end

  # The return value becomes the statistics of the job.
  def execute(name, seconds)
    noted(name) do
      sleep seconds
      raise ArgumentError, "there are no figures for #{name}" if name.start_with?("bad")

      { pages: (seconds * 100).round }
    end
  end

  # Simulates a job that needs more memory than there is.
  def exhaust(name)
    noted(name) { Process.kill(:KILL, Process.pid) && sleep }
  end

  private

  def noted(name)
    token = SecureRandom.hex(8)
    note(name, token, "begin")
    yield
  ensure
    note(name, token, "end")
  end

  def note(name, token, event)
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    File.write("work", [name, tenant, token, event, now].join("\t") + "\n", mode: "a")
  end
end
