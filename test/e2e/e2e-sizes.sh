#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Sizes and counts are exact: moved, huge, empty and aligned blocks; what is refused counts for nothing.
. "$LW_SOURCE/test/e2e/lib.sh"

watch "$victims/victim-grow"
exits 0
prints 'refused 2'
leaks 10500 1 grow
leaks 1000 1 shrink
leaks 42 2 from_nothing
clean refused
clean to_nothing
has_mismatches 0

watch "$victims/victim-extremes"
exits 0
prints 'errno 1 aligned 5 14 refused 5'
leaks 6291456000 3 reserve
leaks 0 5 nothing
leaks 630 5 aligned
clean aligned_and_freed
clean refused
nothing_dropped

watch "$victims/victim-flood"
exits 0
prints poured
leaks 999 3 lose
clean pour
nothing_dropped

watch "$victims/victim-reuse"
exits 0
prints calm
leaks 2160 30 lose
clean swap
nothing_dropped
done_testing
