# SPDX-License-Identifier: MIT
# Where contrib/setup installs the npm packages of native/package-lock.json, page/package-lock.json and
# contrib/benchmark/package-lock.json, and their users find them: each lock file has its own folder. Also needrestart, which must not be installed where tests run, because
# each later installation of a package would restart services there.
# shellcheck shell=bash

# shellcheck disable=SC2034
native_tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
page_tests=${native_tests%/*}/page
# shellcheck disable=SC2034
benchmark_peers=${native_tests%/tests/e2e/native}/contrib/benchmark
cache_folder() {
        local home=~ # from the passwd entry without HOME: no other user may write there
        echo "${XDG_CACHE_HOME:-$home/.cache}/sqmgr"
}
# The default is the folder of native.
modules_folder() { # [TESTS]
        echo "$(cache_folder)/npm-$(cksum <"${1-$native_tests}/package-lock.json" | cut -d' ' -f1)"
}
has_modules() { [ -e "$(modules_folder "$@")" ]; }
needs_modules() { # [TESTS]
        local tests=${1-$native_tests}
        has_modules "$tests" || skip "the npm packages of tests/e2e/${tests##*/} could not be had"
}
needrestart_deb() { echo "$(cache_folder)/needrestart.deb"; }
# Writes native/APP.js with all its packages as one minified file, as applications are often delivered.
bundle_app() { # APP FILE
        NODE_PATH=$(modules_folder)/node_modules esbuild "$native_tests/$1.js" --bundle --minify --platform=node \
                --log-level=error --outfile="$2"
}
