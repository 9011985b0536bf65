# SPDX-License-Identifier: MIT
# Capistrano 3: restarts the workers with each new release. No job is cut off. Copy this file to lib/capistrano/tasks/,
# whose files the Capfile imports. If the new release does not boot, the deployment fails and old workers keep running;
# `cap STAGE deploy:rollback` restores the old release.
#
# To change the defaults, in config/deploy.rb:
#   set :sqmgr_roles, :worker           # the servers that run sqmgr (:app)
#   set :sqmgr_fleets, %w[default mail] # the application's fleets (all)
#   set :sqmgr_socket, "/run/sqmgr/app/control.sock" # the control socket (sqmgrctl's own default)
#   set :sqmgr_wait, :drained           # wait until the old workers are gone; nil: do not wait (:replaced)
#   set :sqmgr_timeout, "30min"         # the deployment fails after this time; the restart continues (15min)
#   set :sqmgr_resume, true             # restart quieted fleets, too (only those that this run has quieted)
#   set :sqmgr_everywhere, true         # one call, on the first server, restarts all hosts of the fleets'
#                                       # rollout_group, a few at a time; a host without the release halts the rollout
# The deploying user must be in the `socket_group` of sqmgr.ini.

namespace :load do
  task :defaults do
    set_if_empty :sqmgr_roles, :app
    set_if_empty :sqmgr_fleets, []
    set_if_empty :sqmgr_socket, nil
    set_if_empty :sqmgr_wait, :replaced
    set_if_empty :sqmgr_timeout, "15min"
    set_if_empty :sqmgr_resume, false
    set_if_empty :sqmgr_everywhere, false
  end
end

namespace :sqmgr do
  sqmgrctl = lambda do |backend, *words|
    socket = fetch(:sqmgr_socket)
    backend.execute :sqmgrctl, *(socket ? ["-s", socket] : []), *words
  end

  # A rollout over all hosts restarts one fleet, which must be named if there are several.
  everywhere = lambda do |backend, command, *options|
    fleets = fetch(:sqmgr_fleets)
    (fleets.empty? ? [[]] : fleets.zip).each do |fleet|
      sqmgrctl.call(backend, command, *fleet, "--everywhere", *options)
    end
  end

  desc "Replace all workers with new ones that run the current release"
  task :restart do
    wait = fetch(:sqmgr_wait)
    options = wait ? ["--wait=#{wait}", "--timeout", fetch(:sqmgr_timeout)] : []
    options << "--resume" if fetch(:sqmgr_resume)
    # If all fleets are quieted, no host needs to wait for another.
    if fetch(:sqmgr_everywhere) && !fetch(:sqmgr_resume)
      on roles(fetch(:sqmgr_roles)).first do
        release = File.basename(capture(:readlink, "-f", current_path))
        everywhere.call(self, "restart", "--release", release, *options)
      end
    else
      on roles(fetch(:sqmgr_roles)) do
        sqmgrctl.call(self, "restart", *fetch(:sqmgr_fleets), *options)
      end
    end
  end

  desc "End a restart; remaining old workers keep running"
  task :abort do
    if fetch(:sqmgr_everywhere)
      on roles(fetch(:sqmgr_roles)).first do
        everywhere.call(self, "abort")
      end
    else
      on roles(fetch(:sqmgr_roles)) do
        sqmgrctl.call(self, "abort", *fetch(:sqmgr_fleets))
      end
    end
  end

  desc "Show the fleets and their workers"
  task :status do
    on roles(fetch(:sqmgr_roles)) do
      sqmgrctl.call(self, "status", *fetch(:sqmgr_fleets))
    end
  end

  desc "Quiet the fleets, as before a migration that breaks old code; sqmgr:restart in the same run ends this"
  task :quiet do
    on roles(fetch(:sqmgr_roles)) do
      raise "sqmgr:quiet needs the names of fleets. Set :sqmgr_fleets" if fetch(:sqmgr_fleets).empty?

      fetch(:sqmgr_fleets).each { |fleet| sqmgrctl.call(self, "quiet", fleet) }
    end
    set :sqmgr_resume, true
  end
end

after "deploy:published", "sqmgr:restart"
