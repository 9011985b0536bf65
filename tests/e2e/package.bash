# SPDX-License-Identifier: MIT
# Shared by the tests of the Debian package: a machine without sqmgr, and the package, which is built if missing.
# shellcheck shell=bash disable=SC1091,SC2034,SC2154
load machine
. "$BATS_TEST_DIRNAME/native/modules.bash"

installs=(true)
packages=$SQMGR_BUILD/../package/one

setup_file() { make_package; }

make_package() {
        [ -e "$top/debian/control" ] || skip 'a release has no debian/'
        DEB_BUILD_OPTIONS=nocheck "$top/contrib/package" "$packages" 3>&-
}

package() { find "$packages" -name "${1-sqmgr}_*.deb"; } # [NAME]

dpkg_i() { # FILE...
        local file inside=()
        for file; do
                put "/root/sqmgr${#inside[@]}.deb" <"$file"
                inside+=("/root/sqmgr${#inside[@]}.deb")
        done
        in_machine env DEBIAN_FRONTEND=noninteractive dpkg --force-confold -i "${inside[@]}"
}
