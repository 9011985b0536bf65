# SPDX-License-Identifier: MIT
# Checks the files for Prometheus and Grafana. Prints one error a line; the exit status is 1 if there is any.
# Usage: check.rb names METRICS FILE...      FILE names only metrics and labels that METRICS, a text of GetMetrics, has
#        check.rb alerts RULES TESTS PAGE    each alert has what it must, is tested, and stands in the table of PAGE
#        check.rb tests RULES TESTS          prints TESTS as tests for promtool
#        check.rb dashboard FILE             each query follows the choices of the reader
#        check.rb queries FILE               prints its queries as rules, for promtool to see whether they are PromQL
require "json"
require "yaml"

# Metrics of others: node_exporter.
FOREIGN = { "node_textfile_mtime_seconds" => { "file" => [] } }.freeze
SCRAPED_AS = { "instance" => "host:7433", "job" => "sqmgr" }.freeze
SCRAPED = SCRAPED_AS.keys
RUNBOOK = "docs/monitoring.md#when-an-alert-fires".freeze

def problem(text)
  puts text
  $failed = true
end

def read_metrics(path)
  metrics = Hash.new { |hash, name| hash[name] = Hash.new { |labels, label| labels[label] = [] } }
  File.foreach(path) do |line|
    next if line.start_with?("#")
    name, labels = line.match(/\A(\w+)(?:\{(.*)\})? \S+$/)&.captures
    abort("#{path}: no sample: #{line}") unless name
    metrics[name]
    labels.to_s.scan(/(\w+)="((?:[^"\\]|\\.)*)"/) { |label, value| metrics[name][label] |= [value] }
  end
  abort("#{path}: there is no metric") if metrics.empty?
  metrics.merge(FOREIGN)
end

def read(path)
  path.end_with?(".json") ? JSON.parse(File.read(path)) : YAML.safe_load(File.read(path))
end

def rules(document)
  document.fetch("groups").flat_map { |group| group.fetch("rules") }
end

def panels(dashboard)
  dashboard.fetch("panels").flat_map { |panel| [panel, *panel["panels"]] }.reject { |panel| panel["type"] == "row" }
end

# Yields each query, and the texts that are shown with the labels of its result.
def queries(document)
  return rules(document).map { |rule| [rule["alert"], rule["expr"], rule["annotations"].values.join(" ")] } if document["groups"]
  of_panels = panels(document).flat_map do |panel|
    panel.fetch("targets", []).map { |target| [panel["title"], target["expr"], target["legendFormat"]] }
  end
  of_panels + document["annotations"]["list"].select { |one| one["expr"] }.map do |one|
    [one["name"], one["expr"], one["textFormat"] + one["tagKeys"].split(",").map { |key| "{{#{key}}}" }.join]
  end
end

def variables(dashboard)
  dashboard.fetch("templating").fetch("list").select { |variable| variable["type"] == "query" }
end

