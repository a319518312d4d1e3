#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A stripped program is shown as module and offset; with its debug file beside it, by name and line.
. "$LW_SOURCE/test/e2e/lib.sh"

if ! command -v objcopy >/dev/null; then
	skip 'separate debug files' 'objcopy is not installed'
	done_testing
fi
cp "$victims/victim-leak" victim-whole
objcopy --only-keep-debug victim-whole victim-split.debug
objcopy --strip-all victim-whole victim-bare
cp victim-bare victim-split
objcopy --add-gnu-debuglink=victim-split.debug victim-split
line=$(line_of victim-leak.c 'hold(malloc(bytes));')

watch ./victim-bare 3 64
exits 0
leaks 192 3 '?'
watch ./victim-split 3 64
leaks 192 3 lose
is_at "$line" lose
has_callers lose main

# a program at a fixed address, without frame pointers
if ${CC:-cc} -g -O1 -no-pie -fomit-frame-pointer "$source_root/test/victims/victim-leak.c" \
	-o victim-fixed 2>cc.err; then
	watch ./victim-fixed 4 10
	leaks 40 4 lose
	is_at "$line" lose
else
	skip 'a program at a fixed address' "no compiler: $(head -n 1 cc.err)"
fi
done_testing
