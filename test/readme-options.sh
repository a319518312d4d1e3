#!/bin/sh
# SPDX-License-Identifier: MIT
# The tables of options in README.md and the man page are those of the program's own table.
# usage: readme-options.sh OPTIONS-TABLE SOURCE-FOLDER [--write]; speaks TAP. --write puts them there.
set -u
table=$(realpath "$1") # before the folder is changed
cd "$2" || exit 1
write=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nr=0
bad=0

# between FILE FIRST LAST TABLE-ARGUMENT: what stands between the lines that hold FIRST and LAST
between() {
	# shellcheck disable=SC2086
	"$table" $4 >"$work/table"
	first=$2 last=$3 awk -v table="$work/table" '
		BEGIN { first = ENVIRON["first"]; last = ENVIRON["last"] }
		index($0, last) { inside = 0 }
		!inside { print }
		index($0, first) { inside = 1; while ((getline line <table) > 0) print line }' "$1" >"$work/new"
	nr=$((nr + 1))
	if [ -n "$write" ]; then
		cat "$work/new" >"$1"
	elif grep -qF -- "$2" "$1" && cmp -s "$work/new" "$1"; then
		echo "ok $nr - the options in $1"
	else
		bad=1
		echo "not ok $nr - the options in $1 (test/readme-options.sh $table . --write)"
		diff "$1" "$work/new" | sed 's/^/# /'
	fi
}

between README.md '<!-- options -->' '<!-- end of options -->' ''
between preload/leakwatch.1 '.\" options' '.\" end of options' --man
echo "1..$nr"
exit $bad
