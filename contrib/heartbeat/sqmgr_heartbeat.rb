# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Tells sqmgr what this worker is doing, by sqmgr-heartbeat(7). The fleet has `framework = native`.
#
#   beat = SqmgrHeartbeat.new(redis: Redis.new) # one of its own; without: a file, where SQMGR_STATUS_DIR is set
#   beat.start
#   beat.work { fetch a job, should there be one, and run it } # in each thread: again and again, until no more are taken
#   beat.finish # when all of them have ended: waits to be told to stop; exit with 0 then
#
# TSTP asks it to take no more jobs, TERM to exit. A fetch lasts some seconds at most, or it holds up both. Where
# something else fetches, give `on_quiet:`, which returns when that has certainly stopped, and count jobs by begin_job
# and end_job. What heeds TERM by itself says `catch_stop: false`, and calls close at its end. The client may be of the
# gems redis or redis-client.
require 'socket'

class SqmgrHeartbeat
  INTERVAL = 5
  QUIET_INTERVAL = 1 # what proves a quiet worker idle are further beats
  SHORTEST = 0.1 # changes within this time are one record

  attr_reader :quiet, :stopping

  def initialize(redis: nil, namespace: nil, tag: nil, concurrency: nil, on_quiet: nil, catch_stop: true)
    @redis, @on_quiet, @busy, @quiet, @stopping = redis, on_quiet, 0, false, false
    @prefix = namespace ? "#{namespace}:" : ''
    @people = { 'tag' => tag&.gsub(/[[:cntrl:]]/, ' ')&.slice(0, 64), 'concurrency' => concurrency }.compact
    @words = catch_stop ? { 'TSTP' => 'quiet', 'TERM' => 'stop' } : { 'TSTP' => 'quiet' }
    @lock, @told = Mutex.new, ConditionVariable.new
  end

  def start
    @pid, @folder = Process.pid, ENV['SQMGR_STATUS_DIR']
    @start = File.read('/proc/self/stat').b.rpartition(')').last.split[19]
    @ear, @mouth = IO.pipe # unlike a lock, it can be used by a handler
    @asked = {}
    before = {}
    @words.each { |name, word| before[name] = trap(name) { heed_signal(name, word, before[name]) } }
    @thread = Thread.new { beat }
    @thread.name = 'sqmgr-heartbeat'
  end

  def work
    while take
      begin
        yield
      ensure
        end_job
      end
    end
  end

  # Counts one job more, unless no more are to be taken: then it is false, and nothing may be fetched.
  def take
    @lock.synchronize { !@quiet && @busy += 1 } && wake
  end

  # Counts a job that has been fetched already.
  def begin_job
    @lock.synchronize { @busy += 1 }
    wake
  end

  def end_job
    @lock.synchronize do
      @busy -= 1
      @told.broadcast
    end
    wake
  end

  def finish
    @lock.synchronize { @told.wait(@lock) until @stopping && @busy.zero? }
    close
  end

  # Deletes the record, should that be possible within two seconds.
  def close
    return unless @thread&.alive? && Process.pid == @pid

    @asked['end'] = true
    wake
    @thread.join(2)
  end

  private

  # A child of fork() has its parent's handlers, and no thread that beats: there the signal means what it did before.
  def heed_signal(name, word, before)
    if Process.pid == @pid
      @asked[word] = true
      wake
    else
      trap(name, before || 'DEFAULT')
      Process.kill(name, Process.pid)
    end
  end

  def wake
    @mouth&.write_nonblock('.', exception: false)
    true
  end

  def beat
    written = nil
    due = 0
    until @asked['end']
      ask if @asked['quiet'] || @asked['stop']
      state = @lock.synchronize { [@busy, @quiet] }
      if state != written || now >= due
        written = state
        attempt { write(*state) }
        due = now + (@quiet ? QUIET_INTERVAL : INTERVAL)
      end
      sleep SHORTEST
      IO.select([@ear], nil, nil, [due - now, 0].max)
      @ear.read_nonblock(4096, exception: false)
    end
    attempt { delete }
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def ask
    holds = @lock.synchronize do
      asked_first = !@quiet && @on_quiet
      @busy += 1 if asked_first
      @quiet = true
      @stopping ||= @asked['stop']
      @told.broadcast
      asked_first
    end
    Thread.new { hold } if holds
  end

  # Where it fails, fetching may go on: then the worker never counts as idle.
  def hold
    @on_quiet.call
    end_job
  end

  # No job fails for it: what was not written now is with the next beat.
  def attempt
    yield
  rescue StandardError
    nil
  end

  def write(busy, quiet)
    fields = { 'v' => 1, 'beat' => format('%.6f', Process.clock_gettime(Process::CLOCK_REALTIME)), 'busy' => busy,
               'quiet' => quiet ? 1 : 0, 'start' => @start, 'quiet_sig' => 'TSTP', 'resume_sig' => '',
               'stop_sig' => 'TERM', **@people }
    if @redis
      @redis.multi do |commands|
        commands.call('HSET', key, *fields.flatten)
        commands.call('EXPIRE', key, 60)
        commands.call('SADD', "#{@prefix}sqmgr:workers", name)
      end
    elsif @folder
      File.open("#{@folder}/.#{@pid}", File::WRONLY | File::CREAT | File::TRUNC | File::NOFOLLOW, 0o600) do |file|
        fields.each { |field, value| file.puts("#{field}=#{value}") }
      end
      File.rename("#{@folder}/.#{@pid}", "#{@folder}/#{@pid}")
    end
  end

  def delete
    if @redis
      @redis.multi do |commands|
        commands.call('DEL', key)
        commands.call('SREM', "#{@prefix}sqmgr:workers", name)
      end
    elsif @folder
      File.unlink("#{@folder}/#{@pid}")
    end
  end

  def name
    "#{Socket.gethostname}:#{@pid}"
  end

  def key
    "#{@prefix}sqmgr:worker:#{name}"
  end
end
