#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Code that runs before every constructor is watched from its first block, and is not held up.
. "$LW_SOURCE/test/e2e/lib.sh"

watch "$victims/victim-early"
exits 0
prints 'all released'
leaks 111 1 forget_early
clean take_early
is_kind calloc forget_early
has_field state exit
done_testing
