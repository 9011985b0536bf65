# SPDX-License-Identifier: MIT
# Evaluates the output of the groups of tests/run. Each result is a line of $out/$group.verdicts: the verdict (ok, FAIL
# or skip), the name and, for a skip, the reason, separated by tabs. A skip that tests/skips does not allow is a
# failure. A program skips with a line `skipped: REASON`, possibly for a part of itself, and exits with status 77 if
# nothing is left to test. The output of a failure is a file of $out/$group.failures, below a line with its name.
# shellcheck shell=bash disable=SC2154

skips_allowed=$top/tests/skips
# shellcheck disable=SC1091
system=$(. /etc/os-release 2>/dev/null && echo "$ID-$VERSION_ID")

skip_is_allowed() { # NAME REASON
        local where name reason why
        # Such a test lacks the tag `root`: nobody has run it.
        [[ $EUID = 0 && ($2 == 'not root' || $2 == 'only root can '*) ]] && return 1
        while IFS='|' read -r where name reason why; do
                # shellcheck disable=SC2053
                [[ $system == $where && $1 == $name && $2 == $reason && -n $why ]] && return 0
        done < <(sed '/^#/d; s/ *| */|/g' "$skips_allowed")
        return 1
}

verdict() { # ok|FAIL|skip NAME [REASON]
        if [ "$1" != skip ]; then
                printf '%s\t%s\n' "$1" "$2"
        elif skip_is_allowed "$2" "${3:-no reason}"; then
                printf 'skip\t%s\t%s\n' "$2" "$3"
        else
                printf 'FAIL\t%s: skipped, which tests/skips does not allow on %s: %s\n' "$2" "$system" "${3:-no reason}"
        fi >>"$out/$group.verdicts"
}

# Keeps the output of a failure whose verdict is already written.
keep_output() { # NAME, and what it printed on standard input
        mkdir -p "$out/$group.failures"
        { echo "$group: $1" && cat; } >"$out/$group.failures/$(printf '%04d' "$(count_verdicts FAIL "$out/$group.verdicts")")"
}

fail() { # NAME, and what it printed on standard input
        verdict FAIL "$1"
        keep_output "$1"
}

# Adds verdicts, and prints their number.
verdicts_of_skips() { # NAME OUTPUT
        local reason n=0
        while read -r reason; do
                verdict skip "$1" "$reason"
                n=$((n + 1))
        done < <(sed -n 's/^skipped: //p' "$2")
        echo $n
}

verdict_of() { # NAME COMMAND...
        local name=$1 status skipped
        shift
        echo "== $name"
        "$@" 2>&1 | tee "$out/$group.part"
        status=${PIPESTATUS[0]}
        skipped=$(verdicts_of_skips "$name" "$out/$group.part")
        case $status in
        0) verdict ok "$name" ;;
        77) [ "$skipped" != 0 ] || verdict skip "$name" ;;
        *) { cat "$out/$group.part" && echo "exit status $status"; } | fail "$name" ;;
        esac
}

# libcheck prints one line of totals for each program. A program without it has crashed, or is a script.
verdicts_of_program() { # TRS-FILE
        local log=${1%.trs}.log name result checks bad skipped
        name=$(basename "${1%.trs}")
        result=$(sed -n 's/^:test-result: //p' "$1")
        checks=$(sed -n 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 \2 \3/p' "$log" |
                awk '{ n += $1; bad += $2 + $3 } END { if (NR) print n, bad }')
        skipped=$(verdicts_of_skips "$name" "$log")
        if [ -z "$checks" ]; then
                case $result in
                PASS) verdict ok "$name" ;;
                SKIP) [ "$skipped" != 0 ] || verdict skip "$name" ;;
                *) fail "$name ($result)" <"$log" ;;
                esac
                return
        fi
        bad=${checks#* } checks=${checks% *}
        [ "$result" = PASS ] || [ "$bad" -gt 0 ] || bad=1
        yes "ok	$name" | head -n $((checks - bad - skipped)) >>"$out/$group.verdicts"
        [ "$bad" != 0 ] || return 0
        { grep -E ':[FE]:' "$log" || echo 'the program failed'; } | sed "s/^/FAIL	$name: /" >>"$out/$group.verdicts"
        keep_output "$name" <"$log"
}

verdicts_of_make_check() { # BUILD-ROOT
        local trs
        for trs in $(cd "$1" && find . -name '*.trs'); do
                verdicts_of_program "$1/$trs"
        done
}

# Reads the output of bats, with its exit status on the last line.
verdicts_of_tap() { # FILE.bats.tap
        local file line result number name ran=0
        file=$(basename "$1" .tap)
        while IFS= read -r line; do
                [[ $line =~ ^(ok|not\ ok)\ ([0-9]+)\ (.*)$ ]] || continue
                ran=$((ran + 1)) result=${BASH_REMATCH[1]} number=${BASH_REMATCH[2]} name=${BASH_REMATCH[3]}
                if [ "$result" = 'not ok' ]; then
                        sed -n "/^not ok $number /,/^\(not \)\?ok /{/^#/p}" "$1" | fail "$file: $name"
                elif [[ $name =~ ^(.*)\ #\ skip\ ?(.*)$ ]]; then
                        verdict skip "$file: ${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
                else
                        verdict ok "$file: $name"
                fi
        done < <(grep -E '^(ok|not ok) ' "$1")
        if [ $ran = 0 ]; then
                fail "$file: nothing ran" <"$1"
        # Bats failed without a failed test: not all tests ran.
        elif ! grep -q '^# exit 0$' "$1" && ! grep -q '^not ok' "$1"; then
                fail "$file did not run to its end" <"$1"
        fi
}

count_verdicts() { # VERDICT FILE...
        local verdict=$1
        shift
        cat "$@" | grep -c "^$verdict	"
}

totals() { # FILE...
        echo "$(count_verdicts ok "$@") passed, $(count_verdicts FAIL "$@") failed, $(count_verdicts skip "$@") skipped"
}

# Prints failures and skips, by name.
tell_verdicts() { # FILE
        sed -n 's/^FAIL\t/failed: /p; s/^skip\t\(.*\)\t\(.*\)/skipped: \1 (\2)/p' "$1"
}

# Prints the first and the last lines of standard input, without the passes of make check.
shorten() { # LINES
        awk -v max="$1" '
                !/^PASS: / { text[++n] = substr($0, 1, 300) }
                END {
                        for (i = 1; i <= n; i++) {
                                if (n <= max || i <= max / 2 || i > n - max / 2)
                                        print text[i]
                                else if (!cut++)
                                        print "[...]"
                        }
                }'
}

# Prints the output of failures, shortened more with each further failure, so that the end of a log has all of them.
tell_failures() { # GROUP...
        local group file files=() lines
        for group; do
                for file in "$out/$group.failures"/*; do
                        [ ! -e "$file" ] || files+=("$file")
                done
        done
        [ ${#files[@]} -gt 0 ] || return 0
        lines=$((110 / ${#files[@]}))
        lines=$((lines > 40 ? 40 : lines < 2 ? 2 : lines))
        for file in "${files[@]}"; do
                echo "---- $(head -n 1 "$file")"
                tail -n +2 "$file" | shorten $lines
        done
}
