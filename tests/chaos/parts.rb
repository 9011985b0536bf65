# SPDX-License-Identifier: MIT
# Parts that the chaos test observes and uses: processes, Redis, and the command log of Redis.
require "socket"

def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC)

# A process, identified by its pid and start time.
Life = Struct.new(:pid, :start) do
  def self.of(pid)
    state, *rest = File.read("/proc/#{pid}/stat").rpartition(")").last.split
    new(pid, rest[18]) unless %w[Z X].include?(state)
  rescue SystemCallError
    nil
  end

  # Parses the token that a worker writes: PID.START and more.
  def self.of_token(token)
    pid, start = token.split(".")
    new(pid.to_i, start)
  end

  def alive? = Life.of(pid) == self
  def to_s = "#{pid}.#{start}"

  # Returns false if it has exited.
  def signal(name)
    alive? && Process.kill(name, pid) == 1
  rescue Errno::ESRCH
    false
  end
end

Worker = Struct.new(:life, :place, :title) do
  def fleet = place[%r{\A[^/]+}]
  def to_s = "#{place} (pid #{life.pid})"

  # A fork has that title until it may begin.
  def template? = place.end_with?("/template")
  def works? = !template? && title != "sqmgr-template"

  # Returns all processes with the marker. They lived at the same moment: each was seen, and each still lived after the
  # last was seen.
  def self.all(mark)
    seen = Dir.children("/proc").grep(/\A\d+\z/).filter_map do |name|
      environ = File.binread("/proc/#{name}/environ").split("\0")
      next unless environ.include?(mark) && (place = environ.grep(/\ASQMGR_WORKER=/).first)
      life = Life.of(name.to_i)
      title = File.binread("/proc/#{name}/cmdline").delete("\0").strip
      new(life, place.delete_prefix("SQMGR_WORKER=").strip, title) if life
    rescue SystemCallError
      nil
    end
    seen.select { |worker| worker.life.alive? }.sort_by { |worker| [worker.place, worker.life.pid] }
  end
end

# Repeats each call until Redis answers: send only idempotent commands.
class Client
  PATIENCE_SECONDS = 60

  def initialize(path)
    @path = path
  end

  def call(*words)
    begun ||= monotonic
    @socket ||= UNIXSocket.new(@path)
    @socket.write("*#{words.size}\r\n", *words.map { |word| "$#{word.to_s.bytesize}\r\n#{word}\r\n" })
    read
  rescue SystemCallError, IOError
    @socket&.close
    @socket = nil
    raise if monotonic - begun > PATIENCE_SECONDS
    sleep 0.1
    retry
  end

  private

  def read
    line = @socket.gets("\r\n") or raise EOFError
    rest = line[1..].chomp
    case line[0]
    when "+" then rest
    when ":" then rest.to_i
    when "$" then rest.to_i.negative? ? nil : @socket.read(rest.to_i + 2).chomp
    when "*" then Array.new(rest.to_i) { read }
    else
      # Redis is still loading its data.
      raise EOFError, rest if rest.start_with?("LOADING")
      raise "Redis says: #{rest}"
    end
  end
end

# What became of the jobs of one queue, by the append-only file of Redis.
class RedisLog
  attr_reader :popped, :pushed

  # jid: the pattern that finds the id in a job.
  def initialize(folder, key, jid)
    @folder, @key, @jid = folder, key, jid
    @popped = Hash.new { |hash, jid| hash[jid] = [] }
    @pushed = Hash.new(0)
    @list = []
    @time = 0
    @ends = Hash.new(0)
    update
  end

  # Reads what has been appended: hours of a log are read once.
  def update
    Dir["#{@folder}/appendonlydir/*.incr.aof"].sort_by { |path| path[/(\d+)\.incr/, 1].to_i }.each { |path| read(path) }
  end

  private

  def read(path)
    File.open(path, "rb") do |file|
      file.seek(@ends[path])
      while (line = file.gets("\r\n"))
        if line.start_with?("#TS:")
          @time = line[4..].to_i
        else
          words = Array.new(line[1..].to_i) { word(file) }
          # Redis is still writing the last command.
          break unless words.all?
          fold(*words)
        end
        @ends[path] = file.pos
      end
    end
  end

  def word(file)
    length = file.gets("\r\n")&.slice(1..)&.to_i or return
    text = file.read(length + 2)
    text.chomp if text&.bytesize == length + 2
  end

  def fold(name, key = nil, *values)
    return unless key == @key
    case name.upcase
    when "LPUSH" then values.each { |value| push(value) { |jid| @list.unshift(jid) } }
    when "RPUSH" then values.each { |value| push(value) { |jid| @list.push(jid) } }
    when "RPOP" then @popped[@list.pop] << @time
    when "LPOP" then @popped[@list.shift] << @time
    end
  end

  def push(value)
    jid = value[@jid, 1]
    @pushed[jid] += 1
    yield jid
  end
end
