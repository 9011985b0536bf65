# SPDX-License-Identifier: MIT
# The ledger of the chaos test for more frameworks, each with its own promise:
# - Sidekiq and RQ run a job at most once; what a killed worker ran, or had fetched, is lost.
# - Celery runs a task at most once as well, but delivers what a worker had not begun to another one.
# - Celery with acks_late runs a task at least once: what a killed worker ran is delivered again.
# After a broken connection Celery may deliver a task again that ran, or that runs.
require_relative "../chaos/ledger"

class SoakLedger < Ledger
  QUEUES = {
    "sidekiq" => QUEUE, "rq" => Queue.new("rq:queue:work", /(\w+)/), "celery" => Queue.new("celery", /"id": ?"(\w+)"/)
  }.freeze
  CELERY = %w[celery celery-late].freeze

  def refresh
    # Celery keeps what workers hold, until they acknowledge it.
    @held = @redis.call("HVALS", "unacked").filter_map { |message| message[QUEUES["celery"].jid, 1] }
    super
  end

  private

  def queues = QUEUES.values
  def queue_of(jid) = QUEUES.fetch(@jobs[jid].delete_suffix("-late"))

  def judge(jid)
    verdict = super
    return verdict unless CELERY.include?(@jobs[jid])
    return Verdict.new(:queued) if waits?(jid) && (verdict.word != :running && !murder?(verdict))
    return verdict if verdict.word != :cut || @jobs[jid] == "celery"
    Verdict.new(:wrong, "has acks_late, was cut off with its worker, and was not delivered again")
  end

  def waits?(jid) = @queued.include?(jid) || @held.include?(jid)
  def murder?(verdict) = verdict.wrong&.start_with?("was cut off")

  def pushed_twice?(jid, done)
    return super unless CELERY.include?(@jobs[jid])
    log(jid).pushed[jid] >= done && disturbed_since?(log(jid).popped[jid].first)
  end

  # A worker was killed, or Redis was broken, between the first delivery and the last one.
  def disturbed_since?(first)
    return false unless first
    @disturbances.any? { |disturbance| disturbance[:to] >= first } || @deaths.any? { |_, at| at >= first }
  end
end
