# SPDX-License-Identifier: MIT
# The row "deploy": real Sidekiqs run jobs while each supervisor restarts them, with its default settings and with the
# best settings of its manual. Counts the jobs that were lost and that ran twice.
require "json"

# One way to deploy: a supervisor, its settings, and the order to restart. seconds: its longest wait for the end of a
# worker. timeout: Sidekiq's option -t. Both are nil for the defaults.
DeployWay = Struct.new(:name, :supervisor, :how, :seconds, :timeout, :each, keyword_init: true) do
  def who = how ? "#{name}, #{how}" : name
end

module DeployWays
  # Longer than any job, as each manual recommends.
  SECONDS = 120
  TIMEOUT = 60

  # The sources of the settings. A value of nil: how the supervisor behaves, without a setting for it.
  SIDEKIQ_SIGNALS = "https://github.com/sidekiq/sidekiq/wiki/Signals"
  SETTINGS = {
    "sqmgr" => {
      nil => [["ready_after", "30s (default)", "sqmgr.ini(5)"], ["order", "sqmgrctl restart --wait=drained", "sqmgrctl(1)"]],
    },
    "supervisord" => {
      source: "https://supervisord.org/configuration.html#program-x-section-settings",
      default: [["stopsignal", "TERM (default)"], ["stopwaitsecs", "10 (default), then KILL"]],
      long: [["stopsignal", "TERM (default): Sidekiq finishes its jobs within -t"], ["stopwaitsecs", SECONDS.to_s]],
      all: "supervisorctl restart worker:*", each: "supervisorctl restart worker:N, for one worker after another",
    },
    "runit" => {
      source: "sv(8)",
      default: [["sv -w", "7 s (default); a timeout is reported, and kills nothing"]],
      long: [["sv -w", "#{SECONDS} s"]],
      all: "sv restart of all services", each: "sv restart of one service after another",
    },
    "s6" => {
      source: "https://skarnet.org/software/s6/s6-svc.html, servicedir.html",
      default: [["timeout-kill", "0 (default): never KILL"]],
      long: [["timeout-kill", "0 (default): never KILL"]],
      all: "s6-svc -r of each service at once", each: "s6-svc -wr -r of one service after another",
    },
    "pm2" => {
      source: "https://pm2.keymetrics.io/docs/usage/signals-clean-restart/",
      default: [["signal", "INT (default)"], ["kill_timeout", "1600 ms (default), then KILL"]],
      long: [["signal", "INT (default): Sidekiq finishes its jobs within -t"], ["kill_timeout", "#{SECONDS * 1000} ms"]],
      all: "pm2 restart worker (pm2 restarts two at a time)", each: "pm2 restart N, for one worker after another",
    },
  }.freeze

  HOWS = {
    "defaults" => { each: false },
    "long timeouts, all at once" => { each: false, seconds: SECONDS, timeout: TIMEOUT },
    "long timeouts, one by one" => { each: true, seconds: SECONDS, timeout: TIMEOUT },
  }.freeze

  # The way of systemd is stated by its manual: it is process 1 of a machine, and was not run.
  MANUAL = [
    ["defaults", "TimeoutStopSec=", "90 s (DefaultTimeoutStopSec=), then KILL", "systemd-system.conf(5)"],
    ["defaults", "KillSignal=", "TERM", "systemd.kill(5)"],
    ["defaults", "RestartSec=", "100 ms between the end of a worker and its replacement", "systemd.service(5)"],
    ["long timeouts", "TimeoutStopSec=", "infinity, with a Sidekiq -t longer than any job: no job is cut off, and none starts until the worker has stopped",
     "systemd.service(5)"],
  ].freeze

  module_function

  def settings(way)
    facts = SETTINGS.fetch(way.name)
    return facts.fetch(nil).map { |setting, value, source| row(way, setting, value, source) } if way.how.nil?

    rows = facts.fetch(way.seconds ? :long : :default).map { |setting, value| row(way, setting, value, facts[:source]) }
    rows << row(way, "order", facts.fetch(way.each ? :each : :all), facts[:source])
    rows << row(way, "Sidekiq -t", way.timeout ? "#{way.timeout} s" : "25 s (default), then running jobs are put back", SIDEKIQ_SIGNALS)
  end

  def row(way, setting, value, source) = { who: way.name, how: way.how || "defaults", setting: setting, value: value, source: source, run: true }

  def of_manual = MANUAL.map { |how, setting, value, source| { who: "systemd", how: how, setting: setting, value: value, source: source, run: false } }
