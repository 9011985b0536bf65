# SPDX-License-Identifier: MIT
# Completes the options of `sqmgr-web --help` in fish.

function __sqmgr_web_options
        set -l words (commandline -opc)
        contains -- $words[-1] -l --listen --host; and return
        $words[1] --help 2>/dev/null | string match -ar -- '--[a-z][a-z-]*'
end

function __sqmgr_web_wants_file
        set -l words (commandline -opc)
        contains -- $words[-1] -s --socket --history
end

complete -c sqmgr-web -f
complete -c sqmgr-web -n 'not __sqmgr_web_wants_file' -a '(__sqmgr_web_options)'
complete -c sqmgr-web -n __sqmgr_web_wants_file -F
