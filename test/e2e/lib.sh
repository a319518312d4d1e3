# SPDX-License-Identifier: MIT
# lib.sh - the words of the end-to-end tests: run a victim under LeakWatch, then say what must hold.
#
# A test is a script of bash that sources this file, calls `watch` and, after it, checks; each check
# is one line of TAP. It runs in a folder of its own that is removed at the end, with $build (the build
# folder), $victims, $library and $launcher set. What failed is followed by what was seen instead.
# shellcheck shell=bash disable=SC2034 # variables are for the tests

set -u
export LC_ALL=C.UTF-8
unset LD_PRELOAD LEAKWATCH_OPTIONS LSAN_OPTIONS DEBUGINFOD_URLS
build=${LW_BUILD:?set LW_BUILD to the build folder}
source_root=${LW_SOURCE:?set LW_SOURCE to the source folder}
victims=$build/test/victims
library=$build/preload/libleakwatch.so
launcher=$build/preload/leakwatch
nr_checks=0
nr_bad=0
status=
work=$(mktemp -d "${TMPDIR:-/tmp}/leakwatch-test.XXXXXX")
trap 'cd /; rm -rf "$work"' EXIT
cd "$work" || exit 1

# ok NAME COMMAND...: one line, good if the command is; its output follows a bad one
ok() {
	local name=$1 seen
	shift
	nr_checks=$((nr_checks + 1))
	if seen=$("$@" 2>&1); then
		echo "ok $nr_checks - $name"
		return 0
	fi
	nr_bad=$((nr_bad + 1))
	echo "not ok $nr_checks - $name"
	[ -z "$seen" ] || sed 's/^/# /' <<<"$seen"
	return 1
}

# skip NAME WHY: a check that cannot be made here
skip() {
	nr_checks=$((nr_checks + 1))
	echo "ok $nr_checks - $1 # SKIP $2"
}

done_testing() {
	echo "1..$nr_checks"
	[ "$nr_bad" -eq 0 ]
	exit
}

# watch COMMAND...: runs it under the library; $OPTIONS are laid over the ones that ask for reports
# in json/. Leaves $status, out and err. Stops it after 20 seconds, which is status 124.
watch() {
	rm -rf json out err
	mkdir json
	timeout -k 1 20 env LD_PRELOAD="$library${NEXT:+ $NEXT}" \
		LEAKWATCH_OPTIONS="json=$work/json/%p.json${OPTIONS:+:$OPTIONS}" \
		"$@" >out 2>err </dev/null
	status=$?
	OPTIONS=
	NEXT=
}

# ---- checks after watch ----

judge() {
	python3 "$source_root/test/e2e/judge.py" json "$@"
}

leaks() { ok "$3 loses $1 bytes in $2 blocks" judge leak "$@"; }
child_leaks() { ok "in a child, $3 loses $1 bytes in $2 blocks" judge childleak "$@"; }
clean() { ok "$1 is not accused" judge clean "$@"; }
nothing_leaks() { ok 'nothing is accused' judge nothing; }
has_sites() { ok "$2 has $1 sites" judge sites "$@"; }
is_at() { ok "$2 at line $1" judge at "$@"; }
has_callers() { ok "stack: $*" judge deep "$@"; }
has_verdict() { ok "$2 is $1" judge verdict "$@"; }
is_kind() { ok "$2 is of kind $1" judge kind "$@"; }
has_reports() { ok "$1 reports" judge reports "$@"; }
has_field() { ok "$1 is $2" judge field "$@"; }
has_part() { ok "$4: $2 bytes in $3 blocks are $1" judge part "$@"; }
nothing_dropped() { ok 'nothing was dropped' judge whole; }
has_mismatches() { ok "$1 mismatches" judge mismatches "$@"; }

is_status() {
	echo "status $status, stderr:"
	head -n 20 err
	[ "$status" -eq "$1" ]
}
exits() { ok "status $1" is_status "$1"; }

has_line() { # FILE LINE
	head -n 40 "$1"
	grep -qxF -- "$2" "$1"
}
prints() { ok "prints '$1'" has_line out "$1"; }

matches() { # FILE PATTERN
	head -n 60 "$1"
	grep -qE -- "$2" "$1"
}
says() { ok "stderr matches '$1'" matches err "$1"; }

has_no_match() { # FILE PATTERN
	! grep -E -- "$2" "$1"
}
never_says() { ok "stderr does not match '$1'" has_no_match err "$1"; }

is_empty() {
	head -n 20 "$1"
	[ ! -s "$1" ]
}
silent() { ok 'stderr is empty' is_empty err; }

# line_of FILE TEXT: the number of the first line of a victim's source that holds TEXT
line_of() {
	grep -nF -- "$2" "$source_root/test/victims/$1" | head -n 1 | cut -d: -f1
}
