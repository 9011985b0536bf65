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
  # Returns the reason why large fleets are left out, if starting them takes too long.
  def small_only = nil
  def missing = "no #{program} on this machine (#{package})"
  def version = path && @version.call

  # Starts the workers, and returns the pid of the supervisor.
  def start(_place, _count, **) = raise(NotImplementedError)

  # Returns all of its processes except the workers.
  def processes(place, pid) = [pid] | (place.members - place.workers)
end

class Sqmgr < Supervisor
  def path = "sqmgr"
  def start(place, count, fleets: 1, **how)
    place.configure(count, fleets, **how)
    place.spawn("sqmgr", "#{place.build}/sqmgr", "-c", "#{place.folder}/sqmgr.ini")
  end

  def processes(_place, pid) = [pid]
end

class Place
  # No killed worker may count as a failed start, whose replacement is delayed.
  READY_MS = 1000

  def control_socket = "#{folder}/sqmgr.sock"

  # boot: seconds until a worker begins. A real boot takes longer than the poll that separates old heartbeats from new
  # ones.
  def configure(count, fleets, check: "5s", beat_ms: 5000, boot: nil)
    command = worker(beat_ms: beat_ms).join(" ")
    command = "/bin/sh -c 'sleep #{boot}; exec #{command}'" if boot
    sections = (1..fleets).map { |i| "[fleet:f#{i}]\nactive_process_count = #{count}\n" }
    File.write("#{folder}/sqmgr.ini", <<~INI)
      [sqmgr]
      socket = #{control_socket}
      check_interval = #{check}
      [redis]
      url = unix://#{redis_socket}
      [fleet]
      command = #{command}
      memory_threshold = 8G
      log = #{folder}/workers.log
      ready_after = #{READY_MS}ms
      #{sections.join}
    INI
  end
end

class Floor < Supervisor
  def path = "floor"
  def start(place, count, **) = place.spawn("floor", place.floor, "spawn", count.to_s, *place.worker)
  def processes(_place, pid) = [pid]
end

class Supervisord < Supervisor
  def start(place, count, **)
    File.write("#{place.folder}/supervisord.conf", <<~INI)
      [supervisord]
      nodaemon=true
      logfile=#{place.folder}/supervisord.log
      pidfile=#{place.folder}/supervisord.pid
      childlogdir=#{place.folder}
      minfds=#{(count * 4) + 1024}
      [unix_http_server]
      file=#{place.folder}/supervisor.sock
      [rpcinterface:supervisor]
      supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
      [program:worker]
      command=#{place.worker.join(" ")}
      process_name=%(process_num)d
      numprocs=#{count}
      directory=#{place.folder}
      autorestart=true
      redirect_stderr=true
      stdout_logfile=#{place.folder}/workers.log
    INI
    place.spawn("supervisord-out", path, "-c", "#{place.folder}/supervisord.conf", rlimit_nofile: Process.getrlimit(:NOFILE).last)
  end
end

# runit and s6: a folder for each service, with a script that executes the worker.
class Tree < Supervisor
  def initialize(program, package, arguments, version)
    super(program, package, version)
    @arguments = arguments
  end

  def start(place, count, **)
    services = "#{place.folder}/services"
    (1..count).each do |i|
      FileUtils.mkdir_p("#{services}/w#{i}")
      File.write("#{services}/w#{i}/run", "#!/bin/sh\nexec #{place.worker.join(" ")}\n", perm: 0o755)
    end
    place.spawn(program, path, *@arguments.call(count), services)
  end
end

class Monit < Supervisor
  def small_only = "it starts workers one after another, and not 1000 in 3 minutes"

  def start(place, count, **)
    folder = place.folder
    checks = (1..count).map do |i|
      File.write("#{folder}/w#{i}.sh", "#!/bin/sh\ncd #{folder}\n#{place.worker.join(" ")} &\necho $! >#{folder}/w#{i}.pid\n", perm: 0o755)
      "check process w#{i} with pidfile #{folder}/w#{i}.pid\n  start program = \"/usr/bin/env STUB_TIMES=#{place.times_file} #{folder}/w#{i}.sh\"\n"
    end
    File.write("#{folder}/monitrc", <<~RC, perm: 0o600)
      set daemon 1
      set logfile #{folder}/monit.log
      set pidfile #{folder}/monit.pid
      set idfile #{folder}/monit.id
      set statefile #{folder}/monit.state
      #{checks.join}
    RC
    place.spawn("monit-out", path, "-I", "-c", "#{folder}/monitrc")
  end
end

class Pm2 < Supervisor
  def start(place, count, **)
    home = "#{place.folder}/pm2"
    FileUtils.mkdir_p(home)
    script, *arguments = place.worker
    File.write("#{place.folder}/ecosystem.config.json", JSON.generate(
      apps: [{ name: "worker", script: script, args: arguments, interpreter: "none", exec_mode: "fork", instances: count,
               cwd: place.folder, out_file: "/dev/null", error_file: "/dev/null" }]
    ))
    starter = place.spawn("pm2", "env", "PM2_HOME=#{home}", path, "start", "#{place.folder}/ecosystem.config.json")
    place.wait(60, "PM2's daemon") { File.size?("#{home}/pm2.pid") }
    Process.detach(starter)
    File.read("#{home}/pm2.pid").to_i
  end

  def processes(_place, pid) = [pid]
end

dpkg = ->(package) { -> { `dpkg-query -W -f '${Version}' #{package} 2>/dev/null`[/\A[^-]+/] || "of unknown version" } }
SUPERVISORS = {
  "supervisord" => Supervisord.new("supervisord", "Debian's package supervisor", dpkg.call("supervisor")),
  "runit" => Tree.new("runsvdir", "Debian's package runit", ->(_) { [] }, dpkg.call("runit")),
  "s6" => Tree.new("s6-svscan", "Debian's package s6", ->(count) { ["-c", (count + 10).to_s] }, dpkg.call("s6")),
  "monit" => Monit.new("monit", "Debian's package monit", dpkg.call("monit")),
  "pm2" => Pm2.new("pm2", "npm install -g pm2", -> { `pm2 --version 2>/dev/null`[/^\d[\d.]*$/] }),
}.freeze
SQMGR = Sqmgr.new("sqmgr", nil, nil)
FLOOR = Floor.new("floor", nil, nil)
