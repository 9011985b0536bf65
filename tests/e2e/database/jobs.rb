# SPDX-License-Identifier: MIT
# Jobs for the stand-ins of Solid Queue and GoodJob. They know nothing of sqmgr, and record in files that they begin and
# end, with pid and time: the records do not depend on the database.
require "active_job"
require "active_support/all"

module Records
  # A line of this length is appended as a whole.
  def self.write(name, *fields)
    File.open(File.join(ENV.fetch("RECORDS"), name), "a", 0o644) { |file| file.syswrite(fields.join(" ") << "\n") }
  end
end

class RecordedJob < ActiveJob::Base
  def perform(*arguments)
    Records.write("started", job_id, Process.pid, Time.now.to_f)
    work(*arguments)
    Records.write("done", job_id, Process.pid, Time.now.to_f)
  end

  private

  def wait_for(path)
    sleep 0.05 until File.exist?(path)
  end
end

class Nap < RecordedJob
  def work(seconds) = sleep(seconds)
end

class Hold < RecordedJob
  def work(path) = wait_for(path)
end

class Leak < RecordedJob
  def work(megabytes, path)
    kept = "x" * (megabytes.to_i << 20)
    wait_for(path)
    kept.clear
  end
end

class Failing < RecordedJob
  def work = raise("this job fails")
end

# COUNT CLASS ARGUMENT..., of which ARGUMENT may be FROM-TO: evenly spread. QUEUE names the queue; WAIT is in seconds.
def enqueue(count, name, *texts)
  count = Integer(count)
  count.times do |number|
    arguments = texts.map do |text|
      case text
      when /\A(\d+)-(\d+)\z/ then $1.to_f + ($2.to_f - $1.to_f) * number / count
      when /\A\d+(\.\d+)?\z/ then text.to_f
      else text
      end
    end
    options = { queue: ENV.fetch("QUEUE", "default") }
    options[:wait] = ENV["WAIT"].to_f if ENV["WAIT"]
    Records.write("sent", name.constantize.set(**options).perform_later(*arguments).job_id)
  end
end