end

# One deploy of WORKERS Sidekiqs in a place.
class Deploy
  WORKERS = 4
  THREADS = 5
  # The lengths of jobs, in turn: the last ones are longer than supervisord's 10 s, and Sidekiq's 25 s.
  LENGTHS = [2, 8, 15, 35].freeze
  LENGTHS_SHORT = [1, 3, 12].freeze
  WARM_SECONDS = 12

  def initialize(place, way, lengths)
    @place = place
    @way = way
    @lengths = lengths
    @pushed = 0
    FileUtils.cp("#{Place::TOP}/tests/bench/deploy_job.rb", "#{place.folder}/app.rb")
  end

  # Returns the counts and the times.
  def run
    start
    feed_for(WARM_SECONDS)
    old = identities
    ordered = @place.now
    order
    @place.wait(240, "the end of the deploy of #{@way.who}", pause: 0.2) { feed && !@order.alive? && replaced?(old) }
    finished = @place.now
    drain
    result(ordered, finished)
  end

  private

  def command
    sidekiq = ["sidekiq", "-r", "#{@place.folder}/app.rb", "-c", THREADS.to_s]
    @way.timeout ? [*sidekiq, "-t", @way.timeout.to_s] : sidekiq
  end

  def start
    if @way.name == "sqmgr"
      start_sqmgr
    else
      @way.supervisor.start(@place, WORKERS, command: ["/usr/bin/env", "REDIS_URL=unix://#{@place.redis_socket}", *command],
                                             **{ seconds: @way.seconds }.compact)
    end
    @place.wait(180, "#{WORKERS} Sidekiqs", pause: 0.2) { identities.size == WORKERS }
  end

  def start_sqmgr
    File.write("#{@place.folder}/sqmgr.ini", <<~INI)
      [sqmgr]
      socket = #{@place.control_socket}
      [redis]
      url = unix://#{@place.redis_socket}
      [fleet:f]
      command = #{command.join(" ")}
      directory = #{@place.folder}
      environment = REDIS_URL=unix://#{@place.redis_socket}
      log = #{@place.folder}/workers.log
      active_process_count = #{WORKERS}
    INI
    @place.spawn("sqmgr", "#{@place.build}/sqmgr", "-c", "#{@place.folder}/sqmgr.ini")
  end

  # The commands run beside the feeding of jobs. Their results are no evidence: the ends of all old workers are.
  def order
    commands = @way.supervisor.restart(@place, WORKERS, each: @way.each, **{ seconds: @way.seconds }.compact)
    @order = Thread.new { commands.each { |command| Process.wait(@place.spawn("order", *command)) } }
  end

  # Keeps as many jobs queued as all threads can take at once.
  def feed
    queued = @place.redis("LLEN queue:default").to_i
    (WORKERS * THREADS - queued).times do
      job = { class: "DeployJob", args: [@lengths[@pushed % @lengths.size]], queue: "default", jid: format("%024x", @pushed),
              retry: false, created_at: 0, enqueued_at: 0 }
      @place.redis("LPUSH queue:default '#{JSON.generate(job)}'")
      @pushed += 1
    end
    true
  end

  def feed_for(seconds)
    deadline = @place.now + (seconds * 1_000_000_000)
    feed && sleep(0.2) while @place.now < deadline
  end

  # "HOST:PID:NONCE" of each Sidekiq that lives; a killed one stays in the set.
  def identities = (@place.redis("SMEMBERS processes") || []).select { |identity| File.exist?("/proc/#{identity.split(":")[-2]}/exe") }
  def replaced?(old) = (identities & old).empty? && identities.size == WORKERS

  # After the last job was taken, the longest one has time to end.
  def drain
    @place.wait(300, "an empty queue", pause: 0.2) { @place.redis("LLEN queue:default").to_i.zero? }
    deadline = @place.now + ((@lengths.max + 5) * 1_000_000_000)
    sleep 0.2 until done == @pushed || @place.now > deadline
  end

  def done = @place.redis("HLEN ledger:done").to_i

  def result(ordered, finished)
    twice = @place.redis("HVALS ledger:started").count { |n| n.to_i > 1 }
    starts = @place.redis("LRANGE ledger:times 0 -1").map(&:to_i).sort
    gap = [ordered, *starts.select { |at| at.between?(ordered, finished) }, finished].each_cons(2).map { |a, b| b - a }.max
    { jobs: @pushed, lost: @pushed - done, twice: twice, gap: gap / 1e9, took: (finished - ordered) / 1e9 }
  end
