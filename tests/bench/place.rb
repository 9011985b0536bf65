# SPDX-License-Identifier: MIT
# A private folder with a Redis and the measured programs. All of them end with the block, for any reason:
# contrib/demo/guard ends them if this process dies.
require "fileutils"
require "socket"
require "tmpdir"
require "timeout"

class Place
  class Failed < StandardError; end

  TOP = File.expand_path("../..", __dir__)

  # The state file is in memory, as below /run by default: on a disk a rename takes longer than a start.
  BASE = %w[/tmp /dev/shm].find { |dir| File.writable?(dir) && `stat -f -c %T #{dir} 2>/dev/null`.strip == "tmpfs" } || "/tmp"

  attr_reader :folder, :build, :redis_pid

  def self.open(build)
    place = new(build)
    yield place
  ensure
    place&.close
  end

  def initialize(build)
    @build = build
    @folder = Dir.mktmpdir("sqmgr-bench.", BASE)
    FileUtils.mkdir("#{folder}/pids")
    @guard = IO.popen(["setsid", "#{TOP}/contrib/demo/guard", folder], "w")
    @redis_pid = spawn("redis", "redis-server", "--port", "0", "--unixsocket", redis_socket, "--dir", folder, "--save", "", "--maxclients", "20000")
    wait(10, "Redis") { File.socket?(redis_socket) && redis("PING") == "PONG" }
  end

  def redis_socket = "#{folder}/redis.sock"
  def times_file = "#{folder}/times"
  def floor = "#{build}/tests/bench/floor"
  def stub = "#{build}/tests/stub/stub-worker"
  def worker(beat_ms: 5000) = [stub, "-u", redis_socket, "-b", beat_ms.to_s, "-c", "0"]
  def environment = { "STUB_TIMES" => times_file, "HOME" => folder, "REDIS_URL" => nil, "NOTIFY_SOCKET" => nil, "XDG_RUNTIME_DIR" => nil }

  def spawn(name, *command, **redirections)
    pid = Process.spawn(environment, *command, chdir: folder, in: "/dev/null", %i[out err] => ["#{folder}/#{name}.log", "a"], **redirections)
    started = start_time(pid)
    File.write("#{folder}/pids/#{pid}", "#{started}\n") if started
    pid
  end

  def log(name) = File.exist?("#{folder}/#{name}.log") ? File.read("#{folder}/#{name}.log").lines.last(15).join : ""

  # Returns the records of workers: [what, pid, nanoseconds].
  def times(what)
    return [] unless File.exist?(times_file)

    lines = File.read(times_file).lines
    lines.pop unless lines.last&.end_with?("\n")
    lines.map(&:split).select { |word, *| word == what }.map { |word, pid, nsec| [word, pid.to_i, nsec.to_i] }
  end

  def wait(seconds, what, pause: 0.02)
    deadline = now + (seconds * 1_000_000_000)
    until (result = yield)
      raise Failed, "waited #{seconds} s in vain for #{what}" if now > deadline

      sleep pause
    end
    result
  end

  def wait_births(count, seconds = 120) = wait(seconds, "#{count} workers") { times("born").size >= count }

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  # Sends one inline command to Redis. Returns the first line of the reply, the whole text, or an array of these.
  def redis(command)
    UNIXSocket.open(redis_socket) do |socket|
      socket.write("#{command}\r\n")
      reply(socket)
    end
  rescue SystemCallError, IOError
    nil
  end

  def cli(*command, input: nil)
    IO.popen(["redis-cli", "-s", redis_socket, *command], "r+") do |io|
      input&.call(io)
      io.close_write
      io.read
    end
  end

  def members
    keep = [Process.pid, @guard.pid, redis_pid]
    Dir.glob("/proc/[0-9]*").filter_map do |path|
      pid = File.basename(path).to_i
      pid if !keep.include?(pid) && File.readlink("#{path}/cwd").start_with?(folder)
    rescue SystemCallError
      nil
    end
  end

  def workers = members.select { |pid| File.readlink("/proc/#{pid}/exe") == File.realpath(stub) rescue false }

  # Ends all processes in the folder.
  def close
    wait(30, "the end of all in #{folder}") { members.each { |pid| kill(pid) }.empty? }
  rescue Failed => e
    warn e.message
  ensure
    kill(redis_pid) if redis_pid
    @guard.close
  end

  private

  def reply(socket)
    line = socket.gets.chomp
    rest = line[1..]
    case line[0]
    when "$" then rest == "-1" ? nil : socket.read(rest.to_i + 2).chomp
    when "*" then Array.new(rest.to_i) { reply(socket) }
    else rest
    end
  end

  def kill(pid)
    Process.kill(:KILL, pid)
    Process.detach(pid)
  rescue Errno::ESRCH
    nil
  end

  def start_time(pid)
    File.read("/proc/#{pid}/stat").rpartition(")").last.split[19]
  rescue SystemCallError
    nil
  end
end

# The accumulated cost of a process, from the kernel's accounting.
module Cost
  module_function

  def cpu_nsec(*pids)
    pids.sum do |pid|
      Dir.glob("/proc/#{pid}/task/*/schedstat").sum { |path| File.read(path).split.first.to_i }
    rescue SystemCallError
      0
    end
  end

  def pss_bytes(pid)
    File.read("/proc/#{pid}/smaps_rollup")[/^Pss:\s*(\d+)/, 1].to_i * 1024
  rescue SystemCallError
    0
  end
end
