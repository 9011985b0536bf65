# SPDX-License-Identifier: MIT
# A Rails application whose work is jobs of ActiveJob's, on Sidekiq, which leave rows in PostgreSQL. The environment says
# where Redis and the database are: REDIS_URL, DATABASE_URL, PGHOST and the like.
require "pg"
require "rails"
require "active_job/railtie"
require "active_record/railtie"
require "sidekiq"

# Debian 12's Sidekiq draws warnings from its redis gem with every job.
Redis.silence_deprecations = true if defined?(Redis) && Redis.respond_to?(:silence_deprecations=)

class Application < Rails::Application
  config.root = File.expand_path("..", __dir__)
  config.load_defaults Rails::VERSION::STRING[/\A\d+\.\d+/]
  config.eager_load = true
  config.secret_key_base = "of a test"
  config.logger = ActiveSupport::Logger.new($stdout)
  config.log_level = :warn
  config.active_job.queue_adapter = :sidekiq

  # As applications do: by the time that it is loaded, it has spoken to its database, and asked for the worker's name.
  config.after_initialize do
    Run.count
    Object.new.extend(defined?(Sidekiq::Component) ? Sidekiq::Component : Sidekiq::Util).identity if Sidekiq.server?
  end
end
