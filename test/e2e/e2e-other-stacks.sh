#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Stacks of coroutines and of signal handlers are followed to their ends.
. "$LW_SOURCE/test/e2e/lib.sh"

watch "$victims/victim-other-stacks"
exits 0
prints 'handled 5'
leaks 720 6 lose_in_coroutine
has_callers lose_in_coroutine coroutine
leaks 400 5 lose_in_handler
has_callers lose_in_handler on_signal
clean run_on
clean handle_elsewhere
clean main

# a stack of which a part is gone, and memory that an unwinder remembers with it
watch "$victims/victim-cut-stack"
exits 0
prints 'lost 480'
leaks 11520 480 lose
has_callers lose go_down fill

# a signal stack of the size programs used to think enough
for how in malloc _exit exit quick_exit fork; do
	watch "$victims/victim-small-handler" $how
	exits 3
	leaks 77 1 lose_in_handler
	has_callers lose_in_handler on_signal
done
child_leaks 77 1 lose_in_handler
done_testing
