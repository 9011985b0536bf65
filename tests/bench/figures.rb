# SPDX-License-Identifier: MIT
# Figures with their spread, and the table of them.
class Figures
  attr_reader :values

  def initialize(values)
    @values = values.sort
  end

  def median
    (values[(values.size - 1) / 2] + values[values.size / 2]) / 2.0
  end

  # Long series are stored without the single values.
  STORED = 100

  def to_h
    figures = { median: median, min: values.first, max: values.last, count: values.size }
    values.size > STORED ? figures : figures.merge(values: values)
  end

  def text
    return Figures.short(median) if values.size == 1

    "#{Figures.short(median)} (#{Figures.short(values.first)} to #{Figures.short(values.last)}, #{values.size})"
  end

  def self.short(number)
    return "0" if number.zero?

    digits = [2 - Math.log10(number.abs).floor, 0].max
    number.round([digits, 4].min).to_s.sub(/\.0\z/, "")
  end
end

class Bench
  attr_reader :options

  def initialize(options)
    @options = options
    @build = File.expand_path(options[:build])
    @lines = []
    @notes = []
    @rows = []
    @settings = []
    @begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    @versions = { "sqmgr" => `#{@build}/sqmgr --version`[/[\d.]+/], "Redis" => `redis-server --version`[/v=(\S+)/, 1] }
    SUPERVISORS.each do |name, supervisor|
      next unless options[:supervisors].include?(name)

      @versions[name] = supervisor.version || (note("#{name} is left out: #{supervisor.missing}") && next)
    end
    @versions["Node.js"] = `node --version`[/[\d.]+/] if @versions["pm2"]
    @versions["Python"] = `/usr/bin/python3 --version`[/[\d.]+/] if @versions["supervisord"]
    @versions.compact!
  end

  attr_reader :build

  def supervisors
    SUPERVISORS.select { |name, _| @versions[name] }
  end

  # A row that fails is a note, and the next row is measured.
  def run_row(name)
    row = ROWS.fetch(name)
    @row = name
    begun = seconds
    return note("row #{name} is left out: #{options[:minutes]} minutes are over") if options[:minutes] && begun > options[:minutes] * 60

    warn "== #{name}: #{row.fetch(:title)}"
    before = load_average
    begin
      send(row.fetch(:run))
    rescue Place::Failed => e
      note("row #{name} broke off: #{e.message}")
    end
    @rows << { row: name, title: row.fetch(:title), seconds: (seconds - begun).round, load_before: before, load_after: load_average }
  end

  def seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - @begun
  def load_average = File.read("/proc/loadavg").to_f

  # Adds a line to the table. target is { max:, of: }: at most max, or at most max times the median named `of`.
  def figure(who, values, unit:, target: nil, what: nil)
    values = Figures.new(Array(values))
    line = { row: @row, what: what || ROWS.fetch(@row).fetch(:title), who: who, unit: unit, **values.to_h, text: values.text }
    judge(line, target) if target
    @lines << line
    warn "   #{who}: #{line[:text]} #{unit} #{line[:verdict]}"
  end

  def note(text)
    warn "   #{text}"
    @notes << text
  end

  # True if everything requested was measured; a missed target is a result, too.
  def complete?
    @notes.none? { |note| note.include?("broke off") }
  end

  def machine
    cpu = File.read("/proc/cpuinfo")[/^model name\s*: (.*)/, 1] || "unknown"
    memory = File.read("/proc/meminfo")[/MemTotal:\s*(\d+)/, 1].to_i / (1 << 20)
    debian = File.exist?("/etc/debian_version") ? "Debian #{File.read("/etc/debian_version").strip}, " : ""
    "#{`nproc`.strip} x #{cpu}, #{memory} GiB, #{debian}Linux #{`uname -r`.strip}"
  end

  def commit
    top = File.expand_path("../..", __dir__)
    name = `git -C #{top} describe --always --dirty 2>/dev/null`.strip
    name.empty? ? "unknown" : name
  end

  FORMAT = "sqmgr-bench 2"

  def to_h
    @load ||= File.read("/proc/loadavg").split.first(3).join(" ")
    { format: FORMAT, date: Time.now.utc.strftime("%Y-%m-%d %H:%M UTC"), machine: machine, cores: `nproc`.to_i,
      load_average: @load, commit: commit, seconds: seconds.round, options: options.slice(*%i[workers seconds crashes short]),
      versions: @versions, rows: @rows, settings: @settings, results: @lines, notes: @notes }
  end

  def markdown
    data = to_h
    text = +"# Figures of #{data[:date]}\n\n"
    text << "Commit #{data[:commit]}; #{data[:machine]}; load average at the end #{data[:load_average]}.\n"
    text << "Versions: #{data[:versions].map { |name, version| "#{name} #{version}" }.join(", ")}.\n\n"
    text << "A figure is a median; brackets hold the minimum, the maximum and the number of values. Machines differ: the ratios to "
    text << "the floor count. Repeat it with `make bench`.\n\n"
    text << "| row | what | who | figure | unit | ratio | target |\n| --- | --- | --- | --- | --- | --- | --- |\n"
    @lines.each do |line|
      text << "| #{line.values_at(:row, :what, :who, :text, :unit, :ratio, :verdict).join(" | ")} |\n"
    end
    text << "\n" << @notes.map { |note| "- #{note}\n" }.join
  end

  private

  def judge(line, target)
    value = line[:median]
    if target[:of]
      floor = @lines.reverse.find { |other| other[:row] == @row && other[:who] == target[:of] }
      return if floor.nil?

      value /= floor[:median]
      line[:ratio] = value.round(2)
    end
    met = value <= target[:max]
    line[:verdict] = "#{met ? "met" : "MISSED"}: at most #{target[:max]}#{" x #{target[:of]}" if target[:of]}"
  end
end
