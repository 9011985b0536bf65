# SPDX-License-Identifier: MIT
# The group `package` of tests/run: builds the Debian packages and inspects them; --long builds them twice.
# tests/e2e/package.bats tests them on a machine.
# shellcheck shell=bash disable=SC2154

package_names='sqmgr sqmgr-web sqmgr-postgresql sqmgr-sqlite'
made() { find "$out/package/one" -name "$1"; } # PATTERN

# Without the unit tests, which the group `unit` runs. tests/e2e/package.bats builds the same packages.
package_build() {
        rm -rf "$out"/package/{elsewhere,tree}
        DEB_BUILD_OPTIONS=nocheck "$top/contrib/package" "$out/package/one"
}

# Builds again from the source package, in another directory, later and with other settings.
package_again() {
        local file status=0 again=$out/package/elsewhere
        mkdir "$again"
        cp "$out"/package/one/*.orig.tar.xz "$again"
        dpkg-source -q -x "$(made '*.dsc')" "$again/another-name" || return
        (cd "$again/another-name" && umask 077 &&
                env -u SOURCE_DATE_EPOCH TZ=Pacific/Auckland LC_ALL=C HOME=/proc/nowhere DEB_BUILD_OPTIONS='nocheck parallel=3' \
                        dpkg-buildpackage -us -uc >"$again/log" 2>&1) || { tail -n 40 "$again/log" && return 1; }
        for file in "$out"/package/one/*.{deb,dsc,tar.xz}; do
                cmp "$file" "$again/${file##*/}" || status=1
        done
        [ "$(find "$again" -name '*.deb' | wc -l)" = 8 ] || { echo 'there are not four packages, and what debuggers need of each' && status=1; }
        return $status
}

package_versions() {
        local version
        version=$(sed -n 's/^AC_INIT(\[sqmgr\], \[\(.*\)\])$/\1/p' "$top/configure.ac")
        [ "$(dpkg-parsechangelog -l "$top/debian/changelog" -S Version)" = "$version-1" ] ||
                { echo "debian/changelog: must begin with version $version-1" && return 1; }
        grep -qE "^## $version( |$)" "$top/NEWS.md" || { echo "NEWS.md: has nothing of $version" && return 1; }
}

# Both tags depend on the version of lintian: Debian 13's has a later policy, Debian 12's wants a script for other
# inits. The third is for the entry points of the shim for Celery, whose name is fixed: lintian takes them for a text to
# be read.
package_lintian() {
        local tag suppressed=
        for tag in out-of-date-standards-version package-supports-alternative-init-but-no-init.d-script \
                package-contains-documentation-outside-usr-share-doc; do
                ! lintian-explain-tags $tag >/dev/null 2>&1 || suppressed+=${suppressed:+,}$tag
        done
        lintian --allow-root --info --display-info --pedantic --fail-on error,warning,info,pedantic,override --tag-display-limit 0 \
                --suppress-tags "$suppressed" "$(made '*.changes')"
}

package_blhc() {
        local log flag
        log=$(made '*.build')
        blhc --bindnow "$log" || return
        # Flags that blhc does not check in each Debian.
        for flag in -fstack-clash-protection $([ "$(dpkg --print-architecture)" != amd64 ] || echo -fcf-protection); do
                ! grep -E '^(libtool: compile: +)?gcc .* -c ' "$log" | grep -v -e " $flag " || { echo "are without $flag" && return 1; }
        done
        [ "$(grep -cE '^gcc .* -c ' "$log")" -gt 100 ] || { echo "$log: what it compiles is not seen" && return 1; }
}

# Prints the hardening that a program lacks.
soft_spots() { # PROGRAM
        local parts symbols code
        parts=$(readelf -hldW "$1") symbols=$(readelf --dyn-syms -W "$1") code=$(objdump -d "$1")
        grep -qE '^ *Type: +DYN ' <<<"$parts" && grep -q 'Flags:.* PIE' <<<"$parts" || echo 'not to be put anywhere (PIE)'
        grep -q 'Flags:.* NOW' <<<"$parts" && grep -q GNU_RELRO <<<"$parts" || echo 'tables that stay writable (RELRO, BIND_NOW)'
        grep -q 'GNU_STACK.* RW ' <<<"$parts" || echo 'a stack that can be executed'
        grep -q __stack_chk_fail <<<"$symbols" || echo 'no guard of the stack'
        grep -q '__[a-z]*_chk@' <<<"$symbols" || echo 'no checks of bounds (FORTIFY_SOURCE)'
        if [ "$(dpkg --print-architecture)" = amd64 ]; then
                # shellcheck disable=SC2016
                # With the guard, no step down the stack is larger than a page. A small program takes no larger one anyway.
                ! grep -qE 'sub +\$0x([0-9a-f]{5,8}|[2-9a-f][0-9a-f]{3}|1([1-9a-f][0-9a-f]{2}|0[1-9a-f][0-9a-f]|00[1-9a-f])),%rsp' <<<"$code" ||
                        echo 'no guard against a stack that clashes'
                [ "$(grep -c endbr64 <<<"$code")" -gt 5 ] || echo 'no guard of where it jumps to (CET)'
        fi
}

