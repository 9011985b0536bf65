# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# Reports what became of every job, by the ledger and by the jobs that sqmgr reports as requeued. Exit status 1: a
# promise was broken.
# Usage: judge.rb LEDGER SQMGR-LOG

Job = Struct.new(:queue, :kind, :count)
jobs = {}
File.foreach(ARGV.fetch(0)) do |line|
  _time, event, jid, queue, kind, = line.split
  job = (jobs[jid] ||= Job.new(queue, kind, Hash.new(0)))
  job.count[event] += 1
end

File.foreach(ARGV.fetch(1)) do |line|
  jid = line[/\b(\h{24}) \(queue .*\) re-enqueued/, 1]
  jobs.fetch(jid).count["rescued"] += 1 if jid
end

rows = jobs.values.group_by { |job| [job.queue, job.kind] }.sort.map do |key, of_key|
  again = of_key.count { |job| job.count["begun"] > 1 }
  key + %w[pushed done dead].map { |event| of_key.count { |job| job.count[event] > 0 } } << again
end
format = "%-10s %-8s %7s %7s %7s %10s\n"
printf(format, "queue", "class", "pushed", "done", "dead", "run again")
rows.each { |row| printf(format, *row) }
puts

wrong = []
jobs.each do |jid, job|
  count = job.count
  ended = count["done"] + count["dead"] > 0
  # Redis may have a job as often as it was sent and not refused. Each failure but the last has a retry.
  runs = count["sent"] - count["refused"] + count["rescued"] + count["failed"]
  wrong << "#{jid} (#{job.kind}) is lost" if count["pushed"] > 0 && !ended
  wrong << "#{jid} (#{job.kind}) was run #{count["begun"]} times, of which #{runs} are explained" if count["begun"] > runs
  wrong << "#{jid} (#{job.kind}) died" if count["dead"] > 0 && job.kind != "Broken"
  wrong << "#{jid} (#{job.kind}) was done" if count["done"] > 0 && job.kind == "Broken"
end

again = jobs.values.select { |job| job.count["begun"] > 1 }
of = ->(event) { again.count { |job| job.count[event] > 0 } }
pushed_again = again.count { |job| job.count["sent"] - job.count["refused"] > 1 }
puts "#{again.size} run more than once: #{of["failed"]} had failed, #{of["rescued"]} were requeued by sqmgr, " \
     "#{pushed_again} were pushed again, #{of["kept"]} of them as Redis had no room for their retry."
puts wrong.empty? ? "No job is lost." : wrong
exit wrong.empty?
