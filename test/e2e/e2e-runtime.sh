#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What libc and libstdc++ keep for themselves is nobody's leak; it is there for who asks.
. "$LW_SOURCE/test/e2e/lib.sh"

watch "$victims/victim-caches"
exits 0
prints 'cached 2.500'
leaks 44 1 lose
for function in ask_locale ask_time ask_users ask_loader ask_threads ask_streams main; do
	clean $function
done
never_says 'Runtime:'
OPTIONS=runtime=1 watch "$victims/victim-caches"
says 'Runtime:'
says 'SUMMARY: LeakWatch: 44 byte\(s\) leaked in 1 allocation\(s\)\.'
done_testing
