# SPDX-License-Identifier: MIT
# A worker without a heartbeat. The first TERM lets it finish its job, a second one cuts the job off.
# Usage: plain.rb FOLDER [IDLE_SECONDS]: how often it looks for a job
require_relative "parts"

stops = 0
trap("TERM") { exit!(3) if (stops += 1) > 1 }

# A job is taken once for each token, because a reply may be lost with Redis.
TAKE = "return redis.call('lindex', KEYS[2], 0) or redis.call('rpoplpush', KEYS[1], KEYS[2])"

redis = Client.new("#{ARGV[0]}/redis.sock")
ledger = File.open("#{ARGV[0]}/ledger", "a")
life = Life.of(Process.pid)
jobs = 0
idle = Float(ARGV[1] || 0.1)
while stops.zero?
  token = "#{life}.#{jobs}"
  jid, milliseconds = redis.call("EVAL", TAKE, 2, "plain:jobs", "plain:taken:#{token}")&.split
  next sleep(idle) unless jid
  ledger.syswrite("started #{jid} #{token}\n")
  sleep milliseconds.to_i / 1000.0
  ledger.syswrite("done #{jid} #{token}\n")
  jobs += 1
end
