# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: MIT
# Builds the fuzz targets with libFuzzer and the sanitizers, for run and
# check-defects.

# shellcheck disable=SC2034
fuzz_targets=$(cd "$top/tests/fuzz" && for file in fuzz_*.c; do name=${file#fuzz_} && echo "${name%.c}"; done)

fuzz_needs() {
        local missing
        missing=$("$top/contrib/setup" --print build fuzz) || return 1
        [ -z "$missing" ] && return 0
        echo "fuzzing needs what is not installed here: ${missing//$'\n'/ }; as root run 'contrib/setup build fuzz'" >&2
        return 1
}

# FOLDER/source is a copy of the sources, FOLDER/fuzz the build root.
fuzz_configure() { # FOLDER
        "$top/contrib/build" "$1" fuzz CC=clang CFLAGS='-g -O2 -fsanitize=fuzzer-no-link' --enable-asan
}

fuzz_make() { # FOLDER TARGET...
        local folder=$1
        shift
        make -s -C "$folder/fuzz" -j2 LDFLAGS=-fsanitize=fuzzer FUZZ_MAIN= "${@/#/tests/fuzz/fuzz_}"
}

# A hang, or unlimited memory, counts as a finding.
fuzz_options() { # TARGET
        echo -timeout=60 -rss_limit_mb=2048 -print_final_stats=1
        # A run of `world` takes long, and an input of few bytes is mostly random.
        [ "$1" = world ] && echo -len_control=0 -max_len=2048
        [ -e "$top/tests/fuzz/words/$1" ] && echo "-dict=$top/tests/fuzz/words/$1"
}
