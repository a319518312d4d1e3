#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Deaths of all kinds, mixed: each is reported, and 5 s after the last no object and no process of ours is left.
# usage: deaths.sh [BUILD_DIR [NUMBER]]
. "$(dirname "$0")/../e2e/cleaner-lib.sh"
number=${2:-${LW_DEATHS:-160}}
mkdir logs

# whoever is in this IPC namespace, but the test itself: cleaners, reporters, helpers that outlived their process
strangers() {
	local process name own
	own=$(readlink /proc/self/ns/ipc)
	for process in /proc/[0-9]*; do
		read -r name <"$process/comm" && [ "$(readlink "$process/ns/ipc")" = "$own" ] || continue
		case $name in leakwatch-* | victim-*) echo "$name ${process#/proc/}" ;; esac
	done 2>/dev/null
	return 0
}
is_over() { strangers; [ -z "$(strangers)" ] && is_clean; }

python3 "$LW_SOURCE/test/stress/deaths.py" "$library" "$victims/victim-die" "$work/logs" "$number" >seen 2>&1
good=$?
ok "$number deaths, each with its status and its report" eval 'cat seen; [ $good -eq 0 ]'
echo "# $(tail -n 1 seen)"
took_ms=
if [ -n "${LW_OWN_IPC:-}" ]; then
	ok '5 s later nothing is left' within 5 is_over
else
	nothing_left '5 s later nothing is left'
fi
echo "# after the last report ${took_ms:-?} ms"
done_testing
