#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where reports go, and what happens when they cannot go there; the program never notices.
. "$LW_SOURCE/test/e2e/lib.sh"

# run OPTIONS COMMAND...: like watch, with no other options
run() {
	local options=$1
	shift
	timeout 20 env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="$options" "$@" >out 2>err </dev/null
	status=$?
}
summary='^SUMMARY: LeakWatch: 30 byte\(s\) leaked in 3 allocation\(s\)\.$'

run '' "$victims/victim-leak" 3 10
exits 0
says "$summary"
says ' in lose .*victim-leak\.c:[0-9]+'
run '' "$victims/victim-leak" 0
silent
run report=always "$victims/victim-leak" 0
says 'SUMMARY: LeakWatch: 0 byte'
run report=never "$victims/victim-leak" 3 10
silent
run log_path=log.%p.%e.txt "$victims/victim-leak" 3 10 6
exits 6
silent
ok 'the report is in the file' matches "$(echo log.*.victim-leak.txt)" "$summary"

# both reports in one file would be neither
run json=both:log_path=both "$victims/victim-leak" 3 10 6
exits 6
says 'json and log_path are the same file: the text is in .*/both\.txt'
ok 'the JSON is whole' python3 -c 'import json; json.load(open("both"))'
ok 'the text is beside it' matches both.txt "$summary"

# a program that has closed 1 and 2 before its end, as coreutils do, waits for its reporter all the same
run log_path=cat.txt:report=always cat /dev/null
ok 'the report is whole when the program ends' matches cat.txt '^SUMMARY: LeakWatch: '
ok 'and has names' has_no_match cat.txt 'raw report'

# where nothing can be written: a message, the report on stderr, the same status
for option in json log_path; do
	run "$option=/nonexistent/file" "$victims/victim-leak" 3 10 6
	exits 6
	prints done
	says '/nonexistent/file'
	says "$summary"
done

# a symbolic link is never followed
mkdir -m 1777 common
echo precious >target
ln -s "$work/target" common/report
chmod 644 target
for option in json log_path; do
	run "$option=$work/common/report" "$victims/victim-leak" 3 10
	exits 0
	says 'common/report'
	says "$summary"
	ok 'the file behind the link is untouched' has_line target precious
done

# without its reporter the library writes module and offset itself
run programs=/nonexistent "$victims/victim-leak" 3 10 6
exits 6
prints done
says 'victim-leak\+0x[0-9a-f]+\)'
says '^30 byte\(s\) in 3 block\(s\) by malloc not freed:$'
says ' not freed, inside the C or C\+\+ library, perhaps its own:$'
says '^SUMMARY: LeakWatch: '
# without names libc's own memory cannot be told from a leak: no reason to fail a program
"$victims/victim-leak" 3 10 >/dev/null
own=$?
run programs=/nonexistent:exitcode=9 "$victims/victim-leak" 3 10
exits "$own"

# a suppression file, and one that is garbage
printf 'leak:lose\n' >quiet
run suppressions=quiet "$victims/victim-leak" 3 10
never_says 'SUMMARY: LeakWatch: [1-9]'
head -c 3000 /dev/urandom >noise
run suppressions=noise "$victims/victim-leak" 3 10 6
exits 6
says "$summary"
run suppressions=/nonexistent/rules "$victims/victim-leak" 3 10
says /nonexistent/rules
says "$summary"
done_testing
