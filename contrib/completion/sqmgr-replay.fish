# SPDX-License-Identifier: MIT
# Completes the options of `sqmgr-replay --help` in fish.

function __sqmgr_replay_options
        set -l words (commandline -opc)
        contains -- $words[-1] -s --set; and return
        $words[1] --help 2>/dev/null | string match -ar -- '--[a-z][a-z-]*'
end

complete -c sqmgr-replay -a '(__sqmgr_replay_options)'
