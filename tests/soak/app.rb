# SPDX-License-Identifier: MIT
# The Sidekiq application of the soak: a job of the chaos test that also leaks, so that workers exceed memory_threshold.
require_relative "../chaos/app"

class SoakJob < ChaosJob
  LEAKED = []

  def perform(seconds, kilobytes)
    LEAKED << "x" * (kilobytes * 1024)
    super(seconds)
  end
end
