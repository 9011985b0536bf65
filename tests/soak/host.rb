# SPDX-License-Identifier: MIT
# One of the two hosts of the soak: an sqmgr with a host name, a socket and a state of its own, as in the chaos test.
require_relative "../chaos/chaos"

class Host < Chaos
  SETTLE_SECONDS = 420  # Celery returns what a killed worker held after two minutes, when it looks: each 100 s
  LOOK_SECONDS = 5      # between two looks at all processes, or at the status: the soak must be cheap
  WAIT_SECONDS = 110    # for `restart --wait`
  EVENTS = 600          # more than the ring of events has
  COMMON = {
    "sidekiq" => { count: 1, most: 3, max: 8 }, "celery" => { count: 1, most: 2, max: 6 }, "rq" => { count: 1, max: 5 }
  }.freeze
  OWN = { "a" => { "plain" => { count: 2, max: 6 } }, "b" => { "stub" => { count: 2, max: 6 } } }.freeze

  attr_reader :name, :folder, :outcomes, :images, :slowest

  def initialize(soak, name, top, stub)
    super("#{soak.folder}/#{name}", top, stub, 0, 0)
    @soak, @name, @redis_folder = soak, name, soak.folder
    @redis, @client, @ledger, @violations = soak.redis, soak.client, soak.ledger, soak.violations
    @fleets = COMMON.merge(OWN.fetch(name))
    @outcomes = Hash.new(0)
    @inner = []
    @images = 0
    @sqmgr = Server.new("sqmgr of #{name}") do
      launch("sqmgr", "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec sqmgr -c "$1"', "soak-#{name}", "#{@folder}/sqmgr.ini")
    end
  end

  # The folder DISK is the run's: it may be a small disk.
  def prepare
    { "pids" => "../pids", "redis.sock" => "../redis.sock", "ledger" => "../ledger" }.each do |link, target|
      File.symlink(target, "#{@folder}/#{link}")
    end
    write("app.rb", "require '#{@top}/tests/soak/app'\n")
    write("release.rb", GOOD_RELEASE)
    write_environment(0)
    configure
  end

  def start
    sqmgr.start
    wait_until(120, "all workers of #{@name} are ready") { converged? }
  end

  # One Redis serves both hosts.
  def launch_redis = launch("redis", *redis_command(@soak.folder))

  def execute(name, numbers)
    @counts[name] += 1
    send(name, *numbers)
  end

  def end_faults
    @later.each { |entry| entry[0] = 0 }
    observe
  end

  # The ring of events takes memory until it has wrapped: that is no leak, and is over before the samples count. A reload
  # that changes nothing is an event.
  def fill_events
    EVENTS.times do |count|
      system(*sqmgrctl("reload"), %i[out err] => File::NULL)
      pass(0.05) if (count % 20).zero?
    end
  end

  def fault_counts = @counts

  private

  attr_reader :fleets

  def marker = "SOAK=#{@folder}"
  def released = %w[sidekiq]
  def sqmgrctl(*words) = super("-s", "#{@folder}/sqmgr.sock", *words)
  def say(text) = @soak.say("#{@name}: #{text}")
  def pass(seconds = 0.5) = @soak.pass(seconds)
  def sidekiq_workers = @soak.hosts.sum { |host| host.workers.count { |worker| sidekiq?(worker) } }

  # The pool of a Celery worker and the child in which RQ runs a job have the environment of the worker. A child may
  # survive its worker.
  def workers
    all = super
    lives = all.map(&:life)
    pids = lives.map(&:pid)
    @inner = (@inner & lives) | lives.select { |life| (pids + [nil]).include?(parent(life)) }
    all.reject { |worker| @inner.include?(worker.life) }
  end

  # nil: it has ended meanwhile.
  def parent(life)
    pid = File.read("/proc/#{life.pid}/stat").rpartition(")").last.split[1].to_i
    pid if life.alive?
  rescue SystemCallError
    nil
  end

  def look_at_processes
    return if monotonic - (@looked_at_processes || 0) < LOOK_SECONDS
    @looked_at_processes = monotonic
    super
  end

  def look_at_status
    super if monotonic - (@looked_at || 0) >= LOOK_SECONDS
  end

  # The interval stays: each change would change the processor time.
  def daemon_lines(_interval) = "check_interval = 1s\n"

  def fleet_lines(name, _max_age, preload)
    most = fleets[name][:most]
    scaling = "active_process_max = #{most}\nlatency_target = 5s\nscale_down_after = 2min\n" if most
    "command = #{command(name)}\n#{further(name, preload)}#{scaling}"
  end

  def write_environment(flavor)
    write("environment", "CHAOS=#{@soak.folder}\n#{marker}\nREDIS_URL=unix://#{@redis_folder}/redis.sock\nFLAVOR=#{flavor}\nPYTHONDONTWRITEBYTECODE=1\nC_FORCE_ROOT=1\n" \
                         "PYTHONPATH=#{@top}/tests/soak:#{@top}/tests/soak/untitled\n")
  end

  def command(name)
    case name
    when "sidekiq" then "sidekiq -r #{@folder}/release.rb -c #{THREADS} -t 1"
    when "celery" then "/usr/bin/python3 -B -m celery -A soak_jobs worker -c 2 --without-mingle --prefetch-multiplier=1"
    when "rq" then "/usr/bin/rq worker -u unix://#{@redis_folder}/redis.sock -S rq.serializers.JSONSerializer work"
    when "stub" then "#{@stub} -u #{@redis_folder}/redis.sock -b 2000 -c 1 -t 0 -j #{@soak.folder}/ledger"
    when "plain" then "ruby --disable-gems #{@top}/tests/chaos/plain.rb #{@soak.folder} 1"
    end
  end

  def further(name, preload)
    case name
    when "sidekiq" then "preload = #{preload}\nmemory_threshold = 150M\n"
    when "celery"
      "framework = celery\nmemory_threshold = 250M\nhang_action = kill\nhang_after = 1min\ndrain_timeout = 3min\n" \
      "environment = BROKER_URL=redis+socket://#{@redis_folder}/redis.sock\n"
    when "rq" then "framework = rq\nmax_age = 20min\n"
    when "stub" then "max_age = 10min\n"
    when "plain" then "framework = plain\nmax_age = 10min\ndrain_timeout = 2min\n"
    end
  end

  def preloaded = "sidekiq"
  # Autoscaling chooses the counts, so that they are as they should be if they are what sqmgr says.
  def wanted(fleet) = fleet["target"]

  # The last order of mend_all is a number: autoscaling takes over again.
  def mend_all
    super
    fleets.each { |name, fleet| order("scale", name, "auto") if fleet[:most] }
    wait_until(60, "autoscaling has its fleets again") { @orders.empty? }
  end

  # What a client of `restart --wait` was told. 1: another fault halted or aborted the restart. 5: it was not done in time.
  def answered?(order)
    return false unless super
    @outcomes[order.answered] += 1 if order.words.include?("--wait")
    true
  end

  def restart_waiting(which, drained, *)
    order("restart", *pick([nil, *fleets.keys], which), drained < 0.5 ? "--wait" : "--wait=drained", "--timeout",
          "#{WAIT_SECONDS}s", allow: [0, 1, 5])
  end

  # The order of an operator ends.
  def scale(which, count, how_long)
    super
    name = pick(fleets.keys, which)
    later(20 + 120 * how_long) { order("scale", name, fleets[name][:most] ? "auto" : fleets[name][:count]) }
  end

  def reexec(*)
    @images += 1
    super
  end

  def change_environment(value, *)
    say("the environment file changes")
    write_environment(value)
  end

  def storm(*) = @soak.storm

  ENQUEUE_RQ = "if redis.call('sadd', 'chaos:enqueued', ARGV[1]) == 1 then redis.call('hset', KEYS[2], unpack(ARGV, 3)) " \
               "redis.call('rpush', KEYS[1], ARGV[2]) end"
  RQ_TIME = "%Y-%m-%dT%H:%M:%S.%6NZ"

  # Messages are written as the clients of the frameworks write them, because one script can be repeated.
  def enqueue(client, fleet, jid, seconds, attempt = 1)
    once = "#{jid}:#{attempt}"
    case fleet
    when "sidekiq"
      time = now
      job = JSON.generate(class: "SoakJob", args: [seconds, 700], jid: jid, queue: "default", retry: false, created_at: time,
                          enqueued_at: time)
      client.call("EVAL", ENQUEUE, 1, "queue:default", once, job)
    when "celery", "celery-late"
      client.call("EVAL", ENQUEUE, 1, "celery", once, celery_message(fleet == "celery" ? "early" : "late", jid, seconds))
    when "rq"
      time = Time.now.utc.strftime(RQ_TIME)
      client.call("EVAL", ENQUEUE_RQ, 2, "rq:queue:work", "rq:job:#{jid}", once, jid, "data",
                  JSON.generate(["soak_jobs.run", nil, [jid, seconds], {}]), "origin", "work", "description", "run",
                  "created_at", time, "enqueued_at", time, "timeout", 180, "result_ttl", 0, "status", "queued")
    else return super
    end
    ledger.add(jid, fleet)
  end

  def celery_message(task, jid, seconds)
    arguments = [jid, seconds, 1000]
    body = [JSON.generate([arguments, {}, { callbacks: nil, errbacks: nil, chain: nil, chord: nil }])].pack("m0")
    JSON.generate(
      body: body, "content-encoding": "utf-8", "content-type": "application/json",
      headers: { lang: "py", task: task, id: jid, shadow: nil, eta: nil, expires: nil, group: nil, group_index: nil,
                 retries: 0, timelimit: [nil, nil], root_id: jid, parent_id: nil, argsrepr: "()", kwargsrepr: "{}",
                 origin: "soak", ignore_result: true },
      properties: { correlation_id: jid, reply_to: SecureRandom.uuid, delivery_mode: 2,
                    delivery_info: { exchange: "", routing_key: "celery" }, priority: 0, body_encoding: "base64",
                    delivery_tag: SecureRandom.uuid }
    )
  end

  public :mend_all, :balance, :converge, :observe, :workers, :enqueue
end
