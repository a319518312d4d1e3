#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where LeakWatch cannot or must not watch, the program runs as it would, and one line says why.
. "$LW_SOURCE/test/e2e/lib.sh"

launch() {
	rm -rf json
	mkdir json
	"$launcher" "--json=$work/json/%p.json" "$@" >out 2>err </dev/null
	status=$?
}
one_line() { ok 'one line on stderr' eval 'cat err; [ "$(wc -l <err)" -eq 1 ]'; }

watch "$victims/victim-static" 2 10 4
exits 4
prints done
silent
launch "$victims/victim-static" 2 10 4
exits 4
says 'linked statically'
one_line

if [ -x "$victims/victim-asan" ]; then
	export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0
	watch "$victims/victim-asan" 2 10 4
	exits 4
	prints done
	says '^leakwatch: .*AddressSanitizer'
	one_line
	unset ASAN_OPTIONS
else
	skip 'a program with AddressSanitizer' "the compiler has no runtime for it"
fi

if [ "$(id -u)" -eq 0 ]; then
	cp "$victims/victim-leak" setuid
	chown 65534 setuid
	chmod 4755 setuid
	# shellcheck disable=SC2016
	watch ./setuid 2 10 4
	exits 4
	prints done
	has_reports 0
else
	skip 'a setuid program' 'not root'
fi

# too little address space for the tables
(
	ulimit -v 60000
	exec env LD_PRELOAD="$library" "$victims/victim-leak" 2 10 4 >out 2>err </dev/null
)
status=$?
exits 4
prints done
ok 'at most one line, or a report' eval 'cat err; [ "$(grep -c "^leakwatch:" err)" -le 1 ]'

echo 'no program' >text
launch ./text
exits 126
launch ./absent
exits 127
done_testing
