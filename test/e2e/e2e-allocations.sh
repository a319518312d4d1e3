#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# LeakWatch never allocates from the program's allocator: each phase of a program makes as many calls
# with it as without, also where new stacks, threads, libraries and processes come up.
. "$LW_SOURCE/test/e2e/lib.sh"

probe=$victims/libvictim-probe.so
plugin=$victims/libvictim-plugin.so
env LD_PRELOAD="$probe" "$victims/victim-count" "$plugin" >alone
NEXT=$probe watch "$victims/victim-count" "$plugin"
exits 0
while read -r line; do
	prints "$line"
done <alone
ok 'as many lines' cmp alone out
nothing_dropped
done_testing
