#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is needed, builds LeakWatch, and runs it on a program that leaks in three ways.
# usage: demo.sh [BUILD-FOLDER]   (default: build-demo in the source folder)
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$top/build-demo}

"$top/test/setup.sh" build
if [ ! -f "$build/build.ninja" ]; then
	meson setup "$build" "$top" --buildtype=release -Dtests=false >"$build.log" 2>&1 || {
		cat "$build.log" >&2
		exit 1
	}
	mv "$build.log" "$build/setup.log"
fi
ninja -C "$build" --quiet
g++ -std=c++17 -g -O1 "$top/test/victims/demo.cc" -o "$build/demo"
echo "\$ leakwatch ./demo"
cd "$build"
exec preload/leakwatch ./demo
