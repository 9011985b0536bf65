# SPDX-License-Identifier: MIT
# Measures the main tasks of sqmgr, compared with floors (the minimum cost of the work, tests/bench/floor.c) and with
# other supervisors. Run by `make bench`; --help lists the options.
require "json"
require "optparse"
require_relative "figures"
require_relative "place"
require_relative "supervisors"
require_relative "rows"
require_relative "preload"

options = { build: ".", rows: ROWS.keys, supervisors: SUPERVISORS.keys, out: nil, workers: 1000, seconds: 60 }
OptionParser.new do |parser|
  parser.banner = "Usage: bench.rb [OPTION...]"
  parser.on("--build DIR", "build directory of sqmgr (.)") { |dir| options[:build] = dir }
  parser.on("--rows LIST", Array, "only these rows, of #{ROWS.keys.join(",")}") { |list| options[:rows] = list }
  parser.on("--supervisors LIST", Array, "only these supervisors, of #{SUPERVISORS.keys.join(",")}") { |list| options[:supervisors] = list }
  parser.on("--workers N", Integer, "workers of a large fleet (1000)") { |n| options[:workers] = n }
  parser.on("--seconds N", Integer, "duration of the idle CPU measurement (60)") { |n| options[:seconds] = n }
  parser.on("--out PATH", "also write PATH.md and PATH.json") { |path| options[:out] = path }
end.parse!

$stdout.sync = true
bench = Bench.new(options)
options[:rows].each do |name|
  row = ROWS.fetch(name) { abort "bench: there is no row '#{name}'" }
  warn "== #{name}: #{row.fetch(:title)}"
  begin
    bench.run_row(name)
  rescue Place::Failed => e
    bench.note("row #{name} broke off: #{e.message}")
  end
end
markdown = bench.markdown
puts markdown
if options[:out]
  File.write("#{options[:out]}.md", markdown)
  File.write("#{options[:out]}.json", "#{JSON.pretty_generate(bench.to_h)}\n")
end
exit bench.complete?
