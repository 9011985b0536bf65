# SPDX-License-Identifier: MIT
# The application of the tests with Sentinels, whose addresses are in SENTINELS (HOST HOST...).
require_relative "app"

redis = {
  url: "redis://mymaster",
  sentinels: ENV.fetch("SENTINELS").split.map { |host| {host: host, port: 26379} },
  role: :master,
  reconnect_attempts: 20
}
Sidekiq.configure_server { |config| config.redis = redis }
Sidekiq.configure_client { |config| config.redis = redis }

# Sidekiq 7 exits with its jobs when quieted, if Redis was down when its scheduler started.
if Sidekiq.server?
  require "sidekiq/scheduled"
  forgiving = Module.new do
    private

    def initial_wait
      super
    rescue => error
      Sidekiq.logger.warn(error.message)
    end
  end
  Sidekiq::Scheduled::Poller.prepend(forgiving)
end
