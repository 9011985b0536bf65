# SPDX-License-Identifier: MIT
# The soak: everything at once, for hours, at low load. Two hosts (host.rb), each an sqmgr with its own host name, socket
# and state, share one Redis. They run Sidekiq with preload and autoscaling, Celery with
# autoscaling, RQ, and stub or plain workers. The seed chooses the faults of the chaos test and restarts with --wait.
# Once a minute the memory, descriptors, processor time and files of each sqmgr and of its helper are recorded.
#
# Time has eras of two hours. In the first part of an era every fault happens, also kill -9 of sqmgr and damaged state;
# then the processes of sqmgr stay, so that their series are long enough for a slope. FOLDER is removed by its guard; OUT keeps samples.json, verdict.txt and the logs.
# Usage: soak.rb FOLDER TOP STUB OUT HOURS SEED
require "fileutils"
require "json"
require_relative "host"
require_relative "soak_ledger"
require_relative "verdict"

class Soak
  ERA_SECONDS = 7200
  HEAVY_SECONDS = 300
  HEAVY_INTERVAL = 12   # mean time between two faults, in seconds
  LIGHT_INTERVAL = 20
  LAST_KILL_SECONDS = 15
  SAMPLE_SECONDS = 60
  WAVE_SECONDS = 600    # the load rises and falls: autoscaling has something to do

  # Faults that end a process of sqmgr.
  ENDING = %i[kill_sqmgr kill_in_restart reexec damage_state damage_starts].freeze
  OWN = { restart_waiting: 10, storm: 3 }.freeze

  Step = Struct.new(:at, :host, :name, :numbers)

  # A pure function of the seed.
  def self.schedule(seed, seconds)
    random = Random.new(seed)
    heavy = Faults::WEIGHTS.merge(OWN)
    light = heavy.except(*ENDING)
    steps = []
    at = 0
    loop do
      at += (heavy?(at, seconds) ? HEAVY_INTERVAL : LIGHT_INTERVAL) * (0.3 + 1.4 * random.rand)
      return steps if at >= seconds
      heavy_now = heavy?(at, seconds)
      host = random.rand < 0.5 ? "a" : "b"
      names = (heavy_now ? heavy : light).flat_map { |name, weight| [name] * weight }
      steps << Step.new(at, host, names.sample(random: random), Array.new(3) { random.rand })
    end
  end

  def self.heavy?(at, seconds) = at % ERA_SECONDS < [HEAVY_SECONDS, seconds / 10.0].min

  attr_reader :folder, :redis, :client, :ledger, :violations, :hosts

  def initialize(folder, top, stub, out, hours, seed)
    @folder, @top, @out = folder, top, out
    @seconds, @seed = Float(hours) * 3600, Integer(seed)
    @begun = monotonic
    @violations, @samples = [], []
    @processor = {}
    @redis = Server.new("Redis") { hosts.first.launch_redis }
    @client = Client.new("#{folder}/redis.sock")
    @ledger = SoakLedger.new(folder, @client)
    @hosts = %w[a b].map { |name| Host.new(self, name, top, stub) }
  end

  def run
    File.write("#{@folder}/pids/#{Process.pid}", "#{Life.of(Process.pid).start}\n")
    File.write("#{@folder}/ledger", "")
    say("seed #{@seed}, #{(@seconds / 3600).round(2)} hours of faults, sqmgr #{`sqmgr --version`.lines.first.to_s.chomp}")
    begin_all
    break_things
    end_all
  rescue Chaos::Violated
    # The report has it.
  ensure
    report
  end

  def failed? = !@violations.empty? || !@verdict || @verdict.grown.any?

  def say(text)
    puts(format("# %7.1f %s %s", monotonic - @begun, Time.now.strftime("%T"), text))
    $stdout.flush
  end

  def pass(seconds = 0.5)
    sleep seconds
    hosts.each(&:observe)
    sample if @next_sample && monotonic >= @next_sample
  end

  def storm
    say("a storm of jobs")
    @storm = true
  end

  private

  def begin_all
    hosts.each(&:prepare)
    redis.start
    redis_answers = -> { @client.call("PING") == "PONG" }
    sleep 0.1 until redis_answers.call
    hosts.each(&:start)
    say("all workers are ready")
  end

  def break_things
    begun = monotonic
    @next_sample = begun
    producer = Thread.new { produce(begun) }
    producer.report_on_exception = true
    steps = Soak.schedule(@seed, @seconds)
    filled = 0
    until monotonic - begun >= @seconds
      pass
      elapsed = monotonic - begun
      while steps.any? && steps.first.at <= elapsed
        step = steps.shift
        hosts.find { |host| host.name == step.host }.execute(step.name, step.numbers)
      end
      # A fault of the first part may kill sqmgr some seconds later.
      next if Soak.heavy?(elapsed, @seconds) || Soak.heavy?(elapsed - LAST_KILL_SECONDS, @seconds)
      next if filled > elapsed / ERA_SECONDS
      filled += 1
      say("from here on sqmgr is not killed")
      hosts.each(&:fill_events)
    end
    say("the faults end")
    @ended = true
    hosts.each(&:end_faults)
    producer.join(90) or @violations << "jobs could not be enqueued"
  end

  def end_all
    hosts.each(&:mend_all)
    hosts.first.balance
    hosts.each(&:converge)
  end

  # A few jobs a second at most. Runs in its own thread, because Redis may delay it.
  def produce(begun)
    random = Random.new(@seed + 1)
    client = Client.new("#{@folder}/redis.sock")
    give = ->(fleet, seconds) { hosts.first.enqueue(client, fleet, SecureRandom.hex(12), seconds) }
    until @ended
      give.call("sidekiq", 0.2 + 6 * random.rand**2)
      give.call(random.rand < 0.5 ? "celery" : "celery-late", 0.2 + 5 * random.rand**2) if random.rand < 0.4
      give.call("rq", 0.2 + 4 * random.rand**2) if random.rand < 0.3
      give.call("stub", 0.1 + 3 * random.rand**2) if random.rand < 0.5
      give.call("plain", 1 + 5 * random.rand) if random.rand < 0.4
      if @storm
        @storm = false
        40.times { give.call("sidekiq", 1 + 3 * random.rand) }
        15.times { give.call("celery", 1 + 3 * random.rand) }
      end
      wave = 1 + 0.7 * Math.sin(2 * Math::PI * (monotonic - begun) / WAVE_SECONDS)
      sleep 2.5 / wave
    end
  end

  def sample
    @next_sample += SAMPLE_SECONDS while @next_sample <= monotonic
    hours = (monotonic - @begun) / 3600
    hosts.each do |host|
      next unless host.sqmgr.usable?
      sqmgr = host.sqmgr.life
      figures = figures_of(hours, "#{host.name} sqmgr", sqmgr, host.images)
      @samples << figures.merge("state" => files_of(host)) if figures
      children_of(sqmgr.pid).each do |pid|
        name = File.read("/proc/#{pid}/comm").chomp
        life = Life.of(pid) if name.start_with?("sqmgr-proc-read")
        @samples << figures_of(hours, "#{host.name} #{name}", life) if life
      rescue SystemCallError
        next
      end
    end
    @samples.compact!
    if redis.usable?
      @samples << { "hours" => hours, "process" => "Redis", "keys" => @client.call("KEYS", "sqmgr*").size }
    end
    write_out if (@samples_taken = (@samples_taken || 0) + 1) % 10 == 0
  end

  # A process of sqmgr after a re-exec begins a new series. Processor time: milliseconds in a minute, since the last sample.
  def figures_of(hours, name, life, image = 0)
    process = "#{name} #{life}#{"+#{image}" if image.positive?}"
    rollup = File.read("/proc/#{life.pid}/smaps_rollup").scan(/^(\w+): +(\d+) kB/).to_h
    stat = File.read("/proc/#{life.pid}/stat").rpartition(")").last.split
    at, used = monotonic, (stat[11].to_i + stat[12].to_i) * 1000.0 / TICKS
    before = @processor[process]
    @processor[process] = [at, used]
    figures = { "hours" => hours, "process" => process, "rss" => rollup["Rss"].to_i, "pss" => rollup["Pss"].to_i,
                "anonymous" => rollup["Anonymous"].to_i, "descriptors" => Dir.children("/proc/#{life.pid}/fd").size,
                "children" => children_of(life.pid).size }
    figures["cpu"] = (used - before[1]) * 60 / (at - before[0]) if before && at - before[0] > 30
    figures
  rescue SystemCallError
    nil
  end

  TICKS = 100 # sysconf(_SC_CLK_TCK) of Linux

  def children_of(pid)
    File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i)
  rescue SystemCallError
    []
  end

  # In KB, without the file that fills the disk.
  def files_of(host)
    Dir["#{host.folder}/disk/state*"].sum { |path| File.size?(path) || 0 } / 1024.0
  end

  def write_out
    verdict = SoakVerdict.new(@samples)
    replace("samples.json", JSON.generate(seed: @seed, hours: @seconds / 3600, samples: @samples))
    replace("verdict.txt", summary(verdict))
    verdict
  end

  def replace(name, text)
    File.write("#{@out}/#{name}.new", text)
    File.rename("#{@out}/#{name}.new", "#{@out}/#{name}")
  end

  def summary(verdict)
    now = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    faults = hosts.map(&:fault_counts).each_with_object(Hash.new(0)) { |counts, sum| counts.each { |k, n| sum[k] += n } }
    waits = hosts.map(&:outcomes).each_with_object(Hash.new(0)) { |counts, sum| counts.each { |k, n| sum[k] += n } }
    text = verdict.text
    text << "faults: #{faults.sort.map { |name, count| "#{name} #{count}" }.join(", ")}\n"
    text << "restarts with --wait, by exit code: #{waits.sort.map { |code, count| "#{code}: #{count}" }.join(", ")}\n"
    text << "jobs: #{ledger.jobs.size}#{@jobs}\n"
    text << format("after %.2f hours; the test itself used %.1f s of processor time; seed %d\n",
                   (monotonic - @begun) / 3600, now, @seed)
    violations.each { |violation| text << "VIOLATION: #{violation}\n" }
    text << (@over ? (violations.any? || verdict.grown.any? ? "FAILED\n" : "PASSED\n") : "not over yet\n")
  end

  def report
    if redis.usable?
      ledger.refresh
      ledger.wrongs.each { |wrong| violations << wrong unless violations.include?(wrong) }
      words = %i[done again cut lost running queued wrong].map { |word| "#{word} #{ledger.count(word)}" }
      @jobs = ": #{words.join(", ")}; starts #{ledger.starts}; slowest answer of sqmgr #{format("%.2f", hosts.map(&:slowest).max)} s"
    end
    @over = true
    @verdict = write_out
    puts File.read("#{@out}/verdict.txt")
    Dir["#{@folder}/{ledger,[ab]/sqmgr.log,[ab]/workers.log,[ab]/orders.log,[ab]/sqmgr.ini}"].each do |path|
      FileUtils.cp(path, "#{@out}/#{path.delete_prefix("#{@folder}/").tr("/", "-")}")
    end
  end
end

if $PROGRAM_NAME == __FILE__
  soak = Soak.new(*ARGV)
  soak.run
  exit(soak.failed? ? 1 : 0)
end
