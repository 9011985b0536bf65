# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# Pushes jobs as it is told to, by lines of the FIFO that it is given. NUMBER is written to the file `obeyed` then, 0 once
# it listens.
#   NUMBER push COUNT CLASS QUEUE ARGUMENT
#   NUMBER load CLASS QUEUE ARGUMENT   ten a second from now on
#   NUMBER rest                        no more
require_relative "app"

$stdout.sync = true
OUTBOX.start
orders = File.open(ARGV.fetch(0), "r+")
File.write("obeyed", 0)

# What stands there was promised: Redis or the outbox has it.
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
