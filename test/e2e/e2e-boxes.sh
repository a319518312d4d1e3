# SPDX-License-Identifier: MIT
# A region in a file outlives its process and its namespaces; a launcher that stays reports for both.
if [ -z "${LW_OWN_IPC:-}" ] && unshare --ipc true 2>/dev/null; then
	LW_OWN_IPC=1 exec unshare --ipc bash "$0" # no cleaner of another build takes part
fi
. "$LW_SOURCE/test/e2e/lib.sh"

snapshot=$build/snapshot/leakwatch-snapshot
leak=$victims/victim-leak

# has FILE TEXT: the text stands in the file
has() { grep -qF -- "$2" "$1" || { cat "$1"; return 1; }; }
# says TEXT COMMAND...: the command prints the text
says() {
	local want=$1
	shift
	"$@" >said 2>&1
	has said "$want"
}
is_status() { [ "$status" -eq "$1" ] || { echo "status $status"; return 1; }; }

# a program that leaks and waits to be killed
cat >waits.c <<'C'
#include <stdlib.h>
#include <unistd.h>
int main(void) { for (int i = 0; i < 7; i++) { void *p = malloc(11); __asm__ volatile("" : : "r"(p)); } if (write(1, "x", 1) == 1) pause(); return 3; }
C
if ! cc -g -o waits waits.c 2>/dev/null; then
	skip 'boxes' 'no compiler'
	done_testing
fi

# killed COMMAND...: starts it, waits for its x, kills it (or what $victim_of says) with 9
# until the first byte has come
wait_for_out() { for _ in $(seq 600); do [ ! -s out ] || break; sleep 0.05; done; }
start() {
	mkfifo pipe
	"$@" >pipe 2>err </dev/null &
	started=$!
	read -r -n 1 _ <pipe
	rm pipe
}

start "$launcher" --black_box="$work/box" ./waits
ok 'who asks for the process is told of the file' says "leakwatch-snapshot $work/box" "$snapshot" --once "$started"
kill -9 "$started"
wait "$started" 2>/dev/null
ok 'a black box tells what a killed process held' says '77 bytes in 7 blocks' "$snapshot" box
ok 'and that it was killed' says 'killed' "$snapshot" box
ok 'the file is its owner'"'"'s alone' test "$(stat -c %a box)" = 600
for bytes in 0 1 100 4096 20000 100000; do
	head -c "$bytes" box >cut
	"$snapshot" cut >said 2>&1
	status=$?
	ok "cut to $bytes bytes it is refused, or said to be damaged" test "$status" -lt 126
done
for at in 8 12 16 64 72 80 100 140 200; do
	cp box bent
	printf '\377\377\377\377' | dd of=bent bs=1 seek="$at" conv=notrunc 2>/dev/null
	timeout 10 "$snapshot" bent >said 2>&1
	status=$?
	ok "bent at byte $at: no crash, no hang" test "$status" -lt 124
done

start "$launcher" --black_box="$work/none/box" ./waits
ok 'no such folder: it is said' has err "no black_box file $work/none/box (No such file or directory): shared memory is used"
ok 'and shared memory serves' says '77 bytes in 7 blocks' "$snapshot" --once "$started"
kill -9 "$started"
wait "$started" 2>/dev/null

# the launcher as parent
"$launcher" --stay "$leak" 3 40 5 >out 2>err
status=$?
ok 'the status is the program'"'"'s' is_status "$("$leak" 3 40 5 >/dev/null; echo $?)"
ok 'and so is its report' has err 'SUMMARY: LeakWatch: 120 byte(s) leaked in 3 allocation(s).'
start "$launcher" ./waits # for its sake there is a cleaner, which must not be faster
other=$started
stayed() {
	start "$launcher" --stay ./waits
	kill -TERM "$started"
	wait "$started" 2>/dev/null
	status=$?
	is_status 143 && has err '77 bytes in 7 blocks'
}
five_stayed() { for _ in 1 2 3 4 5; do stayed || return; done; }
ok 'a signal is passed on, its status comes back, and a killed program is reported on a stderr that is a file' five_stayed
kill -9 "$other"
wait "$other" 2>/dev/null

if unshare -fpi --kill-child --mount-proc true 2>/dev/null; then
	unshare -fpi --kill-child --mount-proc "$launcher" --stay \
		sh -c 'mkfifo begun; ./waits >begun & p=$!; head -c 1 begun; kill -9 $p; wait $p; echo " status $?"' >out 2>err
	ok 'process 1 of a container: the shell sees its child killed' has out 'status 137'
	unshare -fpi --kill-child --mount-proc "$launcher" --stay \
		sh -c 'exec ./waits' >out 2>err &
	started=$!
	wait_for_out
	shell=$(pgrep -P "$started")
	kill -9 "$(pgrep -P "$shell" -x waits)"
	wait "$started"
	status=$?
	ok 'a killed program of a container is reported' has err '77 bytes in 7 blocks'
	ok 'with the status a shell gives it' is_status 137
	unshare -fpi --kill-child --mount-proc "$launcher" --black_box="$work/inside" ./waits >out 2>err &
	started=$!
	wait_for_out
	kill -9 "$(pgrep -P "$started")"
	wait "$started" 2>/dev/null
	ok 'the black box of a container that is gone' says '77 bytes in 7 blocks' "$snapshot" inside
else
	skip 'containers' 'unshare of pid and ipc namespaces is not allowed here'
fi
done_testing
