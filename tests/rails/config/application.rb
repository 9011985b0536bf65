# SPDX-License-Identifier: MIT
# A Rails application with ActiveJob jobs on Sidekiq that insert rows in PostgreSQL. The environment names Redis and the
# database: REDIS_URL, DATABASE_URL, PGHOST and the like.
require "pg"
require "rails"
require "active_job/railtie"
require "active_record/railtie"
require "sidekiq"

# Debian 12's Sidekiq causes warnings of its redis gem with every job.
Redis.silence_deprecations = true if defined?(Redis) && Redis.respond_to?(:silence_deprecations=)

class Application < Rails::Application
  config.root = File.expand_path("..", __dir__)
  config.load_defaults Rails::VERSION::STRING[/\A\d+\.\d+/]
  config.eager_load = true
  config.secret_key_base = "of a test"
  config.logger = ActiveSupport::Logger.new($stdout)
  config.log_level = :warn
  config.active_job.queue_adapter = :sidekiq

  # Typical of applications: queries the database and reads the worker's name while it is loaded.
  config.after_initialize do
    Run.count
    Object.new.extend(defined?(Sidekiq::Component) ? Sidekiq::Component : Sidekiq::Util).identity if Sidekiq.server?
  end
end
