#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The next allocator in line does the work, be it the program's own or one that is preloaded.
. "$LW_SOURCE/test/e2e/lib.sh"

watch "$victims/victim-own-malloc"
exits 0
ok 'the program is served by its own malloc' matches out '^served 10[2-9]$'

next() { # NAME FILE-PATTERN
	local path
	path=$(ldconfig -p | awk -v name="$2" 'index($1, name) == 1 { print $NF; exit }')
	if [ -z "$path" ]; then
		skip "$1 under LeakWatch" "$1 is not installed"
		return
	fi
	NEXT=$path watch "$victims/victim-leak" 5 100
	exits 0
	leaks 500 5 lose
	clean borrow
	env LD_PRELOAD="$path" "$victims/victim-grow" >plain
	NEXT=$path watch "$victims/victim-grow"
	prints "$(cat plain)"
	leaks 10500 1 grow
	NEXT=$path watch "$victims/victim-reuse"
	exits 0
	leaks 2160 30 lose
	clean swap
	NEXT=$path watch "$victims/victim-throw"
	prints 'thrown 9'
	leaks 256 1 lose_wide
	leaks 72 1 lose_row
	clean make_row
	NEXT=$path watch "$victims/victim-reach"
	exits 0
	has_part lost 333 1 lose
	has_part lost 80 1 make_head
	has_part indirect 200 2 make_tail
	has_part lost 0 0 make_tail
	has_part lost 0 0 keep_one
	NEXT=$path watch "$victims/victim-empty"
	has_part lost 0 0 keep_empty
	NEXT=$path OPTIONS=exitcode=9 watch true # what it allocates for itself through our hooks is not lost
	exits 0
	NEXT=$path watch bash -c 'grep -c "$0" /proc/self/maps' "$(basename "$path" | cut -d. -f1)"
	ok "$1 is there" matches out '[1-9]'
}

next jemalloc libjemalloc.so
next tcmalloc libtcmalloc_minimal.so
next mimalloc libmimalloc.so
next libc_malloc_debug libc_malloc_debug.so

# one whose functions old programs find by their version alone: with it the C library checks its heap
check() {
	local path
	path=$(ldconfig -p | sed -n 's/.*libc_malloc_debug.so.0 (libc6,x86-64).*=> //p' | head -1)
	[ -n "$path" ] || { skip 'the checks of the C library' 'libc_malloc_debug is not installed'; return; }
	NEXT=$path watch env MALLOC_CHECK_=3 "$victims/victim-overrun"
	exits 134
	ok 'a block written past its end is still found out' matches err 'free\(\): invalid pointer'
}
check
done_testing