end

class Bench
  # As many deploys at once; each mostly waits.
  DEPLOYS_AT_ONCE = 5

  def deploy_ways
    hows = options[:short] ? DeployWays::HOWS.slice("defaults", "long timeouts, all at once") : DeployWays::HOWS
    others = hows.to_a.reverse.flat_map do |how, settings|
      supervisors.slice(*DeployWays::SETTINGS.keys).map { |name, supervisor| DeployWay.new(name: name, supervisor: supervisor, how: how, **settings) }
    end
    [DeployWay.new(name: "sqmgr", supervisor: SQMGR)] + others
  end

  def row_deploy
    @versions["Sidekiq"] = `sidekiq --version 2>/dev/null`[/[\d.]+/] || raise(Place::Failed, "it needs what `contrib/setup bench` installs")
    @versions["systemd, by its manual only"] = `systemctl --version 2>/dev/null`[/\d+/] || "252"
    ways = deploy_ways
    taken = play_deploys(ways)
    @settings.concat(ways.flat_map { |way| DeployWays.settings(way) }, DeployWays.of_manual)
    lengths = deploy_lengths
    note("row deploy: #{Deploy::WORKERS} Sidekiqs of #{Deploy::THREADS} threads; jobs of #{lengths.join(", ")} s in turn; " \
         "the queue is never empty; #{DEPLOYS_AT_ONCE} deploys at once")
    deploy_figures(ways.sort_by { |way| [DeployWays::SETTINGS.keys.index(way.name), DeployWays::HOWS.keys.index(way.how) || 0] }, taken)
  end

  def deploy_lengths = options[:short] ? Deploy::LENGTHS_SHORT : Deploy::LENGTHS

  def play_deploys(ways)
    queue = ways.dup
    taken = {}
    lock = Mutex.new
    Array.new(DEPLOYS_AT_ONCE) do
      Thread.new do
        while (way = lock.synchronize { queue.shift })
          result = play_deploy(way)
          lock.synchronize { result.is_a?(Hash) ? taken[way.who] = result : note("row deploy: #{way.who} is left out: #{result}") }
        end
      end
    end.each(&:join)
    raise Place::Failed, "the deploy of sqmgr failed" unless taken["sqmgr"]

    taken
  end

  def play_deploy(way)
    Place.open(build) { |place| Deploy.new(place, way, deploy_lengths).run }
  rescue Place::Failed => e
    e.message
  end

  def deploy_figures(ways, taken)
    { lost: ["jobs lost by a deploy", "jobs"], twice: ["jobs run twice by a deploy", "jobs"],
      gap: ["longest time without a job start in a deploy, while jobs wait", "s"], took: ["from the order until all workers are new", "s"],
      jobs: ["jobs of the whole trial", "jobs"] }.each do |key, (what, unit)|
      ways.each { |way| figure(way.who, taken[way.who][key], unit: unit, what: what) if taken[way.who] }
    end
  end
end
