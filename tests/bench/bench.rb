# SPDX-License-Identifier: MIT
# Measures the main tasks of sqmgr, compared with floors (the minimum cost of the work, tests/bench/floor.c) and with
# other supervisors. Run by `make bench`; --help lists the options.
require "json"
require "optparse"
require_relative "figures"
require_relative "place"
require_relative "supervisors"
require_relative "rows"
require_relative "deploy"
require_relative "preload"

options = { build: ".", rows: ROWS.keys, supervisors: SUPERVISORS.keys, out: nil, workers: 1000, seconds: 60, crashes: 30,
            preload_rounds: 3, preload_jobs: 2000, short: false, minutes: nil }
OptionParser.new do |parser|
  parser.banner = "Usage: bench.rb [OPTION...]"
  parser.on("--build DIR", "build directory of sqmgr (.)") { |dir| options[:build] = dir }
  parser.on("--rows LIST", Array, "only these rows, of #{ROWS.keys.join(",")}") { |list| options[:rows] = list }
  parser.on("--supervisors LIST", Array, "only these supervisors, of #{SUPERVISORS.keys.join(",")}") { |list| options[:supervisors] = list }
  parser.on("--workers N", Integer, "workers of a large fleet (1000)") { |n| options[:workers] = n }
  parser.on("--seconds N", Integer, "duration of the idle CPU measurement (60)") { |n| options[:seconds] = n }
  parser.on("--crashes N", Integer, "kills of each supervisor's workers (30)") { |n| options[:crashes] = n }
  parser.on("--preload-rounds N", Integer, "rounds of the row preload (3)") { |n| options[:preload_rounds] = n }
  parser.on("--preload-jobs N", Integer, "jobs for each worker of the row preload (2000)") { |n| options[:preload_jobs] = n }
  parser.on("--short", "short jobs and fewer trials in the row deploy: a test of the benchmark") { options[:short] = true }
  parser.on("--minutes N", Float, "begin no row later than that") { |n| options[:minutes] = n }
  parser.on("--out PATH", "also write PATH.md and PATH.json") { |path| options[:out] = path }
end.parse!

$stdout.sync = true
bench = Bench.new(options)
options[:rows].each do |name|
  abort "bench: there is no row '#{name}'" unless ROWS.key?(name)
  bench.run_row(name)
end
markdown = bench.markdown
puts markdown
if options[:out]
  File.write("#{options[:out]}.md", markdown)
  File.write("#{options[:out]}.json", "#{JSON.pretty_generate(bench.to_h)}\n")
end
exit bench.complete?
