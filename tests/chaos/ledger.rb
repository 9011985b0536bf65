# SPDX-License-Identifier: MIT
# The ledger of all jobs: records of the workers, data in Redis, and the workers that the test itself killed.
require_relative "parts"

class Ledger
  Run = Struct.new(:life, :token, :ended)

  # Verdict on a job: one word, and a sentence if it is wrong.
  Verdict = Struct.new(:word, :wrong)

  # Fleets whose jobs are lists in Redis: FLEET:jobs, and FLEET:taken:TOKEN for each job that a worker has taken.
  LISTED = %w[stub plain].freeze

  # The queue of the other fleets in Redis, and what finds the id in a job.
  Queue = Struct.new(:key, :jid)
  QUEUE = Queue.new("queue:default", /"jid":"(\w+)"/)

  # deaths: Life => time, for processes that the test killed. disturbances: [from, to] in seconds of the wall clock, and
  # how many fetches each may have cut off.
  attr_reader :deaths, :disturbances, :jobs

  def initialize(folder, redis)
    @folder = folder
    @redis = redis
    @jobs = {}
    @deaths = {}
    @disturbances = []
    @logs = {}
  end

  def add(jid, fleet) = @jobs[jid] = fleet

  def read_runs
    @runs = Hash.new { |hash, jid| hash[jid] = [] }
    File.foreach(File.join(@folder, "ledger")) do |line|
      word, jid, token = line.split
      if word == "started"
        @runs[jid] << Run.new(Life.of_token(token), token, false)
      else
        @runs[jid].find { |run| run.token == token }.ended = true
      end
    end
  end

  # Reads Redis as well, and judges each job.
  def refresh
    read_runs
    @queued = queues.flat_map { |queue| @redis.call("LRANGE", queue.key, 0, -1).map { |job| job[queue.jid, 1] } }
    LISTED.each { |fleet| @queued.concat(@redis.call("LRANGE", "#{fleet}:jobs", 0, -1).map { |job| job.split.first }) }
    @taken = Hash.new { |hash, jid| hash[jid] = [] }
    @redis.call("KEYS", "*:taken:*").each do |key|
      jid = @redis.call("LINDEX", key, 0)&.split&.first
      @taken[jid] << Life.of_token(key[/[^:]+\z/])
    end
    @logs.each_value(&:update)
    @verdicts = @jobs.to_h { |jid, _| [jid, judge(jid)] }
  end

  def count(word) = @verdicts.count { |_, verdict| verdict.word == word }
  def all(word) = @verdicts.select { |_, verdict| verdict.word == word }.keys
  def running_in(life) = @runs.values.sum { |runs| runs.count { |run| run.life == life && !run.ended } }
  def starts = @runs ? @runs.values.sum(&:size) : 0

  def wrongs
    found = @verdicts.filter_map { |jid, verdict| "job #{jid} #{verdict.wrong}; #{story(jid)}" if verdict.wrong }
    explained = @disturbances.sum { |disturbance| disturbance[:fetches] }
    found << "#{count(:lost)} jobs got lost on their way, #{explained} at most could be" if count(:lost) > explained
    found
  end

  def story(jid)
    told = @runs[jid].map do |run|
      killed = @deaths[run.life]
      end_of_run = run.ended ? "done" : run.life.alive? ? "running" : killed ? "killed by the test" : "cut off"
      "run #{run.token} #{end_of_run}"
    end
    told << "queued" if @queued.include?(jid)
    told << "taken by #{@taken[jid].join(", ")}" if @taken.key?(jid)
    unless LISTED.include?(@jobs[jid])
      fetched = log(jid).popped[jid].map { |at| clock(at) }.join(", ")
      told << "pushed #{log(jid).pushed[jid]} times, fetched at #{fetched}"
    end
    "#{@jobs[jid]}: #{told.join("; ")}"
  end

  private

  def queues = [QUEUE]
  def queue_of(_jid) = QUEUE

  # Sidekiq 7.3 may exit with an error of its own when it is quieted, if Redis, which the test froze or killed, has not
  # answered: no process asked it to exit, and its last output shows where its Redis client waited.
  def ended_itself?(life)
    # A log line with its log tail, whose lines begin with a bar.
    told = Dir["#{@folder}/{,*/}sqmgr.log"].flat_map { |path| File.readlines(path) }.slice_before { |line| !line.start_with?("    | ") }
               .map(&:join).grep(/\A.*\(pid #{life.pid}\) /)
    told.any? { |lines| lines.match?(/ exited.*redis_client/m) } &&
      told.none? { |line| line.match?(/ asked to exit|; killed| was killed/) }
  end

  def judge(jid)
    runs = @runs[jid]
    done = runs.count(&:ended)
    cut = runs.reject { |run| run.ended || run.life.alive? }
    murdered = cut.find { |run| !@deaths[run.life] && !ended_itself?(run.life) }
    return Verdict.new(:wrong, "was cut off in a worker that the test did not kill") if murdered
    return Verdict.new(:running) if runs.size > done + cut.size
    return Verdict.new(:again) if done > 1 && pushed_twice?(jid, done)
    return Verdict.new(:wrong, "was done #{done} times") if done > 1
    return Verdict.new(:done) if done == 1
    return Verdict.new(:queued) if @queued.include?(jid)
    return Verdict.new(:cut) if cut.any?
    LISTED.include?(@jobs[jid]) ? judge_taken(jid) : judge_fetched(jid)
  end

  def judge_taken(jid)
    return Verdict.new(:wrong, "vanished from Redis") if @taken[jid].empty?
    return Verdict.new(:running) if @taken[jid].any?(&:alive?)
    return Verdict.new(:cut) if @taken[jid].all? { |life| @deaths[life] }
    Verdict.new(:wrong, "was taken by a worker that ended, and that the test did not kill")
  end

  # Sidekiq loses a job if the reply is lost with Redis or with the worker: Redis has already removed the job.
  def judge_fetched(jid)
    at = log(jid).popped[jid].last
    return Verdict.new(:wrong, "vanished from Redis") unless at
    return Verdict.new(:lost) if disturbed?(at)
    Verdict.new(:wrong, "was fetched at #{clock(at)}, when nothing was broken, and never began")
  end

  # Sidekiq pushes back jobs that it fetched too late, and repeats that without a reply.
  def pushed_twice?(jid, done) = log(jid).pushed[jid] >= done && log(jid).popped[jid].any? { |at| disturbed?(at) }

  def disturbed?(at) = @disturbances.any? { |disturbance| at.between?(disturbance[:from], disturbance[:to]) }

  def clock(seconds) = Time.at(seconds).strftime("%T")

  def log(jid)
    @logs[queue_of(jid)] ||= RedisLog.new(@folder, queue_of(jid).key, queue_of(jid).jid)
  end
end
