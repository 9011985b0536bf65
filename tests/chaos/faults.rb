# SPDX-License-Identifier: MIT
# What the chaos test does to workers, templates, Redis and sqmgr. Each fault gets three numbers from 0 to 1, which with its name
# are all that the seed decides.
module Faults
  WEIGHTS = {
    kill_worker: 4, stop_worker: 4, kill_template: 2, stop_template: 2, kill_redis: 2, stop_redis: 3, kill_sqmgr: 5, stop_sqmgr: 2,
    restart: 5, abort: 1, scale: 2, quiet_worker: 2, quiet_fleet: 1, reload: 3, reexec: 2
  }.freeze
  REPLY_SECONDS = 2 # from the end of a fault to the last job that it may have cost

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

  def kill_worker(which, *)
    worker = pick(workers, which) or return say("no worker to kill")
    from = @stopped_since.fetch(worker.life, now)
    ledger.deaths[worker.life] = now
    return ledger.deaths.delete(worker.life) unless worker.life.signal(:KILL)
    disturb(from, now, worker.fleet == "stub" ? 0 : 1)
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

  def restart(which, *) = order("restart", *[[], ["sidekiq"], ["forked"], ["stub"]][which * 4])
  def abort(*) = order("abort")

  def scale(which, count, *)
    fleet = pick(self.class::FLEETS.keys, which)
    order("scale", fleet, (1 + (self.class::FLEETS[fleet][:max] - 2) * count).round)
  end

  # It may be gone before the order comes.
  def quiet_worker(which, *)
    worker = pick(workers, which) or return say("no worker to quiet")
    order("quiet", worker.place, allow: [0, 2])
  end

  def quiet_fleet(which, how_long, *)
    fleet = pick(self.class::FLEETS.keys, which)
    order("quiet", fleet)
    later(1 + 9 * how_long) { order("start", fleet) }
  end

  def reload(count, other, how)
    configure(
      interval: %w[300ms 500ms 1s][other * 3], ready_after: %w[200ms 1s 3s][how * 3], surge: %w[100% 1 0][count * 3],
      counts: { "sidekiq" => 2 + (2 * other).floor, "forked" => 2 + (2 * how).floor, "stub" => 2 + (3 * count).floor },
      max_age: %w[15s 1d][how * 2], preload: %w[yes yes no][other * 3]
    )
    return order("reload") if how < 0.5 || !sqmgr.answers
    say("SIGHUP of sqmgr")
    sqmgr.life.signal(:HUP)
  end

  # Who asks meanwhile may find nobody.
  def reexec(*)
    (@orders + [order("reexec")]).each { |order| order.allow += [3] }
    sqmgr.answers = false
  end

  # Whose SIGCONT comes later, unless it was killed meanwhile.
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

  def sidekiq_workers = workers.count { |worker| worker.fleet != "stub" }
  def pick(list, number) = list[(list.size * number).floor]
end
