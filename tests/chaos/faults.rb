# SPDX-License-Identifier: MIT
# Faults of the chaos test for workers, templates, Redis, sqmgr and their environment. The seed determines the name of
# each fault and three numbers from 0 to 1.
module Faults
  WEIGHTS = {
    kill_worker: 4, stop_worker: 4, kill_template: 2, stop_template: 2, kill_redis: 2, stop_redis: 3, kill_sqmgr: 5, stop_sqmgr: 2,
    restart: 5, abort: 1, scale: 2, quiet_worker: 2, quiet_fleet: 1, reload: 3, reexec: 2, kill_in_restart: 5,
    slow_redis: 2, drop_connections: 2, damage_state: 2, damage_starts: 2, fill_disk: 2, limit_descriptors: 2,
    break_release: 2, change_environment: 1, storm: 1
  }.freeze
  REPLY_SECONDS = 2 # a fault may cost jobs for this long after its end

  GOOD_RELEASE = "require_relative 'app'\n"
  BAD_RELEASES = ["raise 'broken'\n", "exit 0\n", "sleep 2\nabort 'broken late'\n",
                  "#{GOOD_RELEASE}Thread.new { sleep }\n"].freeze
  BYTES_BEFORE_VERSION = 8 # in the state file

  Step = Struct.new(:at, :name, :numbers)

  def self.schedule(seed, seconds)
    random = Random.new(seed)
    names = WEIGHTS.flat_map { |name, weight| [name] * weight }
    steps = []
    at = 0
    while (at += 1 + 5 * random.rand) < seconds
      steps << Step.new(at, names.sample(random: random), Array.new(3) { random.rand })
    end
    steps
  end

  private

  # The fleets that run release.rb.
  def released = %w[sidekiq forked]

  def kill_worker(which, *)
    worker = pick(workers, which) or return say("no worker to kill")
    from = @stopped_since.fetch(worker.life, now)
    ledger.deaths[worker.life] = now
    return ledger.deaths.delete(worker.life) unless worker.life.signal(:KILL)
    disturb(from, now, sidekiq?(worker) ? 1 : 0)
    ledger.read_runs
    say("kill -9 of #{worker}, which ran #{ledger.running_in(worker.life)} jobs")
  end

  def stop_worker(which, how_long, *)
    worker = pick(workers, which) or return say("no worker to stop")
    return unless worker.life.signal(:STOP)
    seconds = 1 + 14 * how_long
    @stopped_since[worker.life] ||= now
    say(format("SIGSTOP of %s for %.1f s", worker, seconds))
    later(seconds) { say("SIGCONT of #{worker}") if worker.life.signal(:CONT) }
  end

  def kill_template(which, *)
    template = pick(templates, which) or return say("no template to kill")
    say("kill -9 of #{template}") if template.life.signal(:KILL)
  end

  def stop_template(which, how_long, *)
    template = pick(templates, which) or return say("no template to stop")
    return unless template.life.signal(:STOP)
    seconds = 1 + 14 * how_long
    say(format("SIGSTOP of %s for %.1f s", template, seconds))
    later(seconds) { say("SIGCONT of #{template}") if template.life.signal(:CONT) }
  end

  def kill_redis(pause, how_long, *)
    return say("Redis is dead already") unless redis.life
    from = redis.stopped_at || now
    redis.kill
    seconds = pause < 0.5 ? 0 : 5 * how_long
    say(format("kill -9 of Redis, started again after %.1f s", seconds))
    later(seconds) do
      disturb(from, now, sidekiq_workers)
      redis.start
      say("Redis is started again")
    end
  end

  def stop_redis(how_long, *)
    return say("Redis is dead or stopped already") unless redis.usable?
    seconds = 0.5 + 9.5 * how_long
    say(format("SIGSTOP of Redis for %.1f s", seconds))
    resume_later(redis, seconds) { |from| disturb(from, now, sidekiq_workers) }
  end

  def kill_sqmgr(pause, how_long, *)
    return say("sqmgr is dead already") unless sqmgr.life
    sqmgr.kill
    seconds = pause < 0.4 ? 0 : 6 * how_long
    say(format("kill -9 of sqmgr, started again after %.1f s", seconds))
    yield if block_given?
    later(seconds) do
      sqmgr.start
      say("sqmgr is started again")
    end
  end

  def stop_sqmgr(how_long, *)
    return say("sqmgr is dead or stopped already") unless sqmgr.usable?
    seconds = 0.5 + 9.5 * how_long
    say(format("SIGSTOP of sqmgr for %.1f s", seconds))
    resume_later(sqmgr, seconds)
  end

  # Kills sqmgr while stopped workers finish their jobs: most often plain ones, which must not get a second signal.
  def kill_in_restart(which, delay, pause)
    order("restart", pick([*fleets.keys, *(fleets.keys & ["plain"]) * 4], which))
    later(1 + 3 * delay) { kill_sqmgr(pause, pause) }
  end

  def slow_redis(how_long, *)
    return say("Redis is dead or stopped already") unless redis.usable?
    seconds = 0.3 + 3 * how_long
    say(format("Redis sleeps for %.1f s", seconds))
    disturb(now, now + seconds, sidekiq_workers)
    send_to_redis("DEBUG SLEEP #{seconds}")
  end

  def drop_connections(*)
    return say("Redis is dead or stopped already") unless redis.usable?
    say("Redis closes all connections")
    disturb(now, now, sidekiq_workers)
    send_to_redis("CLIENT KILL TYPE normal")
  end

  def damage_state(how, where, pause) = damage("state", %i[delete cut flip version][how * 4], where, pause)
  def damage_starts(how, where, pause) = damage("state.starts", %i[delete cut flip][how * 3], where, pause)

  # A worker that is in neither file is not found again: no worker may be affected by damage to both.
  def damage(name, how, where, pause)
    return say("another file is damaged already") if @damaged.any? { |other, lives| other != name && lives.any?(&:alive?) }
    kill_sqmgr(pause, pause) do
      path = "#{@folder}/disk/#{name}"
      size = File.size?(path) or next say("there is no #{name}")
      @damaged[name] = (workers + templates).map(&:life)
      at = (how == :version ? [BYTES_BEFORE_VERSION, size - 1].min : (size * where).floor)
      say("#{name}: #{how} at #{at}")
      case how
      when :delete then File.delete(path)
      when :cut then File.truncate(path, at)
      else File.binwrite(path, [File.binread(path, 1, at).ord ^ 0xff].pack("C"), at)
      end
    end
  end

  def fill_disk(how_long, *)
    return say("the state has no disk of its own") if File.stat("#{@folder}/disk").dev == File.stat(@folder).dev
    say("the disk of the state is full")
    junk = "#{@folder}/disk/junk"
    File.open(junk, "a") { |file| loop { file.syswrite("x" * 4096) } }
  rescue Errno::ENOSPC
    shortage(2 + 6 * how_long) do
      File.delete(junk) if File.exist?(junk)
      say("the disk of the state has space again")
    end
  end

  def limit_descriptors(how_many, how_long, *)
    return say("sqmgr is dead or begins") unless sqmgr.answers
    life = sqmgr.life
    limit = [8, Dir.children("/proc/#{life.pid}/fd").size - 3 + (6 * how_many).floor].max
    say("sqmgr may have #{limit} descriptors")
    set_descriptors(life, limit)
    shortage(1 + 7 * how_long) do
      set_descriptors(life, Process.getrlimit(:NOFILE).first) if life.alive?
      say("sqmgr may have all its descriptors again")
    end
  end

  def set_descriptors(life, limit) = system("prlimit", "--pid", life.pid.to_s, "--nofile=#{limit}:")

  # An order that needs the state may be refused meanwhile.
  def shortage(seconds)
    @shortages += 1
    @orders.each { |order| order.allow += [1] }
    later(seconds) do
      yield
      @shortages -= 1
    end
  end

  def break_release(how, which, how_long)
    release = pick(BAD_RELEASES, how)
    say("the release is bad: #{release.lines.last.chomp}")
    write("release.rb", release)
    order("restart", *pick([nil, *released], which))
    later(3 + 6 * how_long) do
      write("release.rb", GOOD_RELEASE)
      say("the release is good again")
    end
  end

  def change_environment(value, *)
    say("the environment file changes")
    write("environment", "FLAVOR=#{value}\n")
  end

  def storm(*)
    say("a storm of jobs")
    @storm = true
  end

  def restart(which, *) = order("restart", *pick([nil, *fleets.keys], which))
  def abort(*) = order("abort")

  def scale(which, count, *)
    fleet = pick(fleets.keys, which)
    order("scale", fleet, (1 + (fleets[fleet][:max] - 2) * count).round)
  end

  # The worker may be gone before the order arrives.
  def quiet_worker(which, *)
    worker = pick(workers, which) or return say("no worker to quiet")
    order("quiet", worker.place, allow: [0, 2])
  end

  def quiet_fleet(which, how_long, *)
    fleet = pick(fleets.keys, which)
    order("quiet", fleet)
    later(1 + 9 * how_long) { order("start", fleet) }
  end

  def reload(count, other, how)
    configure(
      interval: %w[300ms 500ms 1s][other * 3], ready_after: %w[200ms 1s 3s][how * 3], surge: %w[100% 1 0][count * 3],
      counts: { "sidekiq" => 2 + (2 * other).floor, "forked" => 2 + (2 * how).floor, "stub" => 2 + (3 * count).floor,
                "plain" => 3 + (3 * other).floor },
      max_age: %w[15s 1d][how * 2], preload: %w[yes yes no][other * 3]
    )
    return order("reload") if how < 0.5 || !sqmgr.answers
    say("SIGHUP of sqmgr")
    sqmgr.life.signal(:HUP)
  end

  # Other orders may find no listener meanwhile.
  def reexec(*)
    (@orders + [order("reexec")]).each { |order| order.allow += [3] }
    sqmgr.answers = false
  end

  # Stops a server, and sends SIGCONT later, unless it was killed meanwhile.
  def resume_later(server, seconds)
    from = now
    life = server.life
    server.stop
    later(seconds) do
      next unless server.life == life
      server.resume
      yield from if block_given?
      say("SIGCONT of #{server.name}")
    end
  end

  def disturb(from, to, fetchers)
    fetches = fetchers * self.class::THREADS
    ledger.disturbances << { from: from.floor - 1, to: to.ceil + REPLY_SECONDS, fetches: fetches }
  end

  # Does not wait for the reply.
  def send_to_redis(line)
    UNIXSocket.open("#{@folder}/redis.sock") { |socket| socket.write("#{line}\r\n") }
  rescue SystemCallError => error
    say("Redis: #{error.message}")
  end

  def sidekiq?(worker) = !Ledger::LISTED.include?(worker.fleet)
  def sidekiq_workers = workers.count { |worker| sidekiq?(worker) }
  def pick(list, number) = list[(list.size * number).floor]
end
