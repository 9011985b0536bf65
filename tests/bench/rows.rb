# SPDX-License-Identifier: MIT
# The measurements by row, with their targets.
ROWS = {
  "1" => { title: "kill -9 of a worker to the first instruction of its replacement", run: :row_crash },
  "2" => { title: "memory of the supervisor", run: :row_memory },
  "3" => { title: "CPU while idle, workers beating every 5 s", run: :row_idle },
  "4" => { title: "CPU time of a tick", run: :row_tick },
  "5" => { title: "CPU time of a tick with 100,000 identities of other hosts", run: :row_tick_crowd },
  "6" => { title: "starting all workers", run: :row_start },
  "7" => { title: "a new worker is ready to the old one's quiet signal", run: :row_restart },
  "8" => { title: "second idle beat to TERM", run: :row_restart_idle },
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

  def others(large: false)
    supervisors.reject do |name, supervisor|
      large && supervisor.small_only && (note("row #{@row}: #{name} is left out: #{supervisor.small_only}") || true)
    end.to_a
  end

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

  def contenders(large: false) = [["floor", FLOOR], ["sqmgr", SQMGR]] + others(large: large)

  # Workers of floor and sqmgr are killed in random order, so that both have the same load.
  FEW = 5
  MANY = 300
  ROUND_SECONDS = 3

  def row_crash
    crashes_in_turn
    others.each { |name, supervisor| try(name) { figure(name, crashes(supervisor), unit: "ms") } }
  end

  def crashes_in_turn
    running(FLOOR, FEW) do |floor, _|
      running(SQMGR, 1, fleets: FEW, beat_ms: 1000) do |few, _|
        running(SQMGR, MANY) do |many, _|
          places = { "floor" => floor, "few" => few, "many" => many }
          sleep SETTLE
          took = kill_in_turn(places)
          figure("floor", took["floor"], unit: "ms")
          figure("sqmgr, of #{FEW} workers", took["few"], unit: "ms", target: { max: 1.5, of: "floor" })
          figure("sqmgr, of #{MANY} workers", took["many"], unit: "ms", target: { max: 1.8, of: "floor" })
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

  def settled(place, supervisor, pid, count)
    place.wait(120, "#{count} beating workers") { place.times("beats").size >= count }
    sleep SETTLE
    supervisor.processes(place, pid)
  end

  def row_memory
    small = options[:workers] / 10
    large_ones.each do |name, supervisor|
      try(name) do
        more = large(name, supervisor)[:memory]
        less = running(supervisor, small) { |place, pid| memory(settled(place, supervisor, pid, small)) }
        target = { max: 6 } if name == "sqmgr"
        figure(name, more / MS, unit: "MB", target: target, what: "memory with #{options[:workers]} workers")
        figure(name, (more - less) / (options[:workers] - small), unit: "bytes", what: "memory for each worker more")
      end
    end
  end

  def large_ones = [["sqmgr", SQMGR]] + others(large: true)

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
    large_ones.each do |name, supervisor|
      try(name) do
        figure(name, large(name, supervisor)[:idle], unit: "% of a core", target: ({ max: 0.5 } if name == "sqmgr"))
      end
    end
  end

  TICKS = 20

  def row_tick = ticks { |floor, sqmgr| tick_figures(floor, sqmgr, { max: 1.5, of: "floor" }) }

  def row_tick_crowd
    ticks(crowd: 100_000) { |floor, sqmgr| tick_figures(floor, sqmgr, { max: 1.1, of: "sqmgr", row: "4" }) }
  end

  def tick_figures(floor, sqmgr, target)
    figure("floor", floor, unit: "ms")
    figure("sqmgr", sqmgr, unit: "ms", target: target)
  end

  # Measures sqmgr, then the floor, with the same workers and the same Redis, at one poll a second each.
  def ticks(crowd: 0)
    count = options[:workers]
    running(SQMGR, count, check: "1s") do |place, pid|
      pids = settled(place, SQMGR, pid, count)
      place.cli("--pipe", input: ->(io) { crowd.times { |i| io.write("SADD processes other-#{i % 2000}:#{i}:0123456789ab\r\n") } }) if crowd.positive?
      sleep 2
      list = place.cli("SMEMBERS", "processes").lines(chomp: true).reject { |line| line.start_with?("other-") }
      raise Place::Failed, "#{list.size} identities of #{count} workers" if list.size != count

      sqmgr = (1..TICKS).map { tick_of(place, pids, count) }
      floor = IO.popen([place.floor, "look", place.redis_socket, "1000", TICKS.to_s], "r+") do |io|
        io.write(list.map { |identity| "#{identity} #{identity.split(":")[-2]}\n" }.join)
        io.close_write
        io.readlines.map { |line| line.to_i / MS }
      end
      yield floor, sqmgr
    end
  end

  # From the middle between two ticks to the middle between the next two.
  def tick_of(place, pids, count)
    calls = -> { place.calls_of("hmget") }
    at = calls.call
    place.wait(10, "a tick") { calls.call >= at + count }
    sleep 0.3
    cpu = Cost.cpu_nsec(*pids)
    calls_before = calls.call
    place.wait(10, "a tick") { calls.call >= calls_before + count }
    sleep 0.3
    (Cost.cpu_nsec(*pids) - cpu) / MS / ((calls.call - calls_before) / count.to_f)
  end

  def row_start
    contenders(large: true).each do |name, supervisor|
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

  FLEETS = 20

  def row_restart
    restarts
    figure("sqmgr", @quieted, unit: "ms", target: { max: 300 })
  end

  def row_restart_idle
    restarts unless @stopped
    figure("sqmgr", @stopped, unit: "ms", target: { max: 300 })
  end

  # One worker in each fleet, so that each new worker has its old one. Uses records of the workers alone.
  def restarts
    running(SQMGR, 1, fleets: FLEETS, beat_ms: 1000, boot: 0.5) do |place, _|
      place.wait(60, "the workers") { place.times("beats").size == FLEETS }
      sleep 3
      @quieted = []
      @stopped = []
      2.times { restart(place) }
    end
  end

  def restart(place)
    from = File.readlines(place.times_file).size
    FLEETS.times do |i|
      system("#{build}/sqmgrctl", "-s", place.control_socket, "restart", "f#{i + 1}", %i[out err] => "/dev/null")
      sleep 0.13
    end
    place.wait(90, "the old workers' ends") { place.times("stop", from).size == FLEETS }
    fleet_of = ->(pid) { @fleet_of.fetch(pid) }
    @fleet_of = fleets_of(place)
    quiet = place.times("quiet", from).to_h { |_, pid, nsec| [fleet_of.call(pid), nsec] }
    place.times("beats", from).each do |_, pid, nsec|
      @quieted << ((quiet.fetch(fleet_of.call(pid)) - nsec) / MS) - Place::READY_MS
    end
    stop = place.times("stop", from).to_h { |_, pid, nsec| [pid, nsec] }
    place.times("idle", from).each { |_, pid, nsec| @stopped << ((stop.fetch(pid) - nsec) / MS) }
    sleep 2
  end

  # Returns the fleet of each pid, from the starts in the log.
  def fleets_of(place)
    File.read("#{place.folder}/sqmgr.log").scan(%r{\b(f\d+)/\d+.*?\bpid (\d+)}).to_h { |fleet, pid| [pid.to_i, fleet] }
  end

  STATUS = 30
  CLIENTS = 100

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
      alone = delays(place)
      crowd = delays(place) { crowd_asks(place) }
      figure("sqmgr", alone, unit: "ms", what: "delay of a tick, left alone")
      figure("sqmgr", crowd, unit: "ms", what: "delay of a tick, #{CLIENTS} clients asking at once, again and again")
      figure("sqmgr", [crowd.max - alone.max, 0].max, unit: "ms", target: { max: 5 }, what: "the greatest delay with clients beyond that without")
    end
  end

  # Delay of the first heartbeat query of each tick, by Redis' clock, for about 30 ticks.
  def delays(place)
    seen = []
    IO.popen(["redis-cli", "-s", place.redis_socket, "MONITOR"]) do |monitor|
      ticks = Thread.new { monitor.each_line { |line| seen << line[/\A[\d.]+/].to_f if line.include?('"HMGET"') } }
      deadline = place.now + 30_000_000_000
      while place.now < deadline
        yield if block_given?
        sleep 0.05
      end
      Process.kill(:TERM, monitor.pid)
      ticks.join
    end
    begun = seen.each_cons(2).select { |a, b| b - a > 0.3 }.map(&:last)
    begun.each_cons(2).map { |a, b| [(b - a - 1) * 1000, 0].max }
  end

  def crowd_asks(place)
    sockets = (1..CLIENTS).map { UNIXSocket.new(place.control_socket) }
    sockets.each { |socket| socket.write("{\"method\":\"org.sqmgr.Control.GetStatus\"}\0") }
    left = sockets.dup
    until left.empty?
      IO.select(left).first.each do |socket|
        left.delete(socket) if socket.readpartial(1 << 20).end_with?("\0")
      end
    end
  ensure
    sockets&.each(&:close)
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
