#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A block is laid at the door of the function of the program that asked for it, whatever lies between.
. "$LW_SOURCE/test/e2e/lib.sh"

watch "$victims/victim-libc"
exits 0
prints copied
leaks 24 1 copy_text
leaks 20 1 copy_wide
leaks 7 1 cut_text
leaks '*' 1 write_label
leaks '*' 1 collect_text
leaks 120 1 read_record
leaks '*' 1 find_home
leaks '*' '*' match_names
clean give_back
has_callers copy_text main
has_mismatches 0

# optimised away: a frame that was left by a jump, one that was inlined twice
watch "$victims/victim-frames"
exits 0
leaks 60 1 'through_jump|jump_to_malloc'
leaks 90 2 make_inline
has_sites 2 make_inline
has_callers make_inline first_caller main
has_callers make_inline second_caller main

# no unwind information: the function itself is named, and nothing crashes
watch "$victims/victim-assembly"
exits 0
prints bare
leaks 224 4 'bare_absurd|call_bare'
leaks 96 4 'bare_moved|call_bare'
clean ordinary
done_testing
