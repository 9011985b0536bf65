# SPDX-License-Identifier: MIT
# The verdict on the samples of a soak. Usage: verdict.rb SAMPLES.JSON; exits with 1 if a series grows.
require "json"
require_relative "slope"

class SoakVerdict
  WARM_UP = 0.2 # hours; at most a quarter of a series

  # What grows if it is not noise: units per hour. The PSS is shown only: it depends on who else shares a page. `cpu` is milliseconds of processor time in a minute.
  TOLERANCES = {
    "rss" => 32, "pss" => Float::INFINITY, "anonymous" => 32, "descriptors" => 0.5, "children" => 0.5, "cpu" => 30, "state" => 4,
    "keys" => 2
  }.freeze
  UNITS = { "rss" => "KB", "pss" => "KB", "anonymous" => "KB", "cpu" => "ms/min", "state" => "KB" }.freeze

  attr_reader :rows

  # samples: hashes with `hours`, `process` (a new one begins a new series) and figures by name.
  def initialize(samples)
    @rows = samples.group_by { |sample| sample["process"] }.flat_map do |process, series|
      start = series.first["hours"]
      warm = start + [WARM_UP, (series.last["hours"] - start) / 4].min
      series = series.select { |sample| sample["hours"] >= warm }
      TOLERANCES.filter_map do |name, tolerance|
        points = series.filter_map { |sample| [sample["hours"], sample[name]] if sample[name] }
        [process, name, Slope.judge(points, tolerance: tolerance)] unless points.empty?
      end
    end
  end

  def grown = @rows.select { |_, _, verdict| verdict.word == :grows }
  def judged = @rows.count { |_, _, verdict| verdict.word != :short }

  def text
    lines = [format("%-34s %-12s %7s %6s %12s %14s %14s %14s  %s", "process", "figure", "samples", "hours", "median",
                    "slope an hour", "lower bound", "second half", "verdict")]
    short = @rows.select { |_, _, verdict| verdict.word == :short }.map(&:first).uniq
    @rows.each do |process, name, verdict|
      next if verdict.word == :short
      unit = UNITS.fetch(name, "")
      lines << format("%-34s %-12s %7d %6.2f %12s %14s %14s %14s  %s", process, name, verdict.samples, verdict.hours,
                      format("%.1f %s", verdict.median, unit), *[verdict.slope, verdict.lower, verdict.late].map do |figure|
                        format("%+.1f %s", figure, unit)
                      end, verdict.word == :grows ? "GROWS" : "flat")
    end
    lines << "too short to judge: #{short.size} processes" if short.any?
    lines << "#{judged} series judged, #{grown.size} grow"
    lines.join("\n") + "\n"
  end
end

if $PROGRAM_NAME == __FILE__
  verdict = SoakVerdict.new(JSON.parse(File.read(ARGV.fetch(0)))["samples"])
  print verdict.text
  exit(verdict.grown.empty? ? 0 : 1)
end
