# SPDX-License-Identifier: MIT
# Checks the files for KEDA and Kubernetes. Prints one error a line; the exit status is 1 if there is any.
# Usage: check.rb schema FILE...         each document keeps tests/kubernetes/schema.json
#        check.rb get FILE KIND PATH     prints a part of a document: keys and numbers, separated by dots
#        check.rb value PATH <JSON       prints the number that KEDA's valueLocation selects; PATH is of GJSON: keys,
#                                        numbers and #(KEY=="TEXT"), separated by dots
require "json"
require "yaml"

SCHEMAS = JSON.parse(File.read(File.join(__dir__, "schema.json")))
TYPES = { "object" => [Hash], "array" => [Array], "string" => [String], "integer" => [Integer], "boolean" => [TrueClass, FalseClass] }.freeze

def problem(text)
  puts text
  $failed = true
end

def check(value, schema, at)
  schema = SCHEMAS.fetch(schema["ref"]) if schema["ref"]
  return problem("#{at}: #{value.inspect} is no #{schema["type"]}") unless TYPES.fetch(schema["type"]).include?(value.class)
  problem("#{at}: #{value.inspect} is not one of #{schema["enum"].join(", ")}") if schema["enum"] && !schema["enum"].include?(value)
  problem("#{at}: #{value} is too low") if schema["minimum"] && value < schema["minimum"]
  problem("#{at}: #{value} is too high") if schema["maximum"] && value > schema["maximum"]
  problem("#{at}: too few entries") if schema["minItems"] && value.size < schema["minItems"]
  value.each_with_index { |entry, i| check(entry, schema["items"], "#{at}.#{i}") } if value.is_a?(Array)
  check_members(value, schema, at) if value.is_a?(Hash)
end

def check_members(object, schema, at)
  (schema["required"].to_a - object.keys).each { |key| problem("#{at}: #{key} is missing") }
  object.each do |key, member|
    of_member = schema["values"] ? { "type" => schema["values"] } : schema.fetch("properties")[key]
    of_member ? check(member, of_member, "#{at}.#{key}") : problem("#{at}.#{key}: no such field")
  end
end

def check_file(path)
  documents = YAML.load_stream(File.read(path))
  documents.each do |document|
    name = "#{document["apiVersion"]} #{document["kind"]}"
    SCHEMAS[name] ? check(document, SCHEMAS[name], "#{path}: #{document["kind"]}") : problem("#{path}: #{name} is not known")
  end
  scaled = documents.select { |document| document["kind"] == "ScaledObject" }
  scaled.each do |document|
    spec = document["spec"]
    problem("#{path}: minReplicaCount is more than maxReplicaCount") if spec["minReplicaCount"].to_i > (spec["maxReplicaCount"] || 100)
  end
end

def part_of(document, path)
  path.split(".").reduce(document) { |value, key| value.is_a?(Array) ? value[Integer(key)] : value.fetch(key) }
end

def select(json, path)
  path.scan(/#\([^)]*\)|[^.]+/).reduce(json) do |value, word|
    if (match = word.match(/\A#\((\w+)=="([^"]*)"\)\z/))
      value.is_a?(Array) ? value.find { |entry| entry[match[1]] == match[2] } : nil
    elsif value.is_a?(Array)
      word.match?(/\A\d+\z/) ? value[word.to_i] : nil
    else
      value.is_a?(Hash) ? value[word] : nil
    end
  end
end

case ARGV.shift
when "schema"
  ARGV.each { |path| check_file(path) }
when "get"
  document = YAML.load_stream(File.read(ARGV[0])).find { |each| each["kind"] == ARGV[1] } || abort("no #{ARGV[1]}")
  puts part_of(document, ARGV[2])
when "value"
  value = select(JSON.parse($stdin.read), ARGV[0])
  # As KEDA: anything else is an error, so nothing is scaled.
  value.is_a?(Numeric) ? puts(value) : problem("#{ARGV[0]} selects #{value.inspect}, which is no number")
else
  abort("see the head of #{$PROGRAM_NAME}")
end
exit($failed ? 1 : 0)
