# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# The jobs of a post office, and an export. Each job works first, then commits its results together with its end.
require_relative "async_task"

# Debian 12's Sidekiq causes warnings of its redis gem with every job.
Redis.silence_deprecations = true if defined?(Redis) && Redis.respond_to?(:silence_deprecations=)

Sidekiq.configure_server do |config|
  # Retries after seconds, so that a demonstration shows them.
  config.average_scheduled_poll_interval = 1
end

class Letter
  include AsyncTask
  sidekiq_options async_task: true, queue: "letters", retry: 5
  sidekiq_retry_in { 1 }

  def perform(_task, number)
    sleep rand(0.1..0.3)
    raise AsyncTask::Failed, "address unknown" if number % 50 == 10
    raise "the franking machine is empty" if number % 50 == 20 && attempt == 1

    finish { |step| step.exec("INSERT INTO deliveries (jid) VALUES ($1)", jid) }
  end
end

class Telegram
  include AsyncTask
  sidekiq_options async_task: true, queue: "letters", retry: 1
  sidekiq_retry_in { 1 }

  def perform(_task, _number)
    raise "nobody answers"
  end
end

# Waits for an external event of any duration.
class Parcel
  include AsyncTask
  sidekiq_options async_task: true, queue: "parcels", retry: 5
  sidekiq_retry_in { 1 }

  def perform(_task, _number, lorry)
    sleep 0.1 until File.exist?(lorry)
    finish { |step| step.exec("INSERT INTO deliveries (jid) VALUES ($1)", jid) }
  end
end

module Export
  def self.start(rows, size)
    AsyncTask.start("export", jobs: 2 + rows.fdiv(size).ceil, last: Join) { |step| step.enqueue(Plan, [[rows, size]]) }
  end

  class Plan
    include AsyncTask
    sidekiq_options async_task: true, queue: "exports", retry: 5

    def perform(_task, rows, size)
      message "#{rows} rows, #{size} in a chunk"
      finish { |step| step.enqueue(Chunk, 1.step(rows, size).map { |first| [first, [first + size - 1, rows].min] }) }
    end
  end

  class Chunk
    include AsyncTask
    sidekiq_options async_task: true, queue: "exports", retry: 5

    def perform(task, first, last)
      sleep rand(0.1..0.3)
      finish do |step|
        step.exec(<<~SQL, task, first, last)
          INSERT INTO lines (task_id, number, line)
          SELECT $1, number, number || ',' || md5(number::text) FROM generate_series($2::int, $3::int) AS number
        SQL
      end
      message "rows #{first} to #{last}"
    end
  end

  class Join
    include AsyncTask
    sidekiq_options async_task: true, queue: "exports", retry: 5

    def perform(task)
      path = "export-#{task}.csv"
      File.open("#{path}.#{attempt}", "w") { |file| write_lines(task.to_i, file) }
      finish { File.rename("#{path}.#{attempt}", path) }
      message "see #{path}"
    end

    private

    def write_lines(task, file)
      AsyncTask.db do |db|
        db.copy_data("COPY (SELECT line FROM lines WHERE task_id = #{task} ORDER BY number) TO STDOUT") do
          while (line = db.get_copy_data)
            file << line
          end
        end
      end
    end
  end
end
