# SPDX-License-Identifier: MIT
# The row "preload": workers of a large Rails application, booted separately, and forked from a template.
require "etc"
require "json"

# tests/rails with additional gems and generated code, so that a worker has about 200 MB.
module LargeApplication
  GEMS = %w[graphql rouge rubocop].freeze
  CLASSES = 500
  METHODS = 25

  module_function

  # Raises an error if something is not installed.
  def versions
    needed = %w[rails pg sidekiq] + GEMS
    print = "print [RUBY_VERSION, Rails::VERSION::STRING, Sidekiq::VERSION].join(' ')"
    text = IO.popen(["ruby", *needed.flat_map { |gem| ["-r", gem] }, "-e", print, err: "/dev/null"], &:read)
    raise Place::Failed, "it needs what `contrib/setup bench` installs" unless $?.success?

    %w[Ruby Rails Sidekiq].zip(text.split).to_h
  end

  def write(folder)
    FileUtils.cp_r("#{Place::TOP}/tests/rails", folder)
    FileUtils.cp("#{Place::TOP}/tests/bench/work_job.rb", "#{folder}/app/jobs")
    FileUtils.mkdir_p(["#{folder}/config/initializers", "#{folder}/app/models/generated"])
    File.write("#{folder}/config/initializers/gems.rb", "#{GEMS.map { |gem| "require #{gem.dump}\n" }.join}Rouge::Lexer.all\n")
    CLASSES.times { |n| File.write("#{folder}/app/models/generated/c#{n}.rb", source(n)) }
  end

  def source(number)
    <<~RUBY
      class Generated::C#{number}
        FIELDS = %w[#{(1..12).map { |i| "field_#{number}_#{i}" }.join(" ")}].freeze
        DEFAULTS = FIELDS.to_h { |field| [field, "default of \#{field}"] }.freeze
        attr_accessor(*FIELDS)

        #{Array.new(METHODS) { |i| method(number, i) }.join.gsub("\n", "\n  ").strip}
      end
    RUBY
  end

  def method(number, index)
    <<~RUBY
      def work_#{index}(list, b: {}, c: nil)
        texts = list.map { |one| one.to_s + "#{number}-#{index}" }.select { |text| text.size > #{index} }
        b.each_pair { |key, value| texts << "\#{key}=\#{value}" if value && key != c }
        texts.group_by(&:size).transform_values(&:count)
      rescue KeyError => e
        raise ArgumentError, "#{number} #{index}: \#{e.message}"
      end
    RUBY
  end
end

# A fleet of this application in a place.
class LargeFleet
  WORKERS = 8
  THREADS = 5

  def initialize(place, preload)
    @place = place
    @app = "#{place.folder}/app"
    LargeApplication.write(@app)
    start_postgres
    database = "DATABASE_URL=postgresql:///postgres PGHOST=#{place.folder}/pg/socket PGUSER=postgres"
    File.write("#{place.folder}/sqmgr.ini", <<~INI)
      [sqmgr]
      socket = #{place.control_socket}
      [redis]
      url = unix://#{place.redis_socket}
      [fleet:f]
      command = sidekiq -e production -r . -c #{THREADS}
      directory = #{@app}
      environment = REDIS_URL=unix://#{place.redis_socket} #{database}
      preload = #{preload}
      log = #{place.folder}/workers.log
      active_process_count = #{WORKERS}
      ready_after = #{Place::READY_MS}ms
    INI
  end

  # Returns the seconds until all workers have sent a heartbeat.
  def start
    begun = @place.now
    @pid = @place.spawn("sqmgr", "#{@place.build}/sqmgr", "-c", "#{@place.folder}/sqmgr.ini")
    @place.wait(600, "#{WORKERS} workers that beat") { identities.size == WORKERS }
    since(begun)
  end

  # Returns the MB of the workers, and of the template, when idle.
  def memory
    await_ready
    sleep 6
    fleet = status
    template = fleet["template"]
    raise Place::Failed, "workers boot separately: #{template["refused"]}" if template && template["refused"]

    [fleet["workers"].sum { |worker| megabytes(worker) }, template ? megabytes(template) : 0]
  end

  # The jobs together run the code of `classes` classes.
  def run_jobs(count, classes)
    done = processed + count
    @place.cli("--pipe", input: lambda { |io|
      count.times { |n| io.write("LPUSH queue:default '#{JSON.generate(job(n, classes))}'\r\n") }
    })
    @place.wait(900, "#{count} jobs") { processed == done }
  end

  # Returns the seconds from the kill of a worker to the first heartbeat of its replacement. Kills the oldest worker,
  # because a failed start would delay the replacement.
  def kill_one
    await_ready
    before = identities
    victim = status["workers"].max_by { |worker| worker["uptime_seconds"] }["pid"]
    begun = @place.now
    Process.kill(:KILL, victim)
    @place.wait(120, "the replacement of #{victim}", pause: 0.002) { (identities - before).any? }
    since(begun)
  end

  # Returns the wall-clock and CPU seconds until all workers are replaced and the old ones gone.
  def restart
    await_ready
    begun, cpu = @place.now, cpu_seconds
    system(*sqmgrctl, "restart", "--wait=drained", %i[out err] => ["#{@place.folder}/restart.log", "w"]) ||
      raise(Place::Failed, "the restart failed: #{@place.log("restart")}")
    [since(begun), cpu_seconds - cpu]
  end

  private

  def start_postgres
    script = <<~'BASH'
      . "$0/contrib/demo/stage.bash" && . "$0/contrib/examples/shared.bash" && folder=$1
      start_postgres && psql -qX -v ON_ERROR_STOP=1 -f "$folder/app/db/structure.sql"
    BASH
    system("bash", "-c", script, Place::TOP, @place.folder, %i[out err] => "/dev/null") ||
      raise(Place::Failed, "PostgreSQL does not start: #{@place.log("postgres")}")
  end

  def sqmgrctl = ["#{@place.build}/sqmgrctl", "-s", @place.control_socket]
  def status = JSON.parse(IO.popen([*sqmgrctl, "status", "--json"], &:read)).fetch("fleets").first

  def await_ready
    @place.wait(300, "#{WORKERS} workers that are ready") { status["workers"].count { |worker| worker["ready"] } == WORKERS }
  end

  def since(begun) = (@place.now - begun) / 1e9
  def megabytes(process) = Cost.pss_bytes(process["pid"]) / 1e6
  # A worker is listed from its first heartbeat on.
  def identities = @place.redis("SMEMBERS processes") || []
  def processed = @place.redis("GET stat:processed").to_i

  def job(number, classes)
    { class: "WorkJob", args: [number, classes], queue: "default", jid: format("%024x", number), retry: false, created_at: 0, enqueued_at: 0 }
  end

  # Of sqmgr and all processes that it started, including exited ones.
  def cpu_seconds(pid = @pid)
    ticks = File.read("/proc/#{pid}/stat").rpartition(")").last.split[11, 4].sum(&:to_i)
    children = File.read("/proc/#{pid}/task/#{pid}/children").split
    (ticks / Etc.sysconf(Etc::SC_CLK_TCK).to_f) + children.sum { |child| cpu_seconds(child) }
  rescue SystemCallError
    0
  end
end

class Bench
  PRELOAD_KILLS = 5

  # Adds the figures of both, with unit and target.
  def preload_figures(ruby)
    # Ruby 3.3 introduced Process.warmup, after which workers share more memory.
    less = { max: 0.45, of: "separate boots" } if Gem::Version.new(ruby) >= Gem::Version.new("3.3")
    { booted: ["PSS after boot, template included", "MB"],
      worked: ["PSS after #{options[:preload_jobs]} jobs for each worker that run a fifth of its code, template included", "MB", less],
      template: ["of that the template's", "MB"],
      worked_all: ["PSS after as many more that run all of its code", "MB"],
      start: ["start of sqmgr to all beating", "s"],
      kill: ["kill -9 of a worker to its replacement's first beat", "s", { max: 1 }],
      restart: ["restart until all old workers are gone", "s"],
      restart_cpu: ["CPU time of that restart", "s"] }
  end

  def row_preload
    versions = LargeApplication.versions
    @versions.update(versions)
    note("row preload: #{versions.map { |pair| pair.join(" ") }.join(", ")}; #{LargeFleet::WORKERS} workers of #{LargeFleet::THREADS} threads")
    modes = { "separate boots" => "no", "preload" => "yes" }
    taken = modes.transform_values { Hash.new { |hash, what| hash[what] = [] } }
    options[:preload_rounds].times { modes.each { |who, preload| play_preload(preload, taken[who]) } }
    preload_figures(versions["Ruby"]).each do |key, (what, unit, target)|
      taken.each { |who, of| figure(who, of[key], unit: unit, what: what, target: (target if who == "preload")) unless of[key].empty? }
    end
  end

  def play_preload(preload, taken)
    Place.open(build) do |place|
      fleet = LargeFleet.new(place, preload)
      taken[:start] << fleet.start
      taken[:booted] << fleet.memory.sum
      workers, template = memory_worked(fleet, LargeApplication::CLASSES / 5)
      taken[:worked] << (workers + template)
      taken[:template] << template if template.positive?
      taken[:worked_all] << memory_worked(fleet, LargeApplication::CLASSES).sum
      PRELOAD_KILLS.times { taken[:kill] << fleet.kill_one }
      seconds, cpu = fleet.restart
      taken[:restart] << seconds
      taken[:restart_cpu] << cpu
    end
  end

  def memory_worked(fleet, classes)
    fleet.run_jobs(options[:preload_jobs] * LargeFleet::WORKERS, classes)
    fleet.memory
  end
end
