# SPDX-License-Identifier: MIT
# Tests for an inherited connection: the application opens its own connection to Redis while it is loaded. Each job asks
# it repeatedly for the job's own number, and notes how often the reply was another number.
class AskJob < ActiveJob::Base
  TIMES = 300
  CONNECTION = (PG.connect if ENV["RAW_CONNECTION"])
  LOCK = Mutex.new

  def perform(number)
    wrong = TIMES.times.count { ask(number) != number.to_s }
    Run.note(number, wrong: wrong)
  end

  private

  def ask(number)
    LOCK.synchronize { CONNECTION.exec("SELECT #{number}").getvalue(0, 0) }
  rescue PG::Error => e
    e.message
  end
end
