# SPDX-License-Identifier: MIT
# The chaos test: sqmgr under load with two fleets of real Sidekiq, one of them forked from a template, a fleet of stub
# workers and one of plain workers. The seed chooses the faults: workers, templates, Redis and sqmgr are killed and
# frozen, files are damaged, disk and descriptors run short, releases are broken. Restarts, scaling and reloads continue
# meanwhile. At the end the ledger must be balanced: every job was done, and none was cut off or ran twice, except jobs
# of workers that the test itself killed.
# Usage: chaos.rb FOLDER TOP STUB SECONDS SEED
require "json"
require "securerandom"
require_relative "faults"
require_relative "ledger"
require_relative "parts"

# A server that the test starts, breaks and restarts.
class Server
  attr_reader :name, :life, :begun, :stopped_at
  attr_accessor :answers # used for sqmgr only

  def initialize(name, &launch)
    @name = name
    @launch = launch
  end

  def start
    @answers = false
    @life = @launch.call
    @begun = @resumed = monotonic
  end

  def kill
    @life.signal(:KILL)
    Process.wait(@life.pid)
    @life = @stopped_at = nil
    @answers = false
  end

  def stop
    @life.signal(:STOP)
    @stopped_at = Time.now.to_f
  end

  def resume
    @life.signal(:CONT)
    @stopped_at = nil
    @resumed = monotonic
  end

  def usable? = @life && !@stopped_at

  # The time since the last interference; only for a usable server.
  def unbroken_since = @resumed
  def unbroken_for = monotonic - @resumed

  # True if it exited by itself: a kill by the test forgets the process.
  def ended? = @life && Process.wait(@life.pid, Process::WNOHANG)
end

