# SPDX-License-Identifier: MIT
# cleaner-lib.sh - the words of the tests of the cleaner. usage: e2e-cleaner-X.sh [BUILD_DIR]
#
# Each runs in an IPC namespace of its own where the system lets it, so that it sees no cleaner, segment
# or semaphore but its own; where not, those of this user that were there before are left out of account.
# shellcheck shell=bash disable=SC2034 # variables are for the tests

LW_BUILD=$(realpath "${1:-${LW_BUILD:?usage: $0 BUILD_DIR}}")
LW_SOURCE=${LW_SOURCE:-$(realpath "$(dirname "$0")/../..")}
export LW_BUILD LW_SOURCE
if [ -z "${LW_OWN_IPC:-}" ]; then
	own_ipc=(unshare --ipc)
	[ "$(id -u)" -eq 0 ] || own_ipc+=(--map-root-user)
	if "${own_ipc[@]}" true 2>/dev/null; then
		LW_OWN_IPC=1 exec "${own_ipc[@]}" bash "$0" "$@"
	fi
fi
. "$LW_SOURCE/test/e2e/lib.sh"
cleaner=$build/cleaner/leakwatch-cleaner
mkdir json

# within SECONDS COMMAND...: nothing tells of the end of a stranger's object, so it is looked for. The
# seconds are those of a quiet machine: a busy one gets 30 more. $took_ms is how long it was in truth.
within() {
	local began=${EPOCHREALTIME/./} end=$((SECONDS + $1 + 30))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { "$@"; return; }
		sleep 0.02
	done
	took_ms=$(((${EPOCHREALTIME/./} - began) / 1000))
}

# the cleaners of this IPC namespace
cleaners() {
	local process name own
	own=$(readlink /proc/self/ns/ipc)
	for process in /proc/[0-9]*; do
		read -r name <"$process/comm" && [ "$name" = leakwatch-clean ] &&
			[ "$(readlink "$process/ns/ipc")" = "$own" ] && echo "${process#/proc/}"
	done 2>/dev/null
	return 0
}
nr_cleaners() { cleaners | wc -l; }
# has a cleaner found this process yet? One that was gone by then has no signal to be told of
is_held() {
	local one
	for one in $(cleaners); do grep -qsx "Pid:[[:space:]]*$1" "/proc/$one"/fdinfo/* && return; done
	return 1
}
has_cleaners() { echo "cleaners: $(cleaners | tr '\n' ' ')"; [ "$(nr_cleaners)" -eq "$1" ]; }

objects() {
	local kind
	for kind in msg shm sem; do
		awk -v kind=$kind -v uid="$(id -u)" 'NR > 1 { print kind, $1, $2 }' /proc/sysvipc/$kind
	done | sort
}
objects >objects.before
is_clean() {
	objects | comm -13 objects.before -
	echo "cleaners: $(cleaners | tr '\n' ' ')"
	[ -z "$(objects | comm -13 objects.before -)" ] && [ "$(nr_cleaners)" -eq 0 ]
}
# shellcheck disable=SC2120 # the name may be left out
nothing_left() { ok "${1:-nothing is left}" within 5 is_clean; }

# start COMMAND...: in the background, $pid, its input is held open on descriptor 9 until `let_go`
start() {
	rm -f fifo.in out
	mkfifo fifo.in
	env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="json=$work/json/%p.json${OPTIONS:+:$OPTIONS}" \
		"$@" <fifo.in >out 2>err &
	pid=$!
	exec 9>fifo.in
	OPTIONS=
	within 5 grep -q ready out
}
let_go() { exec 9>&-; }
# The shell says "Killed" when it next waits or starts something: that is not what is tested.
exec 3>&2
reap() {
	exec 2>/dev/null
	wait "$pid"
	status=$?
	exec 2>&3
}

is_reported() { [ -s "json/$1.json" ]; }
has() { # PID PATTERN: in its report
	grep -oE '"(state|signal|live_bytes|live_blocks|total_frees)":"?[^,"}]*' "json/$1.json"
	grep -q -- "$2" "json/$1.json"
}
# The blocks of `lose`, and no others of the program.
has_losses() { python3 "$LW_SOURCE/test/e2e/judge.py" json leak 192 3 lose; }
