#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Rules about the source that no compiler checks. usage: layering.sh SOURCE-FOLDER; speaks TAP.
# Includes in preload/ point to the same room or to one further up this list; other programs include
# from preload/ only share/ and what share/ itself stands on; every header compiles alone; nothing is
# left open in the code, and no file is longer than a person reads in one go.
set -u
cd "$1" || exit 1
nr=0
bad=0

rooms=(leakwatch.h base share unwind record live hooks init.c)

rank() { # FILE below preload/
	local room=${1%%/*} i
	for i in "${!rooms[@]}"; do
		[ "${rooms[i]}" = "$room" ] && echo "$i" && return
	done
	echo 99
}

ok() { # NAME PROBLEMS
	nr=$((nr + 1))
	if [ -z "$2" ]; then
		echo "ok $nr - $1"
	else
		bad=1
		echo "not ok $nr - $1"
		echo "# ${2//$'\n'/$'\n'# }"
	fi
}

includes() { # "file included", of the project's own headers, for the files named on stdin
	xargs -r grep -HnoE '^#include "[^"]+"' | sed -E 's/^([^:]+):[0-9]+:#include "(.*)"/\1 \2/'
}

upward=$(find preload \( -mindepth 2 -name '*.[ch]' -o -name init.c \) -not -path '*/launch/*' | includes | while read -r file included; do
	case $included in
	preload/*) [ "$(rank "${included#preload/}")" -le "$(rank "${file#preload/}")" ] || echo "$file includes $included" ;;
	*) echo "$file includes $included" ;;
	esac
done)
ok 'in preload/ nothing includes a room below its own' "$upward"

outside=$(find snapshot cleaner preload/launch* -name '*.[ch]' | includes | while read -r file included; do
	case $included in
	preload/share/* | preload/base/base.h) ;;
	preload/launch/*) [[ $file == preload/launch* ]] || echo "$file includes $included" ;;
	preload/*) echo "$file includes $included" ;;
	snapshot/*) [[ $file == snapshot/* ]] || echo "$file includes $included" ;;
	cleaner/*) [[ $file == cleaner/* ]] || echo "$file includes $included" ;;
	*) echo "$file includes $included" ;;
	esac
done)
ok 'other programs include only share/ from preload/' "$outside"

first=$(find preload snapshot cleaner -name '*.c' | while read -r file; do
	[ -e "${file%.c}.h" ] || continue
	[ "$(echo "$file" | includes | head -n 1)" = "$file ${file%.c}.h" ] || echo "$file does not include its header first"
done)
ok 'every source includes its own header first' "$first"

alone=$(find preload snapshot cleaner -name '*.h' | while read -r header; do
	${CC:-cc} -std=gnu17 -D_GNU_SOURCE -I. -fsyntax-only -x c "$header" 2>&1 | grep -m 1 error
done)
ok 'every header compiles alone' "$alone"

sources=$(find preload snapshot cleaner test -name '*.[ch]' -o -name '*.cc' -o -name '*.sh' -o -name '*.py' -o -name '*.pl' \
	-o -name '*.js' -o -name meson.build)
# shellcheck disable=SC2086
ok 'every file says its licence in its first lines' "$(for file in $sources; do
	head -n 2 "$file" | grep -q 'SPDX-License-Identifier: MIT' || echo "$file"
done)"
open='\b(TO''DO|FIX''ME|XX''X|HA''CK)\b'
# shellcheck disable=SC2086
ok 'nothing is left open in the code' "$(grep -nE "$open" $sources | grep -v '# *SKIP')"
ok 'no path of the machine it was written on' "$(grep -nE '/home/[a-z]|/wo''rk/' $sources)"
ok 'no source file is longer than 600 lines' "$(find preload snapshot cleaner -name '*.[ch]' -exec wc -l {} + |
	awk '$2 != "total" && $1 > 600 { print $2 " has " $1 " lines" }')"
echo "1..$nr"
exit $bad
