# SPDX-License-Identifier: MIT
# Completes the options of `sqmgr --help` in fish.

function __sqmgr_options
        set -l words (commandline -opc)
        set -l command
        switch $words[-1]
                case --framework
                        printf '%s\n' sidekiq resque rq celery bullmq solid_queue good_job native plain
                        return
                case --user
                        __fish_complete_users
                        return
                case --group
                        __fish_complete_groups
                        return
                case --entry --command --count --memory --name
                        return
        end
        contains -- init $words; and set command init
        $words[1] $command --help 2>/dev/null | string match -ar -- '--[a-z][a-z-]*'
end

function __sqmgr_wants_file
        set -l words (commandline -opc)
        contains -- $words[-1] -c --config -o --output --environment-file --from-supervisord --from-procfile --directory --drop-in
end

function __sqmgr_wants_unit
        set -l words (commandline -opc)
        contains -- $words[-1] --from-systemd
end

complete -c sqmgr -f
complete -c sqmgr -n 'not __sqmgr_wants_file; and not __sqmgr_wants_unit' -a '(__sqmgr_options)'
complete -c sqmgr -n 'test (count (commandline -opc)) = 1' -a init
complete -c sqmgr -n __sqmgr_wants_file -F
complete -c sqmgr -n __sqmgr_wants_unit -a '(systemctl list-unit-files --type=service --plain --no-legend 2>/dev/null | string replace -r "\.service .*" "")'
