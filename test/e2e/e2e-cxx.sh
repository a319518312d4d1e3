#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# C++: what constructors and handlers throw passes through, and what they left is counted right.
. "$LW_SOURCE/test/e2e/lib.sh"

watch "$victims/victim-throw"
exits 0
prints 'thrown 9'
clean make_one
clean make_row
clean make_wide
clean Picky
leaks 256 1 lose_wide
leaks 72 1 lose_row
is_kind 'new[]' lose_row
has_mismatches 0

watch "$victims/victim-new-handler"
exits 0
prints 'thrown 4 jumped 3 asked 3 null 2'
leaks 98 7 lose
clean ask
clean ask_for_many
clean ask_aligned
clean ask_quietly

# a program in C with a plugin in C++, whose libstdc++ nobody else sees
watch "$victims/victim-c-with-plugin" "$victims/libvictim-cxx.so"
exits 0
prints 'caught 12 null 4'
leaks 92 4 plugin_lose
clean plugin_run
clean use
has_mismatches 0
done_testing
