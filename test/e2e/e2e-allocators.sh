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
	NEXT=$path watch bash -c 'grep -c "$0" /proc/self/maps' "$(basename "$path" | cut -d. -f1)"
	ok "$1 is there" matches out '[1-9]'
}

next jemalloc libjemalloc.so
next tcmalloc libtcmalloc_minimal.so
next mimalloc libmimalloc.so
done_testing
