# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# Pushes jobs on orders, which are lines of a FIFO. Writes the NUMBER of each executed order to the file `obeyed`, 0
# when it is ready.
#   NUMBER push COUNT CLASS QUEUE ARGUMENT
#   NUMBER load CLASS QUEUE ARGUMENT   ten a second from now on
#   NUMBER rest                        no more
require_relative "app"

$stdout.sync = true
OUTBOX.start
orders = File.open(ARGV.fetch(0), "r+")
File.write("obeyed", 0)

# Promised jobs: Redis or the outbox has them.
push = lambda do |name, queue, argument|
  jid = Object.const_get(name).set(queue: queue).perform_async(argument)
  Ledger.write("pushed", "jid" => jid, "queue" => queue, "class" => name, "args" => [argument])
end

load = nil
loop do
  unless IO.select([orders], nil, nil, load && 0.1)
    push.call(*load)
    next
  end
  number, order, *words = orders.gets.split
  case order
  when "push" then words.shift.to_i.times { push.call(*words) }
  when "load" then load = words
  when "rest" then load = nil
  end
  File.write("obeyed", number)
end
