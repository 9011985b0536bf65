# SPDX-License-Identifier: MIT
# The supervisors that are compared, each configured by its manual to run `count` workers.
class Supervisor
  attr_reader :program, :package

  def initialize(program, package, version)
    @program = program
    @package = package
    @version = version
  end

  def path = ENV.fetch("PATH").split(":").map { |dir| "#{dir}/#{program}" }.find { |path| File.executable?(path) }
  def missing = "no #{program} on this machine (#{package})"
  def version = path && @version.call

  # Starts the workers, and returns the pid of the supervisor.
  def start(_place, _count, **) = raise(NotImplementedError)

  # Returns the commands that restart the workers, to be run one after another: for all workers together, or for each.
  # seconds: the longest time that the supervisor may wait for a worker's end, nil for its default.
  def restart(_place, _count, each: false, seconds: nil) = raise(NotImplementedError)

  # Returns all of its processes except the workers.
  def processes(place, pid) = [pid] | (place.members - place.workers)
end

class Sqmgr < Supervisor
  def path = "sqmgr"
  def start(place, count, fleets: 1, **how)
    place.configure(count, fleets, **how)
    place.spawn("sqmgr", "#{place.build}/sqmgr", "-c", "#{place.folder}/sqmgr.ini")
  end

  def restart(place, _count, **)
    [["#{place.build}/sqmgrctl", "-s", place.control_socket, "restart", "--wait=drained"]]
  end

  # The helper of sqmgr works in another folder.
  def processes(place, pid)
    [pid] | (File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i) - place.workers)
  end
end

class Place
  # No killed worker may count as a failed start, whose replacement is delayed.
  READY_MS = 1000

  def control_socket = "#{folder}/sqmgr.sock"

  def configure(count, fleets, check: "5s", beat_ms: 5000)
    sections = (1..fleets).map { |i| "[fleet:f#{i}]\nactive_process_count = #{count}\n" }
    File.write("#{folder}/sqmgr.ini", <<~INI)
      [sqmgr]
      socket = #{control_socket}
      check_interval = #{check}
      [redis]
      url = unix://#{redis_socket}
      [fleet]
      command = #{worker(beat_ms: beat_ms).join(" ")}
      memory_threshold = 8G
      log = #{folder}/workers.log
      ready_after = #{READY_MS}ms
      #{sections.join}
    INI
  end
end

class Floor < Supervisor
  def path = "floor"
  def start(place, count, **) = place.spawn("floor", place.floor, count.to_s, *place.worker)
  def processes(_place, pid) = [pid]
end

class Supervisord < Supervisor
  def start(place, count, command: place.worker, seconds: nil)
    File.write("#{place.folder}/supervisord.conf", <<~INI)
      [supervisord]
      nodaemon=true
      logfile=#{place.folder}/supervisord.log
      pidfile=#{place.folder}/supervisord.pid
      childlogdir=#{place.folder}
      minfds=#{(count * 4) + 1024}
      [unix_http_server]
      file=#{place.folder}/supervisor.sock
      [supervisorctl]
      serverurl=unix://#{place.folder}/supervisor.sock
      [rpcinterface:supervisor]
      supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
      [program:worker]
      command=#{command.join(" ")}
      process_name=%(process_num)d
      numprocs=#{count}
      directory=#{place.folder}
      autorestart=true
      redirect_stderr=true
      stdout_logfile=#{place.folder}/workers.log
      #{"stopwaitsecs=#{seconds}" if seconds}
    INI
    place.spawn("supervisord-out", path, "-c", "#{place.folder}/supervisord.conf", rlimit_nofile: Process.getrlimit(:NOFILE).last)
  end

  def restart(place, count, each: false, **)
    (each ? Array.new(count) { |i| "worker:#{i}" } : ["worker:*"]).map do |name|
      ["supervisorctl", "-c", "#{place.folder}/supervisord.conf", "restart", name]
    end
  end
end

# runit and s6: a folder for each service, with a script that executes the worker.
class Tree < Supervisor
  def start(place, count, command: place.worker, **)
    folders(place, count).each do |folder|
      FileUtils.mkdir_p(folder)
      File.write("#{folder}/run", "#!/bin/sh\nexec #{command.join(" ")}\n", perm: 0o755)
    end
    place.spawn(program, path, *options(count), "#{place.folder}/services")
  end

  def options(_count) = []
  def folders(place, count) = (1..count).map { |i| "#{place.folder}/services/w#{i}" }
end

class Runit < Tree
  def restart(place, count, each: false, seconds: nil)
    command = ["sv", *(["-w", seconds.to_s] if seconds), "restart"]
    each ? folders(place, count).map { |folder| [*command, folder] } : [[*command, *folders(place, count)]]
  end
end

class S6 < Tree
  def options(count) = ["-c", (count + 10).to_s]

  def restart(place, count, each: false, seconds: nil)
    wait = each ? ["-wr", "-T", ((seconds || 0) * 1000).to_s] : []
    folders(place, count).map { |folder| ["s6-svc", *wait, "-r", folder] }
  end
end

class Pm2 < Supervisor
  def start(place, count, command: place.worker, seconds: nil)
    FileUtils.mkdir_p(home(place))
    script, *arguments = command
    worker = { name: "worker", script: script, args: arguments, interpreter: "none", exec_mode: "fork", instances: count,
               cwd: place.folder, out_file: "/dev/null", error_file: "/dev/null" }
    worker[:kill_timeout] = seconds * 1000 if seconds
    File.write("#{place.folder}/ecosystem.config.json", JSON.generate(apps: [worker]))
    starter = place.spawn("pm2", *client(place), "start", "#{place.folder}/ecosystem.config.json")
    place.wait(60, "PM2's daemon") { File.size?("#{home(place)}/pm2.pid") }
    Process.detach(starter)
    File.read("#{home(place)}/pm2.pid").to_i
  end

  def restart(place, count, each: false, **)
    (each ? (0...count).map(&:to_s) : ["worker"]).map { |name| [*client(place), "restart", name] }
  end

  def home(place) = "#{place.folder}/pm2"
  def client(place) = ["env", "PM2_HOME=#{home(place)}", "PM2_DISABLE_VERSION_CHECK=true", path]

  def processes(_place, pid) = [pid]
end

dpkg = ->(package) { -> { `dpkg-query -W -f '${Version}' #{package} 2>/dev/null`[/\A[^-]+/] || "of unknown version" } }
# PM2's own --version starts its daemon.
pm2 = -> { JSON.parse(File.read(File.expand_path("../../package.json", File.realpath(SUPERVISORS["pm2"].path))))["version"] }
SUPERVISORS = {
  "supervisord" => Supervisord.new("supervisord", "Debian's package supervisor", dpkg.call("supervisor")),
  "runit" => Runit.new("runsvdir", "Debian's package runit", dpkg.call("runit")),
  "s6" => S6.new("s6-svscan", "Debian's package s6", dpkg.call("s6")),
  "pm2" => Pm2.new("pm2", "npm package pm2", pm2),
}.freeze
SQMGR = Sqmgr.new("sqmgr", nil, nil)
FLOOR = Floor.new("floor", nil, nil)