def check_selector(where, metrics, name, matchers)
  return problem("#{where}: there is no metric #{name}") unless metrics.key?(name)
  matchers.to_s.scan(/(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/) do |label, operator, value|
    next if SCRAPED.include?(label)
    next problem("#{where}: #{name} has no label #{label}") unless metrics[name].key?(label)
    values = operator.end_with?("~") ? value.split("|") : [value]
    next if value.match?(/[^a-z|-]/) || (values - metrics[name][label]).empty?
    problem("#{where}: #{label} of #{name} is never #{(values - metrics[name][label]).join(" nor ")}")
  end
end

def check_names(metrics_path, *paths)
  metrics = read_metrics(metrics_path)
  known = metrics.values.flat_map(&:keys).uniq + SCRAPED
  n = 0
  look = lambda do |where, query|
    query.scan(/\b((?:sqmgr|node)_\w+)\s*(\{[^}]*\})?/) { |name, matchers| check_selector(where, metrics, name, matchers).then { n += 1 } }
    query.scan(/\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/) do |(labels)|
      (labels.split(/\s*,\s*/) - known).each { |label| problem("#{where}: there is no label #{label}") }
    end
  end
  paths.each do |path|
    document = read(path)
    queries(document).each do |where, query, shown|
      look.call(where, query)
      (shown.scan(/(?:\$labels\.|\{\{)(\w+)/).flatten - known).each { |label| problem("#{where}: shows a label #{label} that is not") }
    end
    next unless document["templating"]
    variables(document).each do |variable|
      inside, label = variable["query"].match(/\Alabel_values\((.*), (\w+)\)\z/)&.captures
      next problem("variable #{variable["name"]}: is no label_values()") unless inside
      look.call("variable #{variable["name"]}", inside)
      problem("variable #{variable["name"]}: there is no label #{label}") unless known.include?(label)
    end
  end
  problem("no metric is named") if n.zero?
end

def check_alerts(rules_path, tests_path, page_path)
  alerts = rules(read(rules_path))
  tests = read(tests_path)
  rows = File.read(page_path)[/^## When an alert fires$.*?(?=^## |\z)/m].to_s.scan(/^\| `(Sqmgr\w+)` /).flatten
  alerts.each do |rule|
    name = rule["alert"]
    problem("#{name}: is not CamelCase, or not sqmgr's") unless name.match?(/\ASqmgr([A-Z][a-z]+)+\z/)
    problem("#{name}: has no severity") unless %w[critical warning].include?(rule.dig("labels", "severity"))
    %w[summary description].each { |key| problem("#{name}: has no #{key}") if rule.dig("annotations", key).to_s.empty? }
    problem("#{name}: does not lead to #{RUNBOOK}") unless rule.dig("annotations", "runbook_url") == RUNBOOK
    problem("#{name}: is not seen to fire, and not to fire") unless tests[name]&.values_at("fires", "silent")&.none? { |at| Array(at).empty? }
    problem("#{page_path}: does not say what to do about #{name}") unless rows.include?(name)
  end
  (rows - alerts.map { |rule| rule["alert"] }).each { |name| problem("#{page_path}: there is no alert #{name}") }
  problem("there are no alerts") if alerts.empty?
end

def promtool_series(name)
  bare, labels = name.delete_suffix("}").split("{")
  labels = labels.to_s.split(",")
  SCRAPED_AS.each { |label, value| labels << %(#{label}="#{value}") unless name.include?(%(#{label}=")) }
  "#{bare}{#{labels.join(",")}}"
end

# The texts are those of the rules, with the labels and the value that the test expects.
def promtool_test(name, test, annotations)
  labels = SCRAPED_AS.merge(test["labels"])
  texts = annotations.transform_values do |text|
    text.gsub(/\{\{ \$labels\.(\w+) \}\}/) { labels.fetch($1) }.gsub(/\{\{ \$value( \| [^}]*)? \}\}/) { test.fetch("value") }
  end
  moments = test["silent"].map { |at| [at, []] } << [test["fires"], [{ "exp_labels" => labels, "exp_annotations" => texts }]]
  { "name" => name, "interval" => "1m",
    "input_series" => test["series"].map { |series, values| { "series" => promtool_series(series), "values" => values } },
    "alert_rule_test" => moments.map { |at, alerts| { "eval_time" => at, "alertname" => name, "exp_alerts" => alerts } } }
end

def print_tests(rules_path, tests_path)
  annotations = rules(read(rules_path)).to_h { |rule| rule.values_at("alert", "annotations") }
  tests = read(tests_path).map { |name, test| promtool_test(name, test, annotations.fetch(name)) }
  puts YAML.dump("rule_files" => [File.expand_path(rules_path)], "evaluation_interval" => "1m", "tests" => tests)
end

# The choices of data source, job and instance apply to each query. A counter is shown as a rate, over a range that
# follows the step.
def check_query(where, query)
  query.scan(/\bsqmgr_\w+\s*(?:\{([^}]*)\})?/) do |(matchers)|
    SCRAPED.each { |label| problem("#{where}: not by $#{label}") unless matchers.to_s.include?(%(#{label}=~"$#{label}")) }
  end
  query.scan(/\b(i?rate|increase)\(.*?\[([^\]]+)\]/) { |_, range| problem("#{where}: over #{range}") unless range == "$__rate_interval" }
  bare = query.gsub(/\b(?:i?rate|increase)\(\s*sqmgr_\w+\s*(?:\{[^}]*\})?\[/, "")
  problem("#{where}: shows the bare value of a counter") if bare.match?(/sqmgr_\w+_total\b/)
end

def check_dashboard(path)
  dashboard = read(path)
  asked = panels(dashboard).flat_map { |panel| panel.fetch("targets", []).map { |target| [panel["title"], target] } }
  problem("there are no queries") if asked.empty?
  asked.each do |where, target|
    problem("#{where}: not of ${datasource}") unless target.dig("datasource", "uid") == "${datasource}"
    check_query(where, target["expr"])
  end
end

def print_queries(path)
  rules = queries(read(path)).map.with_index do |(_, query, _), i|
    { "record" => "q#{i}", "expr" => query.gsub("$__rate_interval", "5m") }
  end
  puts YAML.dump("groups" => [{ "name" => "queries", "rules" => rules }])
end

command, *arguments = ARGV
case command
when "names" then check_names(*arguments)
when "alerts" then check_alerts(*arguments)
when "tests" then print_tests(*arguments)
when "dashboard" then check_dashboard(*arguments)
when "queries" then print_queries(*arguments)
else abort("usage: check.rb names|alerts|tests|dashboard|queries FILE...")
end
exit(1) if $failed
