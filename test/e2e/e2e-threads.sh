#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Threads: their own objects, their smallest stacks, and libraries that come and go meanwhile.
. "$LW_SOURCE/test/e2e/lib.sh"

watch "$victims/victim-thread-objects"
exits 0
prints '6 journals closed'
leaks 40 1 lose
clean write
clean work
is_kind 'new[]' lose

watch "$victims/victim-small-stack"
exits 0
prints 'threads 20'
leaks 300 20 lose
clean at_the_bottom

watch "$victims/victim-plugins" "$victims/libvictim-plugin.so"
exits 0
prints 'loads 120'
leaks 180 3 plugin_lose
clean plugin_open
has_callers plugin_lose load
done_testing
