#!/bin/sh
# SPDX-License-Identifier: MIT
# The library shows the world what test/exports.txt lists and nothing else, and needs libc alone.
# usage: exports.sh LIBRARY EXPORTS.TXT; speaks TAP. A name after ? may be missing (newer libc only).
set -u
LC_ALL=C
export LC_ALL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort >"$work/there"
sed -n 's/^?//p' "$2" | sort >"$work/optional"
grep -v '^[#?]' "$2" | sort >"$work/wanted"
echo 1..3
if comm -23 "$work/there" "$work/optional" | diff "$work/wanted" - >"$work/difference"; then
	echo 'ok 1 - the exported names are those of exports.txt'
else
	echo 'not ok 1 - the exported names are those of exports.txt'
	sed 's/^/# /' "$work/difference"
fi
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v -e '^libc\.so' -e '^ld-linux')
[ -z "$needed" ] && echo 'ok 2 - it needs libc alone' || echo "not ok 2 - it needs libc alone, but: $needed"
flags=$(readelf -d "$1" | grep -E 'FLAGS')
case $flags in
*NOW*NODELETE* | *NODELETE*NOW*) echo 'ok 3 - bound at load time, never unloaded' ;;
*) echo "not ok 3 - bound at load time, never unloaded: $flags" ;;
esac
