# SPDX-License-Identifier: MIT
# Stands in for a worker of Resque, which Debian does not package: has the keys in Redis, the process titles and the
# signals of Resque 1.27 to 3 with TERM_CHILD=1. Its jobs keep the same ledger as those of app.rb.
# Usage: resque_worker.rb QUEUE,...    INTERVAL and HEARTBEAT in the environment: seconds, 5 and 60 as with Resque
#        resque_worker.rb --enqueue COUNT JOB ARGUMENT...
require "json"
require "redis"
require "socket"
require "time"

SERVER = ENV.fetch("REDIS_URL").delete_prefix("unix://")
SPACE = ENV.fetch("RESQUE_NAMESPACE", "resque")
VERSION = "1.27.4"

def connect
  Redis.new(path: SERVER)
end

def key(*parts)
  [SPACE, *parts].join(":")
end

# Runs in the child.
class Jobs
  def initialize(redis)
    @redis = redis
  end

  def nap(_, seconds)
    sleep seconds
  end

  def hold(_, path)
    @redis.mset("hold:child", Process.pid, "hold:worker", Process.ppid) # of one, where several hold
    until File.exist?(path)
      $0 = "a title of its own" if File.exist?("#{path}.title")
      sleep 0.05
    end
  end

  def leak(job, megabytes, path)
    kept = "x" * (megabytes << 20)
    hold(job, path)
    kept.clear
  end

  def perform(name, job, *arguments)
    @redis.hincrby("ledger:started", job, 1)
    public_send(name.downcase, job, *arguments)
    @redis.hincrby("ledger:done", job, 1)
  end
end

class Worker
  def initialize(queues)
    @queues = queues
    @interval = Float(ENV.fetch("INTERVAL", 5))
    @identity = "#{Socket.gethostname}:#{Process.pid}:#{queues.join(",")}"
    @redis = connect
  end

  def run
    $0 = "resque: Starting"
    heed_signals
    beat
    @redis.sadd(key("workers"), [@identity])
    @redis.set(key("worker", @identity, "started"), Time.now.to_s)
    until @ends
      next if work
      title @is_paused ? "Paused" : "Waiting for #{@queues.join(",")}"
      sleep @interval
    end
    leave
  end

  private

  def title(text)
    $0 = "#{ENV.fetch("RESQUE_PROCLINE_PREFIX", "")}resque-#{VERSION}: #{text}"
  end

  def heed_signals
    trap(:QUIT) { @ends = true }
    trap(:TERM) { (@ends = true) && @child && Process.kill(:KILL, @child) }
    trap(:USR2) { (@paused = true) && mark("paused") }
    trap(:CONT) { @paused = false }
  end

  # Written to the worker's log, where tests count the lines.
  def mark(text)
    $stdout.syswrite("#{Process.pid} #{text}\n")
  end

  def beat
    redis = connect
    redis.hset(key("workers:heartbeat"), @identity, Time.now.iso8601)
    Thread.new do
      loop do
        sleep Float(ENV.fetch("HEARTBEAT", 60))
        redis.hset(key("workers:heartbeat"), @identity, Time.now.iso8601)
      end
    end
  end

  def paused?
    @is_paused = @paused || @redis.get(key("pause-all-workers")).to_s.casecmp?("true")
  end

  def reserve
    @queues.each do |queue|
      text = @redis.lpop(key("queue", queue))
      return queue, JSON.parse(text) if text
    end
    nil
  end

  # Returns whether there was a job.
  def work
    queue, payload = paused? ? nil : reserve
    return false unless payload

    @redis.set(key("worker", @identity), JSON.generate(queue: queue, run_at: Time.now.utc.iso8601, payload: payload))
    title "Processing #{queue} since #{Time.now.to_i} [#{payload["class"]}]"
    @child = fork { run_job(payload) }
    title "Forked #{@child} at #{Time.now.to_i}"
    Process.wait(@child)
    @child = nil
    @redis.rpush(key("failed"), JSON.generate(payload)) unless $?.success?
    @redis.del(key("worker", @identity))
    true
  end

  def run_job(payload)
    %i[TERM QUIT USR2 CONT].each { |signal| trap(signal, "DEFAULT") }
    Jobs.new(connect).perform(payload["class"], *payload["args"])
    exit!(true)
  end

  def leave
    @redis.srem(key("workers"), [@identity])
    @redis.del(key("worker", @identity), key("worker", @identity, "started"))
    @redis.hdel(key("workers:heartbeat"), @identity)
  end
end

def enqueue(count, job, arguments)
  redis = connect
  arguments.map! { |word| Float(word, exception: false)&.then { |n| n == n.to_i ? n.to_i : n } || word }
  first = redis.incrby("ledger:jobs", count) - count
  redis.sadd(key("queues"), ["work"])
  count.times do |i|
    redis.rpush(key("queue", "work"), JSON.generate(class: job.capitalize, args: [(first + i).to_s, *arguments]))
  end
end

if ARGV[0] == "--enqueue"
  enqueue(Integer(ARGV[1]), ARGV[2], ARGV[3..])
else
  Worker.new(ARGV.fetch(0).split(",")).run
end
