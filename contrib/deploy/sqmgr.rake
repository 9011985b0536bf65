# SPDX-License-Identifier: MIT
# Capistrano 3: has sqmgr put each new release in force, no job cut off. To be copied to lib/capistrano/tasks/, whose
# files the Capfile imports. A deployment fails where the new release does not come up: the old workers go on, and
# `cap STAGE deploy:rollback` puts the old release back.
#
# In config/deploy.rb, where the defaults do not fit:
#   set :sqmgr_roles, :worker           # the servers that run sqmgr (:app)
#   set :sqmgr_fleets, %w[default mail] # the application's fleets (all)
#   set :sqmgr_socket, "/run/sqmgr/app/control.sock" # (sqmgrctl's own default)
#   set :sqmgr_wait, :drained           # wait until the old workers are gone; nil: do not wait (:replaced)
#   set :sqmgr_timeout, "30min"         # the deployment fails after that, the restart goes on (15min)
#   set :sqmgr_resume, true             # quieted fleets are restarted, too (only those that this run has quieted)
#   set :sqmgr_everywhere, true         # one call, on the first of the servers, rolls all hosts of the fleets'
#                                       # rollout_group in their turn; a host that the release has not reached halts it
# The user that deploys has to be in the group that `socket_group` in sqmgr.ini names.

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

  # A rollout over all hosts is of one fleet, which is named where there are several.
  everywhere = lambda do |backend, command, *options|
    fleets = fetch(:sqmgr_fleets)
    (fleets.empty? ? [[]] : fleets.zip).each do |fleet|
      sqmgrctl.call(backend, command, *fleet, "--everywhere", *options)
    end
  end

  desc "Have new workers take the place of all others, with the release in force"
  task :restart do
    wait = fetch(:sqmgr_wait)
    options = wait ? ["--wait=#{wait}", "--timeout", fetch(:sqmgr_timeout)] : []
    options << "--resume" if fetch(:sqmgr_resume)
    # Where all fleets are quieted, no host has to wait for another one.
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

  desc "Take no new jobs, as before a migration that old code cannot bear; sqmgr:restart in the same run ends it"
  task :quiet do
    on roles(fetch(:sqmgr_roles)) do
      raise "set :sqmgr_fleets: it has to be said which fleets shall be quiet" if fetch(:sqmgr_fleets).empty?

      fetch(:sqmgr_fleets).each { |fleet| sqmgrctl.call(self, "quiet", fleet) }
    end
    set :sqmgr_resume, true
  end
end

after "deploy:published", "sqmgr:restart"
