# SPDX-License-Identifier: MIT
# The measurements by row, with their targets.
ROWS = {
  "1" => { title: "kill -9 of a worker to the first instruction of its replacement", run: :row_crash },
  "2" => { title: "memory of the supervisor", run: :row_memory },
  "3" => { title: "CPU while idle, workers beating every 5 s", run: :row_idle },
  "6" => { title: "starting all workers", run: :row_start },
  "7" => { title: "starts at once", run: :row_at_once },
  "9" => { title: "status", run: :row_status },
  "10" => { title: "one plan", run: :row_plan },
  "deploy" => { title: "a deploy under load", run: :row_deploy },
  "preload" => { title: "workers forked from a loaded application", run: :row_preload },
}.freeze

class Bench
  MS = 1_000_000.0
  # A worker that dies within 10 s of activity counts as a failed start. These workers boot so fast that sqmgr mistakes
  # a first heartbeat for an old one, and waits for the second, 5 s later.
  SETTLE = 18

  # Yields the supervisor's pid, and the time before its start, once it runs count workers. Ends them all afterwards.
  def running(supervisor, count, seconds: 180, **how)
    Place.open(build) do |place|
      begun = place.now
      pid = supervisor.start(place, count, **how)
      place.wait_births(count * how.fetch(:fleets, 1), seconds)
      yield place, pid, begun
    end
  end

  # A failure of another supervisor is a note; sqmgr and the floor must succeed.
  def try(name)
    yield
  rescue Place::Failed => e
    raise if %w[sqmgr floor].include?(name)

    note("row #{@row}: #{name} is left out: #{e.message}")
  end

  def contenders = [["floor", FLOOR], ["sqmgr", SQMGR], *supervisors]

  # Workers of floor and sqmgr are killed in random order, so that both have the same load.
  FEW = 5
  MANY = 300
  ROUND_SECONDS = 3

  def row_crash
    crashes_in_turn
    supervisors.each { |name, supervisor| try(name) { figure(name, crashes(supervisor), unit: "ms") } }
  end

  def crashes_in_turn
    running(FLOOR, FEW) do |floor, _|
      running(SQMGR, 1, fleets: FEW, beat_ms: 1000) do |few, _|
        running(SQMGR, MANY) do |many, _|
          places = { "floor" => floor, "few" => few, "many" => many }
          sleep SETTLE
          took = kill_in_turn(places)
          figure("floor", took["floor"], unit: "ms")
          figure("sqmgr, of #{FEW} workers", took["few"], unit: "ms", target: { max: 1.3, of: "floor" })
          figure("sqmgr, of #{MANY} workers", took["many"], unit: "ms", target: { max: 1.3, of: "floor" })
        end
      end
    end
  end

  # A worker is killed again only once its death counts as no failed start.
  def kill_in_turn(places)
    pids = places.transform_values { |place| place.times("born").map { |_, pid, _| pid } }
    took = places.transform_values { [] }
    options[:crashes].times do
      begun = now
      places.keys.shuffle.each do |name|
        born, pid = crash(places[name], pids[name].shift)
        pids[name] << pid
        took[name] << born
      end
      sleep [ROUND_SECONDS - ((now - begun) / 1e9), 0].max
    end
    took
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  # Kills a worker. Returns the milliseconds until its replacement runs, and the replacement's pid.
  def crash(place, pid)
    sleep 0.1 + (rand / 10)
    before = place.times("born").size
    killed_at = place.now
    Process.kill(:KILL, pid)
    sleep 0.02
    born = place.wait(30, "the replacement of #{pid}") { place.times("born")[before] }
    [(born.last - killed_at) / MS, born[1]]
  end

  def crashes(supervisor)
    running(supervisor, options[:crashes]) do |place, _|
      sleep SETTLE
      place.times("born").first(options[:crashes]).map { |_, pid, _| crash(place, pid).first }
    end
  end

  # All workers are killed at once. Both supervisors run meanwhile, and their rounds alternate.
  AT_ONCE_ROUNDS = 5

  def row_at_once
    running(FLOOR, MANY) do |floor, _|
      running(SQMGR, MANY) do |sqmgr, _|
        places = { "floor" => floor, "sqmgr" => sqmgr }
        took = places.transform_values { [] }
        (options[:short] ? 1 : AT_ONCE_ROUNDS).times do
          sleep SETTLE
          places.each { |name, place| took[name] << crash_all(place) }
        end
        what = "kill -9 of #{MANY} workers to the first instruction of the last replacement"
        figure("floor", took["floor"], unit: "ms", what: what)
        figure("sqmgr", took["sqmgr"], unit: "ms", what: what, target: { max: 1.3, of: "floor" })
      end
    end
  end

  def crash_all(place)
    before = place.times("born")
    killed_at = place.now
    before.last(MANY).each { |_, pid, _| Process.kill(:KILL, pid) }
    place.wait(60, "#{MANY} replacements") { place.times("born").size >= before.size + MANY }
    (place.times("born").map(&:last).max - killed_at) / MS
  end

  def settled(place, supervisor, pid, count)
    place.wait(120, "#{count} beating workers") { place.times("beats").size >= count }
    sleep SETTLE
    supervisor.processes(place, pid)
  end

  def row_memory
    small = options[:workers] / 10
    [["sqmgr", SQMGR], *supervisors].each do |name, supervisor|
      try(name) do
        more = large(name, supervisor)[:memory]
        less = running(supervisor, small) { |place, pid| memory(settled(place, supervisor, pid, small)) }
        target = { max: 6 } if name == "sqmgr"
        figure(name, more / MS, unit: "MB", target: target, what: "memory with #{options[:workers]} workers")
        figure(name, (more - less) / (options[:workers] - small), unit: "bytes", what: "memory for each worker more")
      end
    end
  end

  # Rows "2", "3" and "6" measure one start of all workers.
  def large(name, supervisor)
    @large ||= {}
    @large[name] ||= begin
      count = options[:workers]
      running(supervisor, count) do |place, pid, begun|
        start = (place.times("born").map(&:last).max - begun) / MS
        pids = settled(place, supervisor, pid, count)
        { start: start, memory: memory(pids), idle: idle(pids) }
      end
    end
  end

  # Returns the share of a core that the processes take, in percent.
  def idle(pids)
    before = Cost.cpu_nsec(*pids)
    sleep options[:seconds]
    (Cost.cpu_nsec(*pids) - before) / (options[:seconds] * 1e9) * 100
  end

  # Proportional shares, so that shared pages count once.
  def memory(pids) = pids.sum { |pid| Cost.pss_bytes(pid) }

  def row_idle
    [["sqmgr", SQMGR], *supervisors].each do |name, supervisor|
      try(name) do
        figure(name, large(name, supervisor)[:idle], unit: "% of a core", target: ({ max: 0.5 } if name == "sqmgr"))
      end
    end
  end

  def row_start
    contenders.each do |name, supervisor|
      try(name) do
        took = { "floor" => 3, "sqmgr" => 2 }.fetch(name, 0).times.map { start_all(supervisor) }
        took << large(name, supervisor)[:start] if name != "floor"
        figure(name, took, unit: "ms", what: "from its own start to the #{options[:workers]}th worker's first instruction",
               target: ({ max: 1.5, of: "floor" } if name == "sqmgr"))
      end
    end
  end

  def start_all(supervisor)
    Place.open(build) do |place|
      begun = place.now
      supervisor.start(place, options[:workers])
      place.wait_births(options[:workers])
      (place.times("born").map(&:last).max - begun) / MS
    end
  end

  STATUS = 30

  def row_status
    count = options[:workers]
    running(SQMGR, count, check: "1s") do |place, pid|
      settled(place, SQMGR, pid, count)
      command = ["#{build}/sqmgrctl", "-s", place.control_socket, "status"]
      took = (1..STATUS).map do
        begun = place.now
        system(*command, out: "/dev/null") || raise(Place::Failed, "sqmgrctl status failed")
        (place.now - begun) / MS
      end
      figure("sqmgr", took, unit: "ms", target: { max: 50 }, what: "`sqmgrctl status` of #{count} workers")
    end
  end

  def row_plan
    sizes = [100, 300, 1000, 3000, 10_000]
    medians = sizes.map do |size|
      took = IO.popen(["#{build}/tests/bench/plan-cost", size.to_s, "101"], &:readlines).map { |line| line.to_i / MS }
      figure("sqmgr", took, unit: "ms", what: "one plan of #{size} workers", target: ({ max: 2 } if size == 10_000))
      Figures.new(took).median
    end
    logs = sizes.zip(medians).map { |pair| pair.map { |n| Math.log(n) } }
    x, y = logs.transpose.map { |list| list.sum / list.size }
    slope = logs.sum { |a, b| (a - x) * (b - y) } / logs.sum { |a, _| (a - x)**2 }
    figure("sqmgr", slope, unit: "exponent", what: "growth of a plan with its workers (1: linear)")
  end
end
