#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is needed, builds LeakWatch, and runs it on a program that leaks in three ways.
# usage: demo.sh [BUILD-FOLDER]   (default: build-demo in the source folder)
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$top/build-demo}

"$top/test/setup.sh" build
mkdir -p "$build"
make() {
	[ -f "$build/build.ninja" ] || meson setup "$build" "$top" --buildtype=release -Dtests=false
	ninja -C "$build"
	cd "$top/test/victims" && g++ -std=c++17 -g -O1 demo.cc -o "$build/demo"
}
(make) >"$build/demo.log" 2>&1 || {
	cat "$build/demo.log" >&2
	exit 1
}
echo "\$ leakwatch ./demo"
cd "$build"
exec preload/leakwatch ./demo
