#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Correct programs of kinds that are easily taken for something else (victim-odd.c).
# shellcheck source=test/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# what a handler jumped out of may be missing, and is declared; what comes after is tracked again
watch "$victims/victim-odd" jump
exits 0
prints done
leaks 12345 1 lose

watch "$victims/victim-odd" deepbind "$victims/libvictim-plugin.so"
exits 0
prints done
has_mismatches 0
never_says 'wrong release|Double free'

watch "$victims/victim-odd" page-end
exits 0
prints done
done_testing
