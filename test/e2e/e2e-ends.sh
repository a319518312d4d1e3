#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# However a process ends by itself, the report comes after all else has run, and the status stays.
. "$LW_SOURCE/test/e2e/lib.sh"

for how in return exit thread; do
	watch "$victims/victim-end" $how
	exits 5
	leaks 100 4 lose
	has_field state exit
done
for how in _exit quick_exit; do
	watch "$victims/victim-end" $how
	exits 5
	leaks 100 4 lose
	has_field state $how
done
watch "$victims/victim-end" _Exit
exits 5
leaks 100 4 lose
for how in main last; do
	watch "$victims/victim-end" $how
	exits 0
	leaks 100 4 lose
	has_field state exit
done

watch "$victims/victim-libdtor"
exits 0
prints 'pushed 25'
clean state_open
clean state_push
leaks 17 1 at_exit_too

OPTIONS=exitcode=77 watch "$victims/victim-end" exit
exits 77
OPTIONS=exitcode=77 watch "$victims/victim-end" _exit
exits 77
OPTIONS=exitcode=77 watch "$victims/victim-leak" 0
exits 0

# a signal handler that interrupted malloc leaves by _exit: it waits for nobody
for ((round = 0; round < 5; round++)); do
	OPTIONS=report=never watch "$victims/victim-signal-exit"
	exits 9
done
done_testing
