#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The Debian package on a machine with the real systemd.
# seconds: 40
# promises: P1 P4
# shellcheck disable=SC2034
load machine

installs=(true)
packages=$SQMGR_BUILD/../package/one

setup_file() {
        [ -e "$top/debian/control" ] || skip 'a release has no debian/'
        DEB_BUILD_OPTIONS=nocheck "$top/contrib/package" "$packages" 3>&-
}

dpkg_i() { # FILE
        put /root/sqmgr.deb <"$1"
        in_machine env DEBIAN_FRONTEND=noninteractive dpkg --force-confold -i /root/sqmgr.deb
}

@test "debian/tests: the installed package as a service, and without systemd" {
        dpkg_i "$(find "$packages" -name 'sqmgr_*.deb')"
        redis flushall
        unit stop redis-server
        (cd "$top" && tar -cf - debian/tests tests/e2e/app.rb) | in_machine tar -C /root --no-same-owner -xf -
        in_machine /root/debian/tests/without-systemd
        in_machine /root/debian/tests/service
}
