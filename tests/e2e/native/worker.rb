# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# A worker of the Ruby library; jobs.bash describes what it does.
# Usage: worker.rb FOLDER THREADS redis|file [fork]
require 'redis'
require_relative '../../../contrib/heartbeat/sqmgr_heartbeat'

folder, threads, where, child = ARGV
Dir.chdir(folder)
redis = Redis.new(url: ENV.fetch('REDIS_URL')) if where == 'redis'
beat = SqmgrHeartbeat.new(redis: redis, namespace: ENV['NAMESPACE'], tag: "ruby\n", concurrency: Integer(threads))

def fetch
  Dir.children('queue').each do |name|
    File.rename("queue/#{name}", "running/#{name}")
    return name
  rescue Errno::ENOENT
    next
  end
  nil
end

def run(name)
  File.write("ran/#{name}", "x\n", mode: 'a')
  sleep 0.02
  sleep 0.02 while File.exist?('hold')
  File.rename("running/#{name}", "done/#{name}")
end

beat.start
crew = Array.new(Integer(threads)) { Thread.new { beat.work { (name = fetch) ? run(name) : sleep(0.02) } } }
fork { File.write('child', Process.pid) && sleep } if child
crew.each(&:join)
beat.finish
