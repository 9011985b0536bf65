# SPDX-License-Identifier: MIT
require_relative "application"
Rails.application.initialize!
