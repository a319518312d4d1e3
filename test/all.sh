#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is needed, builds LeakWatch in each way that is promised, and runs all tests.
# usage: all.sh [BUILD-FOLDER]   (default: build-all in the source folder)
#
# Four builds, each made once, warnings being errors: gcc (all tests), clang (its lock analysis, unit
# tests), gcc with Address- and UndefinedBehaviourSanitizer (unit tests), gcc with ThreadSanitizer
# (tests of what threads do at once). The last line is the sum over every line
# that a test printed in TAP; the status is 0 only if nothing failed.
set -uo pipefail
# What others of this user watch meanwhile is not ours to see, nor to count as left over.
if [ -z "${LW_ALL_IPC:-}" ] && unshare --ipc true 2>/dev/null; then
	LW_ALL_IPC=1 exec unshare --ipc bash "$0" "$@"
fi
top=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$top/build-all}
mkdir -p "$build"
build=$(cd "$build" && pwd)
unset LD_PRELOAD LEAKWATCH_OPTIONS MAKEFLAGS
export LC_ALL=C.UTF-8
broken=()
logs=()

"$top/test/setup.sh" test || exit 1
"$top/test/e2e/left-over.sh" begin "$build/before.ipc" "$build"

# configure NAME COMPILER CXX-COMPILER MESON-ARGUMENTS...
configure() {
	local folder=$build/$1 cc=$2 cxx=$3
	shift 3
	[ -f "$folder/build.ninja" ] && return
	CC=$cc CXX=$cxx meson setup "$folder" "$top" --werror "$@" >"$folder.log" 2>&1 || {
		cat "$folder.log"
		return 1
	}
}

# make NAME: everything, as a user builds it
make() {
	ninja -C "$build/$1" --quiet
}

# run NAME MESON-TEST-ARGUMENTS...: builds what the tests want that is not there, and runs them
run() {
	local folder=$build/$1 log=$build/$1/meson-logs/testlog.json
	shift
	rm -f "$log"
	meson test -C "$folder" --print-errorlogs --no-suite=bench "$@"
	if [ -f "$log" ]; then
		logs+=("$log")
	else
		broken+=("build and tests in $folder")
	fi
}

# stage TITLE NAME: prints how long the one before took
stage() {
	printf '\n== %s (%s s so far)\n' "$1" "$SECONDS"
}

configure_clang() { configure clang clang clang++ --buildtype=debugoptimized; }
configure_asan() { configure asan gcc g++ -Db_sanitize=address,undefined -Db_lundef=false; }
configure_tsan() { configure tsan gcc g++ -Db_sanitize=thread -Db_lundef=false; }

# What the tests leave of the processors builds the rest; what fails here fails again, and is told, in its own stage.
build_ahead() {
	command -v clang >/dev/null && configure_clang && nice -n 19 ninja -C "$build/clang" --quiet
	configure_asan && nice -n 19 ninja -C "$build/asan" --quiet meson-test-prereq
	configure_tsan && nice -n 19 ninja -C "$build/tsan" --quiet meson-test-prereq
}

stage 'gcc: all tests'
if configure gcc gcc g++ --buildtype=debugoptimized && make gcc; then
	build_ahead >"$build/ahead.log" 2>&1 &
	run gcc
	wait
else
	broken+=('build with gcc')
fi
stage 'clang: warnings and lock analysis, unit tests'
if ! command -v clang >/dev/null; then
	logs+=('skip:clang is not installed')
elif configure_clang && make clang; then
	run clang --suite unit
else
	broken+=('build with clang')
fi
stage 'gcc with AddressSanitizer and UndefinedBehaviourSanitizer: unit tests'
if configure_asan; then
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=detect_leaks=0 \
		run asan --suite unit
else
	broken+=('set up a build with AddressSanitizer')
fi
stage 'gcc with ThreadSanitizer: what threads do at once'
if configure_tsan; then
	TSAN_OPTIONS=halt_on_error=1 run tsan --suite tsan
else
	broken+=('set up a build with ThreadSanitizer')
fi
stage 'what is left over'
if ! "$top/test/e2e/left-over.sh" end "$build/before.ipc" "$build"; then
	broken+=('queues, segments or processes were left over')
fi

python3 "$top/test/summary.py" "${logs[@]}" "${broken[@]/#/fail:}"
