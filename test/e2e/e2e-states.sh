# SPDX-License-Identifier: MIT
# However a process ends, every view of what it left behind says how: reports, columns and JSON, of its region, of its
# black box, of a saved moment and of a saved watch, and the list. One that lives is said to.
. "$LW_SOURCE/test/e2e/cleaner-lib.sh"

snapshot=$build/snapshot/leakwatch-snapshot

cat >ends.c <<'C'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char byte;
	for (int i = 0; i < 7; i++) { void *p = malloc(11); __asm__ volatile("" : : "r"(p)); }
	(void)argc;
	if (write(1, "x", 1) != 1 || read(0, &byte, 1) < 0) return 9;
	if (!strcmp(argv[1], "killed")) raise(SIGKILL);
	if (!strcmp(argv[1], "_exit")) _exit(3);
	if (!strcmp(argv[1], "quick_exit")) quick_exit(3);
	if (!strcmp(argv[1], "exec")) execl("/bin/sleep", "sleep", "1", (char *)0);
	return 3;
}
C
if ! cc -g -o ends ends.c 2>/dev/null; then
	skip 'states' 'no compiler'
	done_testing
fi

# begin OPTIONS HOW: starts it; it ends as HOW when it is told to
begin() {
	rm -f in pipe
	mkfifo in pipe
	LD_PRELOAD="$library" LEAKWATCH_OPTIONS="$1" ./ends "$2" <in >pipe 2>/dev/null &
	pid=$!
	exec 8>in
	read -r -n 1 _ <pipe
}
let_end() {
	echo >&8
	exec 8>&-
	wait "$pid" 2>/dev/null
}

watch_its_end() { # into watch.lw
	local viewer
	rm -f columns
	"$snapshot" --interval=0.1 --save=watch.lw "$pid" >columns 2>&1 8>&- &
	viewer=$!
	within 10 test -s columns
	let_end
	wait "$viewer"
}

# state_is WANTED COMMAND...: the last object of JSON it prints has that state
state_is() {
	local wanted=$1
	shift
	timeout 20 "$@" 2>errors | grep -o '^{"leakwatch".*"state":"[a-z_]*"\|^ *"state": *"[a-z_]*"' | tail -n 1 >said
	cat said errors
	grep -q "\"state\": *\"$wanted\"" said
}
shows() { # TEXT COMMAND...
	local text=$1
	shift
	timeout 20 "$@" >said 2>&1
	cat said
	grep -qE -- "$text" said
}

# all_say WHAT STATE COLUMNS REPORT FILE-OR-PID
all_say() {
	ok "$1: a report in JSON says $2" state_is "$2" "$snapshot" --once --json "$5"
	ok "$1: an object a tick, too" state_is "$2" "$snapshot" --count=100 --interval=0.1 --json "$5"
	ok "$1: columns say $3" shows "^leakwatch .*$3" "$snapshot" --count=100 --interval=0.1 "$5"
	ok "$1: a report says $4" shows "^  ran .*, $4$" "$snapshot" --once "$5"
}

each_way() { # HOW COLUMNS REPORT
	begin "black_box=$work/box:report=never" "$1"
	ok "$1: its box says live before" state_is live "$snapshot" --once --json box
	let_end
	all_say "$1, the box" "$1" "$2" "$3" box
	rm box

	begin report=never "$1"
	"$snapshot" --save=moment.lw "$pid"
	watch_its_end
	ok "$1: what was saved before says live" state_is live "$snapshot" --once --json moment.lw
	all_say "$1, the watch" "$1" "$2" "$3" watch.lw
}
each_way exit exited 'ended by exit'
each_way _exit 'ended by _exit, status 3' 'ended by _exit with status 3'
each_way quick_exit 'ended by quick_exit' 'ended by quick_exit'
each_way killed 'was killed' killed

# another program in its place; the box and the region are that one's, then
begin report=never exec
watch_its_end
all_say 'exec, the watch' exec 'has started another program' 'ended by exec' watch.lw

# nobody has taken the region of a killed process away yet
begin report=never killed
if [ -n "${LW_OWN_IPC:-}" ] && within 5 has_cleaners 1; then
	cleaners | xargs -r kill -STOP
	ok 'a living one has no end in the list' shows "^ *$pid .*/ends$" "$snapshot" --list
	let_end
	ok 'the list says that it was killed' shows "^ *$pid .*\(was killed\)" "$snapshot" --list
	all_say 'the region left behind' killed 'was killed' killed "$pid"
	"$snapshot" --save=left.lw "$pid"
	all_say 'what was saved of it' killed 'was killed' killed left.lw
	cleaners | xargs -r kill -CONT
else
	let_end
	skip 'a region left behind' 'no IPC namespace of its own'
fi
done_testing
