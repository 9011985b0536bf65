# SPDX-License-Identifier: MIT
# Where contrib/setup puts what native/package-lock.json and page/package-lock.json name, and the tests find it: another
# lock, another folder; and
# needrestart, which is not to be installed where tests run: each later installation would restart services there.
# shellcheck shell=bash

# shellcheck disable=SC2034
native_tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
page_tests=${native_tests%/*}/page
cache_folder() {
        local home=~ # of the user's entry where there is no HOME: nobody else may put anything there
        echo "${XDG_CACHE_HOME:-$home/.cache}/sqmgr"
}
# Those of native where no other tests are named.
modules_folder() { # [TESTS]
        echo "$(cache_folder)/npm-$(cksum <"${1-$native_tests}/package-lock.json" | cut -d' ' -f1)"
}
has_modules() { [ -e "$(modules_folder "$@")" ]; }
needs_modules() { # [TESTS]
        local tests=${1-$native_tests}
        has_modules "$tests" || skip "the npm packages of tests/e2e/${tests##*/} could not be had"
}
needrestart_deb() { echo "$(cache_folder)/needrestart.deb"; }
