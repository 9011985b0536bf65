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
#   set :sqmgr_limit, 4                 # one host first, then 4 at a time: each links the release and restarts its
#                                       # workers. The first failure stops this: the link is restored there, and
#                                       # other hosts keep the old link and the old workers (all hosts at once)
# The deploying user must be in the `socket_group` of sqmgr.ini.

namespace :load do
  task :defaults do
    set_if_empty :sqmgr_roles, :app
    set_if_empty :sqmgr_fleets, []
    set_if_empty :sqmgr_socket, nil
    set_if_empty :sqmgr_wait, :replaced
    set_if_empty :sqmgr_timeout, "15min"
    set_if_empty :sqmgr_resume, false
    set_if_empty :sqmgr_limit, nil
  end
end

namespace :sqmgr do
  sqmgrctl = lambda do |backend, *words|
    socket = fetch(:sqmgr_socket)
    backend.execute :sqmgrctl, *(socket ? ["-s", socket] : []), *words
  end

  options = lambda do |wait|
    wait ? ["--wait=#{wait}", "--timeout", fetch(:sqmgr_timeout)] : []
  end

  # Renaming is atomic: there is always a current release.
  link = lambda do |backend, target|
    beside = deploy_path.join("#{current_path.basename}.new")
    backend.execute :ln, "-sfn", target, beside
    backend.execute :mv, "-T", beside, current_path
  end

  deploy = lambda do |backend|
    before = backend.capture(:readlink, current_path, raise_on_non_zero_exit: false)
    link.call(backend, release_path)
    begin
      sqmgrctl.call(backend, "restart", *fetch(:sqmgr_fleets), "--release", release_path.basename,
                    *options.call(fetch(:sqmgr_wait) || :replaced))
    rescue SSHKit::Command::Failed => e
      # 1, 2 and 4: halted or refused. Otherwise the restart may continue, and its workers need the link.
      link.call(backend, before) if !before.empty? && e.message.match?(/\A.* exit status: ([124]|12[67])\n/)
      raise
    end
  end

  # Part of the task deploy. If all fleets are quieted, no host needs to wait for another.
  task :deploy do
    next if !fetch(:sqmgr_limit) || !fetch(:release_path) || fetch(:sqmgr_resume)

    first, *rest = roles(fetch(:sqmgr_roles))
    begun = Queue.new
    reasons = Queue.new
    one_host = proc do |host|
      next unless reasons.empty?

      begun << host
      deploy.call(self)
    rescue StandardError => e
      reasons << "#{host}: #{e.message.chomp}\n"
    end
    on first, &one_host
    on rest, in: :groups, limit: fetch(:sqmgr_limit), wait: 0, &one_host
    unless reasons.empty?
      unchanged = [first, *rest] - Array.new(begun.size) { begun.pop }
      raise Array.new(reasons.size) { reasons.pop }.join +
            "sqmgr: stopped; hosts that were not changed: #{unchanged.empty? ? "none" : unchanged.join(" ")}"
    end
    set :sqmgr_deployed, true
  end

  desc "Replace all workers with new ones that run the current release"
  task :restart do
    next if fetch(:sqmgr_deployed)

    words = options.call(fetch(:sqmgr_wait))
    words << "--resume" if fetch(:sqmgr_resume)
    on roles(fetch(:sqmgr_roles)) do
      sqmgrctl.call(self, "restart", *fetch(:sqmgr_fleets), *words)
    end
  end

  desc "End a restart; remaining old workers keep running"
  task :abort do
    on roles(fetch(:sqmgr_roles)) do
      sqmgrctl.call(self, "abort", *fetch(:sqmgr_fleets))
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

before "deploy:symlink:release", "sqmgr:deploy"
after "deploy:published", "sqmgr:restart"
