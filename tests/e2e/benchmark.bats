#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/benchmark/page, on the kept results of a real run: a plot for each table, no address of another server, and a
# clear refusal of damaged files. docs/performance.md shows the figures of that run. With SQMGR_LONG=1 in Chromium, too.
# seconds: 10
# promises: none
load helpers

page=$top/contrib/benchmark/page
results=$top/contrib/bench-results/2026-11-27-benchmark.json

count() { grep -o "$1" "$2" | wc -l; } # TEXT FILE

# A table is what has the same question and unit.
tables_of() { jq '[.results[] | [.row, .what, .unit]] | unique | length' "$1"; } # RESULTS

refuses() { # JQ-FILTER MESSAGE
        jq "$1" "$results" >damaged.json
        refuses_file damaged.json "$2"
}
refuses_file() { # FILE MESSAGE
        run -1 --separate-stderr "$page" "$1"
        [ -z "$output" ]
        # shellcheck disable=SC2154
        [ "$stderr" = "contrib/benchmark/page: $1: $2" ]
}

@test "the page has a table and a plot for each question of the kept results" {
        "$page" "$results" >page.html
        n=$(tables_of "$results")
        [ "$n" -gt 10 ]
        [ "$(count '<table class="figures">' page.html)" = "$n" ]
        [ "$(count '<div class="plot"' page.html)" = "$n" ]
        sed -n 's/^<script type="application\/json" id="groups">\(.*\)<\/script>$/\1/p' page.html >groups.json
        [ "$(jq length groups.json)" = "$n" ]
        [ "$(jq '[.[].lines | length] | add' groups.json)" = "$(jq '.results | length' "$results")" ]
        for heading in 'Settings of each supervisor' 'Versions' 'Load of the machine' 'What is unfair, and what is not measured'; do
                grep -qF "<h2>$heading</h2>" page.html
        done
        grep -qF 'hold for 2 cores' page.html
        for version in $(jq -r '.versions[]' "$results"); do grep -qF "<td>$version</td>" page.html; done
}

@test "the page loads nothing from other servers, and shows foreign text as text" {
        jq '.results[0].who = "</script><script>alert(1)</script>" | .notes[0] = "row deploy: <img src=x>"' "$results" >hostile.json
        "$page" hostile.json >page.html
        run -1 grep -E '<script>alert|<img|<link|src="|@import|url\(' page.html
        grep -qF '&lt;/script&gt;' page.html
}

@test "damaged results are refused, with the place of the damage" {
        head -c 3000 "$results" >cut.json
        refuses_file cut.json 'is not JSON'
        : >empty.json
        refuses_file empty.json 'is not JSON'
        printf '\xff{' >bytes.json
        refuses_file bytes.json 'is not JSON'
        truncate -s 11M long.json
        refuses_file long.json 'has more than 10485760 bytes'
        refuses '[.]' 'must be a JSON object'
        refuses '.format = "sqmgr-bench 1"' "format: must be 'sqmgr-bench 2'; run contrib/benchmark/run again"
        refuses 'del(.results)' 'results: must be a list'
        refuses '.results = []' 'results: must not be empty'
        refuses '.results[3] = 7' 'results[3]: must be an object'
        refuses '.results[3].median = "1"' 'results[3].median: must be a number'
        refuses '.results[3].median = 1e300' 'results[3]: the median must be between min and max'
        refuses '.results[3].min = .results[3].max + 1' 'results[3]: the median must be between min and max'
        refuses '.results[3].count = 0' 'results[3].count: must be a count of at least 1'
        refuses '.results[3].ratio = {}' 'results[3].ratio: must be a number'
        refuses 'del(.results[3].who)' 'results[3].who: must be a text'
        refuses '.settings[0].run = 1' 'settings[0].run: must be true or false'
        refuses '.rows[0].seconds = -1' 'rows[0].seconds: must be a number of at least 0'
        refuses '.cores = 0' 'cores: must be a count of at least 1'
        refuses '.versions = []' 'versions: must be texts by name'
        refuses '.notes = [1]' 'notes: must be a list of texts'
        run -1 "$page" missing.json
        [[ $output == 'contrib/benchmark/page: No such file or directory'*missing.json ]]
        run -2 "$page"
}

@test "docs/performance.md shows the deploys of the kept results" {
        sed -n '/^<!-- benchmark -->$/,/^<!-- end of benchmark -->$/p' "$top/docs/performance.md" | grep '^|' >shown
        diff shown <("$page" --summary "$results" | grep '^|')
}

@test "a Chromium draws each plot" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it starts a Chromium'
        "$page" "$results" >page.html
        mkdir home
        HOME=$folder/home timeout -k 5 120 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$folder/home/profile" \
                --dump-dom "file://$folder/page.html" >drawn.html 2>chromium.log
        [ "$(count '<canvas' drawn.html)" = "$(tables_of "$results")" ]
}
