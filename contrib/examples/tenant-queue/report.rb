# SPDX-License-Identifier: MIT
# The application: a tenant's reports. It notes what it does in the file `work`, with which the queue's own word of it
# is compared.
require "securerandom"
require_relative "tenant_queue"

class Report
  include Async
  attr_reader :tenant

  def initialize(tenant)
    @tenant = tenant
  end

  # What it returns becomes the statistics of the job.
  def execute(name, seconds)
    noted(name) do
      sleep seconds
      raise ArgumentError, "there are no figures for #{name}" if name.start_with?("bad")

      { pages: (seconds * 100).round }
    end
  end

  # As if it took more memory than there is.
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
