# SPDX-License-Identifier: MIT
# Where contrib/setup puts what native/package-lock.json names, and the tests find it: another lock, another folder; and
# needrestart, which is not to be installed where tests run: each later installation would restart services there.
# shellcheck shell=bash

native_tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
cache_folder() {
        local home=~ # of the user's entry where there is no HOME: nobody else may put anything there
        echo "${XDG_CACHE_HOME:-$home/.cache}/sqmgr"
}
modules_folder() { echo "$(cache_folder)/npm-$(cksum <"$native_tests/package-lock.json" | cut -d' ' -f1)"; }
has_modules() { [ -e "$(modules_folder)" ]; }
needs_modules() { has_modules || skip 'the npm packages of tests/e2e/native could not be had'; }
needrestart_deb() { echo "$(cache_folder)/needrestart.deb"; }
