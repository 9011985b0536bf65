# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Reports the jobs of this worker to sqmgr: see sqmgr-heartbeat(7). The fleet needs `framework = native`.
#
#   beat = SqmgrHeartbeat.new(redis: Redis.new) # a client of its own; default: a file in SQMGR_STATUS_DIR, if set
#   beat.start
#   beat.work { fetch a job, if there is one, and run it } # in each thread: repeats until the worker is quieted
#   beat.finish # after all threads have ended: waits for TERM; then exit with 0
#
# TSTP quiets the worker, TERM asks it to exit. A fetch may last some seconds at most, because it delays both. If
# another library fetches, pass `on_quiet:`, which returns once fetching has certainly stopped, and count jobs by
# begin_job and end_job. If another library handles TERM, pass `catch_stop: false`, and call close at its end. The
# client may be of the gems redis or redis-client. `outcomes:` is a callable that returns how many jobs the process has
# done, and how many of these failed: releases can be judged by them.
require 'socket'

class SqmgrHeartbeat
  INTERVAL = 5
  QUIET_INTERVAL = 1 # further heartbeats prove a quiet worker idle
  SHORTEST = 0.1 # changes within this time share one record

  attr_reader :quiet, :stopping

  def initialize(redis: nil, namespace: nil, tag: nil, concurrency: nil, on_quiet: nil, catch_stop: true,
                 outcomes: nil)
    @redis, @on_quiet, @busy, @quiet, @stopping = redis, on_quiet, 0, false, false
    @outcomes = outcomes
    @prefix = namespace ? "#{namespace}:" : ''
    @people = { 'tag' => tag&.gsub(/[[:cntrl:]]/, ' ')&.slice(0, 64), 'concurrency' => concurrency }.compact
    @words = catch_stop ? { 'TSTP' => 'quiet', 'TERM' => 'stop' } : { 'TSTP' => 'quiet' }
    @lock, @told = Mutex.new, ConditionVariable.new
  end

  def start
    @pid, @folder = Process.pid, ENV['SQMGR_STATUS_DIR']
    @start = File.read('/proc/self/stat').b.rpartition(')').last.split[19]
    @ear, @mouth = IO.pipe # unlike a lock, safe in a signal handler
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

  # Adds one job to the count, unless the worker is quieted: after false, nothing may be fetched.
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

  # Deletes the record, if possible within two seconds.
  def close
    return unless @thread&.alive? && Process.pid == @pid

    @asked['end'] = true
    wake
    @thread.join(2)
  end

  private

  # A child of fork() has its parent's handlers, but no heartbeat thread: there the signal does what it did before
  # start.
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

  # If this fails, fetching may continue: then the worker never counts as idle.
  def hold
    @on_quiet.call
    end_job
  end

  # A failed write fails no job: the next heartbeat has the data.
  def attempt
    yield
  rescue StandardError
    nil
  end

  def write(busy, quiet)
    fields = { 'v' => 1, 'beat' => format('%.6f', Process.clock_gettime(Process::CLOCK_REALTIME)), 'busy' => busy,
               'quiet' => quiet ? 1 : 0, 'start' => @start, 'quiet_sig' => 'TSTP', 'resume_sig' => '',
               'stop_sig' => 'TERM', **@people }
    fields['processed'], fields['failed'] = @outcomes.call if @outcomes
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
