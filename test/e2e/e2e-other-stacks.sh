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
done_testing
