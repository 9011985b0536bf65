# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# Pushes that Redis refuses wait in a file, in their order, and are pushed once Redis accepts them. All processes of an
# application may share the file: the first that reaches Redis again pushes its contents. A job is delivered at least
# once: if the reply of Redis was lost, it is pushed again with the same jid.
require "json"
require "sidekiq"

class Outbox
  class Full < StandardError; end
  class Unconfirmed < StandardError; end

  REFUSALS = defined?(RedisClient) ? RedisClient::CommandError : Redis::CommandError
  AWAY = [defined?(RedisClient) ? RedisClient::Error : Redis::BaseError, ConnectionPool::TimeoutError, Unconfirmed].freeze
  BATCH = 500

  # limit: bytes that may wait. replicas: how many must have a job before its push counts. journal: called with :sent
  # before jobs are sent, and with :refused after Redis has refused them.
  def initialize(path, limit: 64 << 20, replicas: 0, journal: ->(_event, _jobs) {})
    @path = path
    @limit = limit
    @replicas = replicas
    @journal = journal
  end

  # Intercepts every push of this process.
  def install
    outbox = self
    Sidekiq::Client.class_eval do
      alias_method :push_to_redis, :raw_push
      public :push_to_redis
      define_method(:raw_push) { |jobs| outbox.push(self, jobs) }
    end
    self
  end

  # A server that forks calls this in its children.
  def start
    Thread.new do
      loop do
        sleep 0.5
        drain
      rescue *AWAY
        next
      rescue => error
        Sidekiq.logger.error("outbox: #{error.class}: #{error.message}")
      end
    end
  end

  def push(client, jobs)
    return keep(jobs, "others wait") if waiting?

    deliver(client, jobs)
    true
  rescue *AWAY => error
    keep(jobs, error.message)
  end

  def keep(jobs, reason)
    # A line truncated by a crash must not corrupt the next one.
    lines = "\n#{to_lines(jobs)}"
    locked do
      raise Full, "Redis takes no jobs, and #{@path} is full" if (File.size?(@path) || 0) + lines.bytesize > @limit

      Sidekiq.logger.warn("outbox: Redis takes no jobs (#{reason}): they wait in #{@path}") unless waiting?
      write(@path, "a", lines)
    end
    true
  end

  def drain
    return unless waiting?

    # Probes Redis before the lock is taken, because other pushes wait for the lock, and because a push that fails may
    # still have added its job.
    Sidekiq.redis do |redis|
      redis.call("SET", "outbox:probe", "", "EX", 60)
      confirm(redis)
    end
    locked { push_what_waits }
  end

  private

  def waiting?
    File.size?(@path)
  end

  def push_what_waits
    jobs = File.readlines(@path).filter_map { |line| parse(line) }
    client = Sidekiq::Client.new
    pushed = 0
    jobs.slice_when { |a, b| kind(a) != kind(b) }.flat_map { |run| run.each_slice(BATCH).to_a }.each do |batch|
      deliver(client, batch)
      pushed += batch.size
    end
    replace([])
    Sidekiq.logger.warn("outbox: Redis takes jobs again, #{pushed} that waited are pushed")
  rescue
    replace(jobs.drop(pushed)) if pushed > 0
    raise
  end

  # Sidekiq pushes jobs for the same queue together.
  def kind(job)
    [job["queue"], job.key?("at")]
  end

  def to_lines(jobs)
    jobs.map { |job| "#{JSON.generate(job)}\n" }.join
  end

  # A truncated line was promised to no caller.
  def parse(line)
    JSON.parse(line)
  rescue JSON::ParserError
    nil
  end

  def replace(jobs)
    write("#{@path}.new", "w", to_lines(jobs))
    File.rename("#{@path}.new", @path)
    File.open(File.dirname(@path), &:fsync)
  end

  def write(path, mode, text)
    File.open(path, mode) do |file|
      file.write(text)
      file.fsync
    end
  end

  # Uses one connection, because WAIT covers the writes of its own connection.
  def deliver(client, jobs)
    @journal.call(:sent, jobs)
    client.redis_pool.with do |redis|
      # Sidekiq modifies jobs as it pushes them, but they may have to be kept.
      client.push_to_redis(jobs.map(&:dup))
      confirm(redis)
    end
  rescue REFUSALS
    @journal.call(:refused, jobs)
    raise
  end

  def confirm(redis)
    raise Unconfirmed, "no replica confirms" if @replicas > 0 && redis.call("WAIT", @replicas, 500) < @replicas
  end

  def locked
    File.open("#{@path}.lock", File::RDWR | File::CREAT) do |file|
      file.flock(File::LOCK_EX)
      yield
    end
  end
end
