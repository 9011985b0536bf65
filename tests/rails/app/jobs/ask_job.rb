# SPDX-License-Identifier: MIT
# What must not be inherited by a fork: a connection that the application opens for itself while it is loaded. Each job
# asks it for its own number over and over, and notes how often it was told another one.
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
