# SPDX-License-Identifier: MIT
# A worker of the framework `probe`: takes `ID SECONDS` from the list probe:jobs, one at a time, and counts in
# probe:started and probe:done. After the first stop signal it finishes its job, after the second it exits at once. The
# number of stop signals is in probe:told. A child process holds 64 MiB. While a file PATH.crash exists beside the
# socket, its heartbeats are such that the decoder of the probe ends the process (probe_redis.c).
require 'socket'

class Redis
  def initialize(path)
    @socket = UNIXSocket.new(path)
    @mutex = Mutex.new
  end

  def call(*words)
    @mutex.synchronize do
      @socket.write("*#{words.size}\r\n" + words.map { |word| "$#{word.to_s.bytesize}\r\n#{word}\r\n" }.join)
      read
    end
  end

  private

  def read
    line = @socket.gets("\r\n") or abort 'Redis is gone'
    return line[1..].to_i if line[0] == ':'
    return line[1..].chomp unless line[0] == '$'

    size = line[1..].to_i
    size.negative? ? nil : @socket.read(size + 2)[0, size]
  end
end

path = ARGV.fetch(0)
told = Queue.new
trap('TERM') { told << :told }

reader, writer = IO.pipe
child = fork do
  trap('TERM', 'IGNORE')
  writer.close
  held = 'x' * (64 << 20)
  reader.read
  exit!(held.size.positive?)
end
reader.close

quiet = false
busy = 0
redis = Redis.new(path)
identity = "#{Socket.gethostname}:#{Process.pid}"

Thread.new do
  beats = Redis.new(path)
  loop do
    beats.call('SADD', 'probe:workers', identity)
    marker = ' crash' if File.exist?("#{path}.crash")
    beats.call('SET', "probe:#{identity}", "#{busy} #{quiet ? 1 : 0} #{(Time.now.to_f * 1000).to_i}#{marker}", 'EX', 60)
    sleep 0.2
  end
end

Thread.new do
  counts = Redis.new(path)
  loop do
    told.pop
    times = counts.call('HINCRBY', 'probe:told', Process.pid, 1)
    exit!(1) if times > 1
    quiet = true
  end
end

until quiet
  job = redis.call('LPOP', 'probe:jobs')
  if job
    busy = 1
    id, seconds = job.split
    redis.call('HINCRBY', 'probe:started', id, 1)
    Thread.new { sleep seconds.to_f }.join
    redis.call('HINCRBY', 'probe:done', id, 1)
    busy = 0
  else
    sleep 0.05
  end
end
redis.call('SREM', 'probe:workers', identity)
redis.call('DEL', "probe:#{identity}")
writer.close
Process.wait(child)
exit!(0)
