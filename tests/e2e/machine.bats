#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Commands for the machine of the service tests must run in the machine, and never as root in the root file system
# around it.
# seconds: 10
# promises: none
# bats file_tags=root
load helpers

setup() { folder=$(mktemp -d /tmp/sqmgr-e2e.XXXXXX); }
teardown() { rm -rf --one-file-system "$folder"; }

# Boots a machine in a chroot and reads its marker. The mounts are in their own namespace.
cat_marker() { # HOW-THE-ROOT-IS-MADE
        cat >"$folder/boot" <<'END'
below=$(mktemp -d /tmp/sqmgr-e2e.XXXXXX)
exec 9> >(exec setsid "$1" "$below" true 3>&- >/dev/null 2>&1)
machine=$!
for ((i = 0; i < 600; i++)); do
        [ ! -e "$below/init" ] && [ ! -e "$below/refused" ] || break
        sleep 0.1
done
echo "$below"
if [ -e "$below/init" ]; then
        nsenter -t "$(cat "$below/init")" -m -p -u -i -n -C cat /etc/sqmgr-machine
else
        cat "$below/refused"
fi
exec 9>&-
wait "$machine"
END
        mkdir "$folder/root"
        # shellcheck disable=SC2016
        run --separate-stderr setsid unshare --mount bash -ec "$1"'; exec chroot "$2" bash "$1/boot" "$3"' bash \
                "$folder" "$folder/root" "$e2e/machine" </dev/null
        [[ ${lines[1]-} != 'no machine can be made here: '* ]] || skip "${lines[1]}"
        echo "$output" "$stderr"
        [ "${#lines[@]}" = 2 ] && [ "${lines[0]}" = "${lines[1]}" ]
}

@test "in a chroot that is a mount point, in_machine enters the machine" {
        [ $EUID = 0 ] || skip 'not root'
        unshare --mount true || skip "no machine can be made here: refused is 'unshare --mount'"
        # shellcheck disable=SC2016
        cat_marker 'mount --rbind / "$2"'
}
