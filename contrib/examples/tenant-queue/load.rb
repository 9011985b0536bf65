# SPDX-License-Identifier: MIT
# Requests reports, so that some wait for each tenant, until there are COUNT and the file `enough` exists.
# Usage: load.rb COUNT
require_relative "report"

count = Integer(ARGV.fetch(0))
# A tenant with more slots requests more.
tenants = (1..5).flat_map { |tenant| [tenant] * tenant }.shuffle(random: Random.new(1))
asked = 0
PG.connect do |db|
  until asked >= count && File.exist?("enough")
    if db.exec("select count(*) from jobs where state in ('queued', 'running')").getvalue(0, 0).to_i >= 60
      sleep 0.2
      next
    end
    15.times do
      asked += 1
      name = "#{(asked % 19).zero? ? 'bad' : 'good'} #{asked}"
      seconds = rand(3).zero? ? 1 + rand : 0.02 + rand * 0.18
      Report.new(tenants[asked % 15]).async.execute(name, seconds.round(3))
    end
  end
end
