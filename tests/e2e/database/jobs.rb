# SPDX-License-Identifier: MIT
# What the stand-ins of Solid Queue and GoodJob have in common: their connection, their commands, and jobs. Jobs know nothing
# of sqmgr, and record in files that they begin and end, with pid and time: the records do not depend on the database.
require "active_job"
require "active_record"
require "active_support/all"
require "concurrent"
require "securerandom"
require "socket"

$stdout.sync = $stderr.sync = true # Solid Queue: supervisor.rb:146
ActiveRecord.default_timezone = :utc if ActiveRecord.respond_to?(:default_timezone=)
ActiveRecord::Base.establish_connection(ENV.fetch("DATABASE_URL") + (ENV["DATABASE_URL"].include?("?") ? "&" : "?") + "pool=30")

# Does what the executor of Rails does at its end: gives connections back. Solid Queue: app_executor.rb:5.
def wrap_in_executor
  yield
ensure
  ActiveRecord::Base.connection_pool.release_connection
end

def on_thread_error(error) = warn("#{error.class}: #{error.message.lines.first}") # Solid Queue: app_executor.rb:13

# The command `start` is the block. `schema` executes a file of tests/frameworks, one statement after another: not all drivers
# take several at once.
def run_command
  case ARGV.shift
  when "start" then yield
  when "enqueue" then enqueue(*ARGV)
  when "schema"
    File.read(ARGV[0]).gsub(/^--.*$/, "").split(/;\s*$/).map(&:strip).reject(&:empty?).each { |sql| ActiveRecord::Base.connection.execute(sql) }
  else abort("Usage: STAND-IN start|enqueue|schema ...")
  end
end

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
