# SPDX-License-Identifier: MIT
# Drives every method of sqmgr's interface through a socket, knowing only Varlink and the description that sqmgr serves.
# Checks that each reply has the described fields, with their types.
# Usage: varlink.rb SOCKET; a fleet `default` of two workers runs. Prints the methods that it called.
require "json"
require "socket"

class Varlink
  def initialize(path)
    @socket = UNIXSocket.new(path)
  end

  def send_call(method, parameters = {}, more: false)
    @socket.write(JSON.generate({method: method, parameters: parameters, more: more}) + "\0")
  end

  def receive
    text = @socket.gets("\0") or raise "the connection ended"
    JSON.parse(text.chomp("\0"))
  end

  def call(method, parameters = {})
    send_call(method, parameters)
    reply = receive
    raise "#{method}: #{reply}" if reply["error"]

    reply["parameters"] || {}
  end
end

# Parses a description: types and replies of methods, each a struct of fields.
class Description
  attr_reader :methods

  def initialize(text)
    @text = text.gsub(/#[^\n]*/, "")
    @types = {}
    @methods = {}
    @text.scan(/^type (\w+) \(([^()]*(?:\([^()]*\)[^()]*)*)\)/) { |name, fields| @types[name] = parse(fields) }
    @text.scan(/^method (\w+)\([^()]*(?:\([^()]*\)[^()]*)*\) -> \(([^()]*(?:\([^()]*\)[^()]*)*)\)/) do |name, fields|
      @methods[name] = parse(fields)
    end
  end

  def parse(fields)
    fields.scan(/(\w+):\s*(\?)?(\[\])?(\w+|\([^)]*\))/).to_h { |name, may, list, type| [name, [may, list, type]] }
  end

  def check(where, value, fields)
    unknown = value.keys - fields.keys
    missing = fields.keys - value.keys
    raise "#{where}: undescribed #{unknown}, missing #{missing}" unless unknown.empty? && missing.empty?

    fields.each { |name, type| check_value("#{where}.#{name}", value[name], *type) }
  end

  def check_value(where, value, may, list, type)
    return if value.nil? && may
    return value.each { |one| check_value(where, one, nil, nil, type) } if list && value.is_a?(Array)

    right = case type
            when "string" then value.is_a?(String)
            when "int" then value.is_a?(Integer)
            when "float" then value.is_a?(Float)
            when "bool" then [true, false].include?(value)
            when /\A\((.*)\)\z/m then $1.split(",").map(&:strip).include?(value)
            else
              check(where, value, @types.fetch(type))
              true
            end
    raise "#{where}: #{value.inspect} is no #{type}" unless right
  end
end

path = ARGV.fetch(0)
link = Varlink.new(path)
info = link.call("org.varlink.service.GetInfo")
raise "GetInfo: #{info}" unless info["interfaces"].include?("org.sqmgr.Control")

text = link.call("org.varlink.service.GetInterfaceDescription", {interface: "org.sqmgr.Control"})["description"]
description = Description.new(text)
called = []
drive = lambda do |method, parameters = {}|
  # A re-exec keeps the connection.
  reply = link.call("org.sqmgr.Control.#{method}", parameters)
  description.check(method, reply, description.methods.fetch(method))
  called << method
  reply
end

drive.call("Ping")
drive.call("GetVersion")
drive.call("GetStatus")
drive.call("GetStatus", {fleets: ["default"]})
drive.call("GetEvents", {worker: "default/1"})
drive.call("GetEvents", {after: 0.0})
drive.call("Scale", {fleet: "default", count: 3})
drive.call("Quiet", {target: "default/1"})
drive.call("Restart", {fleets: ["default"]})
drive.call("Abort")
drive.call("Follow", {fleets: nil})
# The fleet is not preloaded.
link.send_call("org.sqmgr.Control.Rollback", {fleets: ["default"]})
refusal = link.receive
raise "Rollback: #{refusal}" unless refusal["error"] == "org.sqmgr.Control.NotInMemory"

facts = refusal["parameters"]
raise "Rollback: #{facts}" unless facts.keys.sort == %w[directory fleet generation reason] && facts["reason"] == "no_preload"

called << "Rollback"
drive.call("Stop", {fleet: "default", force: false})
drive.call("Start", {fleet: "default"})
drive.call("Reload")

# With `more` replies continue until the restart has ended.
link.send_call("org.sqmgr.Control.Restart", {wait: "drained"}, more: true)
replies = 0
loop do
  reply = link.receive
  raise "Restart: #{reply}" if reply["error"]

  description.check("Restart", reply["parameters"], description.methods["Restart"])
  replies += 1
  break unless reply["continues"]
end
raise "only #{replies} replies to a restart" if replies < 3

drive.call("Reexec")
drive.call("Ping")
# The new image reconnects to Redis.
give_up = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
until drive.call("GetStatus")["redis"].all? { |redis| redis["state"] == "connected" }
  raise "Redis is away after the re-exec" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > give_up

  sleep 0.05
end

# Methods newer than this test need no parameters, or a line above.
(description.methods.keys - called).each { |method| drive.call(method) }
puts called.uniq.sort
