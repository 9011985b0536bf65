# SPDX-License-Identifier: MIT
# Repairs every two seconds what workers, Redis or a lost message have left undone. Any number of instances may run.
require_relative "tenant_queue"

loop do
  begin
    TenantQueue.open(&:sweep)
  rescue PG::Error => e
    warn "sweep: #{e.message}"
  end
  sleep 2
end