package_hardening() {
        local name program spots least=5 status=0
        echo 'int main(void) { volatile char bytes[9000]; return bytes[0] = 0; }' |
                gcc -x c -O0 -fno-stack-protector -fno-stack-clash-protection -fcf-protection=none -no-pie -Wl,-z,lazy,-z,norelro,-z,execstack -o "$out/package/soft" - 2>/dev/null
        [ "$(dpkg --print-architecture)" != amd64 ] || least=7
        [ "$(soft_spots "$out/package/soft" | wc -l)" -ge "$least" ] || { echo 'nothing is found in a bad example' && return 1; }
        for name in $package_names; do
                dpkg-deb -x "$(made "${name}_*.deb")" "$out/package/tree"
        done
        for program in "$out"/package/tree/usr/{sbin/sqmgr,sbin/sqmgr-web,bin/sqmgrctl,libexec/sqmgr/sqmgr-postgresql,libexec/sqmgr/sqmgr-sqlite,libexec/sqmgr/sqmgr-proc-reader,libexec/sqmgr/sqmgr-start,libexec/sqmgr/sqmgr-journal,libexec/sqmgr/sqmgr-init}; do
                spots=$(soft_spots "$program")
                [ -z "$spots" ] || { echo "$program: $spots" && status=1; }
        done
        return $status
}

# Debian 12 has the units below /lib, which is /usr/lib. RENEW_GOLDEN=1 writes the list again: review it.
package_contents() {
        local name deb list=$top/tests/golden/package-contents
        for name in $package_names; do
                deb=$(made "${name}_*.deb")
                echo "package $name"
                dpkg-deb -c "$deb" | awk '$6 !~ "/$" { sub("^\\./lib/", "./usr/lib/", $6); print $1, $2, $6 }' | LC_ALL=C sort -k 3
                dpkg-deb -I "$deb" conffiles 2>/dev/null | sed 's/^/conffile /'
        done >"$out/package/contents"
        [ -z "${RENEW_GOLDEN-}" ] || cp "$out/package/contents" "$list"
        diff "$list" "$out/package/contents"
}

# No package contains the placeholder address, and a text that shows an address says what to do without one.
package_identity() {
        local name file status=0
        for name in $package_names; do
                ! dpkg-deb -f "$(made "${name}_*.deb")" | grep -F .invalid || status=1
        done
        ! find "$out/package/tree" -type f -print0 | xargs -0 zgrep -laF .invalid || status=1
        for file in "$out"/package/tree/usr/share/man/man*/sqmgr*.gz; do
                zgrep -q '^Report faults to ' "$file" || { echo "$file: does not say where to report" && status=1; }
        done
        return $status
}

# An upgrade must stop nothing, whatever debhelper adds.
package_scripts() {
        local deb script status=0
        (cd "$top/debian" && shellcheck sqmgr.{preinst,postinst,prerm,postrm} sqmgr-web.{postinst,prerm,postrm} tests/{common,service,without-systemd}) || status=1
        deb=$(made 'sqmgr_*.deb')
        for script in preinst postinst prerm postrm; do
                dpkg-deb -I "$deb" $script >"$out/package/$script"
                sh -n "$out/package/$script" || status=1
        done
        ! grep -nE 'invoke.* (re)?start|systemctl.* (re)?start' "$out"/package/{preinst,postinst,prerm,postrm} || status=1
        [ "$(grep -c 'invoke.* stop' "$out/package/prerm")" = 2 ] || { echo 'prerm: more stops, or fewer, than are in sqmgr.prerm' && status=1; }
        ! grep -n 'invoke.* stop' "$out"/package/post{inst,rm} || status=1
        return $status
}

run_package() {
        if [ ! -e "$top/debian/control" ]; then
                verdict skip 'the Debian packages' 'a release has no debian/'
                return
        fi
        verdict_of 'the Debian packages are made' package_build
        [ "$(count_verdicts FAIL "$out/package.verdicts")" = 0 ] || return
        verdict_of 'lintian --pedantic' package_lintian
        verdict_of blhc package_blhc
        verdict_of hardening package_hardening
        verdict_of "the packages' contents" package_contents
        verdict_of "the packages' addresses" package_identity
        verdict_of "the packages' scripts" package_scripts
        verdict_of "the packages' version" package_versions
        [ -z "${SQMGR_LONG-}" ] || verdict_of 'the same packages again' package_again
}
