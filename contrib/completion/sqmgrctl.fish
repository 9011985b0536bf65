# SPDX-License-Identifier: MIT
# Completes sqmgrctl in fish: sqmgrctl itself lists the candidates.

function __sqmgrctl_complete
        set -l words (commandline -opc)
        set -l program $words[1]
        set -e words[1]
        $program --complete $words (commandline -ct) 2>/dev/null
end

function __sqmgrctl_wants_file
        set -l words (commandline -opc)
        contains -- $words[-1] -s --socket
end

complete -c sqmgrctl -f
complete -c sqmgrctl -n 'not __sqmgrctl_wants_file' -a '(__sqmgrctl_complete)'
complete -c sqmgrctl -n __sqmgrctl_wants_file -F