class Chaos
  include Faults

  THREADS = 4
  FLEETS = {
    "sidekiq" => { count: 2, max: 6 }, "forked" => { count: 2, max: 6 }, "stub" => { count: 3, max: 9 },
    "plain" => { count: 4, max: 10 }
  }.freeze
  ANSWER_SECONDS = 30    # time limit for each answer of sqmgr
  UNKNOWN_SECONDS = 20   # a process that is being started or adopted may be unknown for this long
  SETTLE_SECONDS = 240

  Order = Struct.new(:words, :pid, :begun, :allow, :answered)

  attr_reader :redis, :sqmgr, :ledger

  def initialize(folder, top, stub, seconds, seed)
    @folder, @redis_folder, @top, @stub = folder, folder, top, stub
    @seconds, @seed = Integer(seconds), Integer(seed)
    @begun = monotonic
    @violations = []
    @later = []
    @orders = []
    @counts = Hash.new(0)
    @stopped_since = {}
    @unknown_since = {}
    @slowest = @shortages = 0
    @damaged = {}
    @redis = Server.new("Redis") { launch("redis", *redis_command) }
    @sqmgr = Server.new("sqmgr") { launch("sqmgr", "sqmgr", "-c", "#{@folder}/sqmgr.ini") }
    @client = Client.new("#{@folder}/redis.sock")
    @ledger = Ledger.new(folder, @client)
  end

  def run
    File.write("#{@folder}/pids/#{Process.pid}", "#{Life.of(Process.pid).start}\n")
    File.write("#{@folder}/ledger", "")
    write("app.rb", File.read("#{@top}/tests/chaos/app.rb"))
    write("release.rb", GOOD_RELEASE)
    write("environment", "")
    say("seed #{@seed}, #{@seconds} s of faults")
    begin_all
    break_things
    mend_all
    balance
    converge
  rescue Violated
    # report prints it.
  ensure
    report
  end

  def failed? = !@violations.empty?

  private

  Violated = Class.new(StandardError)

  def now = Time.now.to_f
  def fleets = FLEETS
  def marker = "CHAOS=#{@folder}"
  def workers = Worker.all(marker).select(&:works?)
  def templates = Worker.all(marker).select(&:template?)
  def sqmgrctl(*words) = ["sqmgrctl", *words.map(&:to_s)]

  def say(text)
    puts(format("# %6.1f %s %s", monotonic - @begun, Time.now.strftime("%T"), text))
    $stdout.flush
  end

  def violated(text)
    return if @violations.include?(text)
    @violations << text
    say("VIOLATION: #{text}")
  end

  def fail_with(text)
    violated(text)
    raise Violated
  end

  def later(seconds, &block) = @later << [monotonic + seconds, block]

  def spawn_logged(name, *words)
    spawn(*words.map(&:to_s), in: "/dev/null", out: ["#{@folder}/#{name}.log", "a"], err: [:child, :out])
  end

  def launch(name, *words)
    pid = spawn_logged(name, "setsid", "#{@top}/contrib/demo/launch", @folder, *words)
    Life.of(pid)
  end

  def redis_command(folder = @folder)
    ["redis-server", "--port", "0", "--unixsocket", "#{folder}/redis.sock", "--dir", folder, "--save", "",
     "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0",
     "--aof-timestamp-enabled", "yes", "--enable-debug-command", "local"]
  end

  # Replaces the file atomically for readers.
  def write(name, text)
    File.write("#{@folder}/#{name}.new", text)
    File.rename("#{@folder}/#{name}.new", "#{@folder}/#{name}")
  end

  def configure(interval: "500ms", ready_after: "1s", surge: "100%", counts: {}, max_age: "1d", preload: "yes")
    text = "[sqmgr]\nsocket = #{@folder}/sqmgr.sock\nstate_file = #{@folder}/disk/state\n#{daemon_lines(interval)}" \
           "[redis]\nurl = unix://#{@redis_folder}/redis.sock\n[fleet]\ndirectory = #{@folder}\n" \
           "environment_file = #{@folder}/environment\nlog = #{@folder}/workers.log\n" \
           "ready_after = #{ready_after}\nrestart_surge = #{surge}\n"
    fleets.each do |name, fleet|
      text << "[fleet:#{name}]\n#{fleet_lines(name, max_age, preload)}max_processes = #{fleet[:max]}\n" \
              "active_process_count = #{counts.fetch(name, fleet[:count])}\n"
    end
    write("sqmgr.ini", text)
  end

  def daemon_lines(interval) = "check_interval = #{interval}\nlog_level = debug\n"

  def fleet_lines(name, max_age, preload)
    sidekiq = "sidekiq -r #{@folder}/release.rb -c #{THREADS} -t 1"
    commands = {
      "sidekiq" => sidekiq,
      "forked" => "#{sidekiq}\npreload = #{preload}",
      "stub" => "#{@stub} -u #{@folder}/redis.sock -b 200 -c #{THREADS} -t 0 -j #{@folder}/ledger\nmax_age = #{max_age}",
      "plain" => "ruby --disable-gems #{@top}/tests/chaos/plain.rb #{@folder}\nframework = plain\nmax_age = #{max_age}"
    }
    "command = #{commands[name]}\nenvironment = CHAOS=#{@folder}\n"
  end

  # Sleeps, and runs all periodic checks.
  def pass(seconds = 0.2)
    sleep seconds
    observe
  end

  def observe
    due, @later = @later.partition { |at, _| at <= monotonic }
    due.sort_by(&:first).each { |_, block| block.call }
    look_after_servers
    @orders.reject! { |order| answered?(order) }
    look_at_processes
    look_at_status
  end

  def wait_until(seconds, what)
    deadline = monotonic + seconds
    until yield
      fail_with("waited #{seconds} s in vain until #{what}") if monotonic > deadline
      pass
    end
  end

  def look_after_servers
    [redis, sqmgr].each do |server|
      fail_with("#{server.name} ended: #{$?}") if server.ended?
    end
    return if sqmgr.answers || !sqmgr.usable?
    sqmgr.answers = system(*sqmgrctl("--timeout", "2s", "ping"), out: File::NULL, err: File::NULL)
    return if sqmgr.answers || sqmgr.unbroken_for <= ANSWER_SECONDS
    fail_with("sqmgr does not answer #{ANSWER_SECONDS} s after its start")
  end

  def look_at_processes
    living = workers
    living.group_by(&:place).each do |place, doubles|
      violated("#{place} lives #{doubles.size} times: #{doubles.join(", ")}") if doubles.size > 1
    end
    living.group_by(&:fleet).each do |fleet, all|
      violated("#{fleet} has #{all.size} processes: #{all.join(", ")}") if all.size > fleets[fleet][:max]
    end
  end

  def look_at_status
    # Requires an answering sqmgr: without descriptors, which this loop returns to it, it would never reply.
    return unless sqmgr.usable? && sqmgr.answers && @shortages.zero? && monotonic - (@looked_at || 0) >= 1
    @looked_at = monotonic
    return unless (@status = status)
    known = @status["fleets"].flat_map { |fleet| fleet["workers"].map { |worker| worker["pid"] } }
    unknown = workers.reject { |worker| known.include?(worker.life.pid) }
    @unknown_since = unknown.to_h do |worker|
      [worker, [@unknown_since.fetch(worker, monotonic), sqmgr.unbroken_since].max]
    end
    @unknown_since.each do |worker, since|
      violated("sqmgr does not know #{worker}") if monotonic - since > UNKNOWN_SECONDS
    end
  end

  def status
    begun = monotonic
    command = sqmgrctl("--timeout", "#{ANSWER_SECONDS}s", "--json", "status")
    text = IO.popen(command, err: ["#{@folder}/orders.log", "a"], &:read)
    @slowest = [@slowest, monotonic - begun].max
    return JSON.parse(text) if $?.success?
    exit_status = $?.exitstatus
    violated("sqmgrctl status: exit #{exit_status}") unless sqmgr.ended?
  end

  def order(*words, allow: [0])
    say("sqmgrctl #{words.join(" ")}")
    pid = spawn_logged("orders", *sqmgrctl(*(words.include?("--timeout") ? [] : %w[--timeout 60s]), *words))
    order = Order.new(words.join(" "), pid, monotonic, allow)
    order.allow += [3] unless sqmgr.answers
    order.allow += [1] if @shortages.positive?
    @orders << order
    order
  end

  # Without an sqmgr, or if it was killed since, an order may exit with 3: no connection.
  def answered?(order)
    return false unless Process.wait(order.pid, Process::WNOHANG)
    order.answered = $?.exitstatus
    order.allow += [3] if !sqmgr.life || sqmgr.begun > order.begun
    return true if order.allow.include?(order.answered)
    violated(format("sqmgrctl %s: exit %p after %.1f s", order.words, order.answered, monotonic - order.begun))
    true
  end

  def begin_all
    configure
    redis.start
    wait_until(20, "Redis answers") { @client.call("PING") == "PONG" }
    sqmgr.start
    wait_until(120, "all workers are ready") { converged? }
  end

  def break_things
    begun = monotonic
    producer = Thread.new { produce(begun + @seconds) }
    producer.report_on_exception = true
    Faults.schedule(@seed, @seconds).each do |step|
      pass while monotonic - begun < step.at
      @counts[step.name] += 1
      send(step.name, *step.numbers)
    end
    pass while monotonic - begun < @seconds
    say("the faults end")
    @later.each { |entry| entry[0] = 0 }
    pass
    wait_until(60, "all jobs are in the queues") { !producer.alive? }
    producer.value
  end

  # Runs in its own thread, because Redis may delay it.
  def produce(deadline)
    random = Random.new(@seed + 1)
    client = Client.new("#{@folder}/redis.sock")
    while monotonic < deadline
      random.rand(1..3).times do
        seconds = random.rand < 0.05 ? 15 : 0.2 + 7 * random.rand**2
        enqueue(client, "sidekiq", SecureRandom.hex(12), seconds)
      end
      random.rand(1..4).times { enqueue(client, "stub", SecureRandom.hex(12), 0.05 + 3 * random.rand**2) }
      enqueue(client, "plain", SecureRandom.hex(12), 2 + 8 * random.rand) if random.rand < 0.6
      send_storm(client, random) if @storm
      sleep 0.3 + 1.2 * random.rand
    end
  end

  def send_storm(client, random)
    @storm = false
    %w[sidekiq stub plain].each do |fleet|
      20.times { enqueue(client, fleet, SecureRandom.hex(12), 0.2 + random.rand) }
    end
  end

  # A job in the set is in its queue: the script can be repeated if its reply was lost.
  ENQUEUE = "if redis.call('sadd', 'chaos:enqueued', ARGV[1]) == 1 then redis.call('lpush', KEYS[1], ARGV[2]) end"

  def enqueue(client, fleet, jid, seconds, attempt = 1)
    time = Time.now.to_f
    queue, job = if Ledger::LISTED.include?(fleet)
      ["#{fleet}:jobs", "#{jid} #{(seconds * 1000).round}"]
    else
      ["queue:default", JSON.generate(class: "ChaosJob", args: [seconds], jid: jid, queue: "default", retry: false,
                                      created_at: time, enqueued_at: time)]
    end
    client.call("EVAL", ENQUEUE, 1, queue, "#{jid}:#{attempt}", job)
    ledger.add(jid, fleet)
  end

  def mend_all
    wait_until(ANSWER_SECONDS, "sqmgr answers") { sqmgr.answers }
    wait_until(120, "the orders are answered") { @orders.empty? }
    @status = nil
    configure
    [["reload"], *fleets.flat_map { |name, fleet| [["start", name], ["scale", name, fleet[:count]]] }].each do |words|
      given = order(*words)
      wait_until(90, "'#{words.join(" ")}' is answered") { given.answered }
    end
    wait_until(60, "sqmgr has found Redis") { @status&.fetch("redis")&.all? { |redis| redis["state"] == "connected" } }
    given = order("restart", "--wait=drained", "--timeout", "#{SETTLE_SECONDS}s")
    wait_until(SETTLE_SECONDS + 30, "the last restart ends") { given.answered }
  end

  # Every job must end. Jobs that the test itself cut off or lost are enqueued again, and must be done, too.
  def balance
    settle
    @wrongs = ledger.wrongs
    @cut, @lost, @again = ledger.all(:cut), ledger.all(:lost), ledger.count(:again)
    @lost.each { |jid| say("lost on its way: job #{jid}, #{ledger.story(jid)}") }
    (@cut + @lost).each { |jid| enqueue(@client, ledger.jobs[jid], jid, 0.1, 2) }
    settle
    left = ledger.jobs.size - ledger.count(:done) - ledger.count(:again)
    (@wrongs | ledger.wrongs).each { |wrong| violated(wrong) }
    violated("#{left} jobs were not done") if left.positive? && @wrongs.empty?
    violated("Sidekiq gave up jobs") unless @client.call("ZCARD", "dead").zero? && @client.call("ZCARD", "retry").zero?
  end

  # A fetched job that has not begun may still begin: waits until all has been quiet for a while.
  def settle
    quiet_since = monotonic
    seen = nil
    wait_until(self.class::SETTLE_SECONDS, "all jobs have ended") do
      ledger.refresh
      counts = [ledger.starts, ledger.count(:running), ledger.count(:queued)]
      quiet_since = monotonic if counts != seen || counts.last(2).sum.positive?
      seen = counts
      monotonic - quiet_since >= 5
    end
  end

  def preloaded = "forked"
  def wanted(fleet) = fleets[fleet["name"]][:count]

  def converged?
    return false unless @status
    forked = @status["fleets"].find { |fleet| fleet["name"] == preloaded }
    return false unless forked.dig("template", "state") == "ready" && forked["workers"].all? { |worker| worker["forked"] }
    @status["fleets"].all? do |fleet|
      workers, rollout = fleet["workers"], fleet["rollout"]
      fleet["state"] == "running" && [fleet["target"], workers.size].uniq == [wanted(fleet)] &&
        workers.all? { |worker| worker["ready"] && !worker["outdated"] } &&
        %w[none done].include?(rollout["state"]) && rollout["outdated"].zero?
    end
  end

  def converge
    wait_until(120, "every fleet is as it should be") { converged? }
    known = @status["fleets"].flat_map { |fleet| fleet["workers"].map { |worker| worker["pid"] } }.sort
    living = workers.map { |worker| worker.life.pid }.sort
    violated("sqmgr knows of processes #{known}, those that live are #{living}") if known != living
    all = @status["fleets"].filter_map { |fleet| fleet["template"] }
    known = all.filter_map { |template| template["pid"] }
    # The pid of a kept template is not shown.
    kept = all.count { |template| template["kept_generation"] }
    living = templates.map { |process| process.life.pid }
    return if (known - living).empty? && living.size == known.size + kept
    violated("sqmgr knows of the templates #{known} and of #{kept} more, those that live are #{living}")
  end

  # After a failure before `balance`, reads the ledger first.
  def report
    if !@wrongs && redis.usable?
      ledger.refresh
      ledger.wrongs.each { |wrong| violated(wrong) }
    end
    faults = @counts.sort.map { |name, count| "#{name} #{count}" }.join(", ")
    say("faults: #{faults}")
    say("jobs: #{ledger.jobs.size}, starts #{ledger.starts}, cut off by the test's own kills #{@cut&.size || "?"}, " \
        "lost in fetches that the test cut off #{@lost&.size || "?"}, pushed back twice #{@again || "?"}")
    say(format("slowest answer: %.2f s; violations: %d; seed %d", @slowest, @violations.size, @seed))
  end
end

if $PROGRAM_NAME == __FILE__
  chaos = Chaos.new(*ARGV)
  chaos.run
  exit(chaos.failed? ? 1 : 0)
end
