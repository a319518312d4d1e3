#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A process in pid, IPC, mount and user namespaces of its own is watched from outside: by its number here,
# with the names of files that only it sees.
# usage: e2e-containers.sh [BUILD_DIR]
LW_BUILD=$(realpath "${1:-${LW_BUILD:?usage: $0 BUILD_DIR}}")
LW_SOURCE=${LW_SOURCE:-$(realpath "$(dirname "$0")/../..")}
export LW_BUILD LW_SOURCE
# shellcheck source=test/e2e/lib.sh
. "$LW_SOURCE/test/e2e/lib.sh"
snapshot=$build/snapshot/leakwatch-snapshot

# contain FLAGS...: the victim inside, under a path that exists only there; $pid is its number here
contain() {
	rm -f fifo.in out
	mkfifo fifo.in
	mkdir -p "$work/only-inside"
	unshare "$@" --fork --mount bash -c "
		mount -t tmpfs none '$work/only-inside' && cp '$victims/victim-live' '$work/only-inside/' || exit 1
		mount -t proc proc /proc 2>/dev/null
		exec env LD_PRELOAD='$library' LEAKWATCH_OPTIONS=report=never '$work/only-inside/victim-live' grow
	" <fifo.in >out 2>err &
	outer=$!
	exec 9>fifo.in
	local tries=1500
	until grep -q ready out; do
		[ $((tries -= 1)) -gt 0 ] && kill -0 $outer 2>/dev/null || return 1
		sleep 0.02
	done
	pid=$outer
	while pgrep -P "$pid" >/dev/null && [ "$(cat /proc/"$pid"/comm)" != victim-live ]; do pid=$(pgrep -P "$pid" | head -n 1); done
}
leave() {
	exec 9>&-
	wait $outer
	status=$?
}
is_seen() {
	cat seen errors
	grep -qF "$how" seen && grep -qE 'grow_here victim-live.c:[0-9]+$' seen
}
look() { # FLAGS...
	local what=$*
	if ! unshare "$@" --fork --mount true 2>/dev/null; then
		skip "$what" 'no such namespaces to be had here'
		return
	fi
	if ! contain "$@"; then
		skip "$what" "a container cannot be made here: $(head -n 1 err)"
		leave
		return
	fi
	timeout 10 "$snapshot" --interval=0.3 --count=3 "$pid" >seen 2>errors 9>&-
	ok "$what: live, with file and line" is_seen
	timeout 20 "$snapshot" --once "$pid" >seen 2>errors 9>&-
	ok "$what: the report" matches seen 'in grow_here .*victim-live.c:[0-9]+'
	timeout 60 "$snapshot" --leaks --json "$pid" >seen 2>errors 9>&-
	ok "$what: asked for what is lost, it looks" matches seen '"scan":\{"state":"done".*"confirmed":true'
	if [[ " $what " != *" --ipc "* ]]; then # another IPC namespace has segments of its own
		"$snapshot" --list >seen 2>errors 9>&-
		ok "$what: the list has its number here" matches seen "^ *$pid .*victim-live"
	fi
	leave
	ok "$what: it ends as it would alone" is_status 7
}

# the first process of a pid namespace can have no cleaner; what it leaves in an IPC namespace of its own
# goes with that, but in a shared one it has a region without a name, and no queue
how='[live]'
own=()
[ "$(id -u)" -eq 0 ] || own=(--user --map-root-user)
look "${own[@]}" --pid --ipc
look --user --map-root-user --pid --ipc
# (that the namespace is shared it knows of the machine's first one only)
[ "$(readlink /proc/self/ns/ipc)" != 'ipc:[4026531839]' ] || how='[read from its region'
look "${own[@]}" --pid
how='[live]'
look "${own[@]}" --ipc
done_testing
