# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
# The pure part of the source, which reads no clock and does no I/O. This is the only list of it, for check-core-pure,
# check-layers and check-mutants.

# Folders of src/ in which all files are pure. A file of another folder is pure if its name is NAME_rules.c.
pure_folders='wire settings model advice observe decide continuity'

# Prints the pure files of the core with the suffix SUFFIX, c or o, relative to ROOT. Mutants may change them.
pure_core_files() { # ROOT SUFFIX
        (
                cd "$1" || return 1
                for folder in $pure_folders; do
                        compgen -G "src/$folder/*.$2"
                done
                find src -name "*_rules.$2"
                compgen -G "src/frameworks/decode*.$2"
                compgen -G "src/frameworks/*/format.$2"
                compgen -G "src/frameworks/database_view.$2"
                compgen -G "src/frameworks/heartbeat_check.$2"
                compgen -G "src/servers/answer.$2"
                compgen -G "src/frameworks/*/*_database.$2"
                compgen -G "src/frameworks/*/*_postgresql.$2"
                compgen -G "src/frameworks/*/*_sqlite.$2"
        ) | LC_ALL=C sort -u
}
