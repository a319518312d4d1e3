#!/bin/sh
# SPDX-License-Identifier: MIT
# A short run of the decoder's fuzzer from the kept corpus. usage: run.sh FUZZER CORPUS [SECONDS]; speaks TAP.
# What it finds goes into a folder of its own; a crash is printed, and its input in base64.
found=$(mktemp -d) || exit 1
trap 'rm -rf "$found"' EXIT
echo 1..1
if "$1" -max_total_time="${3:-10}" -max_len=4096 -print_final_stats=1 -artifact_prefix="$found/" "$found" "$2" \
	>"$found.log" 2>&1; then
	echo "ok 1 - $(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log") streams decoded without harm"
	rm -f "$found.log"
else
	echo 'not ok 1 - it is harmed'
	sed 's/^/# /' "$found.log"
	for file in "$found"/crash-* "$found"/timeout-* "$found"/oom-*; do
		[ -f "$file" ] && base64 "$file" | sed 's/^/# /'
	done
	rm -f "$found.log"
	exit 1
fi
