#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what LeakWatch is built from and tested with, on Debian 12 or a relative of it.
# usage: setup.sh [build|test|bench]   build: compilers and libraries. test (the default): also the
# real programs the tests run under LeakWatch. bench: also the tools it is compared with.
#
# Asks nothing, may run again and again, and touches apt only for what is missing. A package that
# this system does not offer is named and left out if only tests want it: they skip and say so.
set -eu

build='gcc g++ libc6-dev dpkg-dev meson ninja-build pkg-config libdw-dev libelf-dev libjansson-dev libncurses-dev
	libunwind-dev liblzma-dev python3-minimal binutils'
test='clang python3 procps sqlite3 jq git perl redis-server nginx-light nodejs valgrind tmux
	libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0'
bench='heaptrack google-perftools'

case ${1:-test} in
build) wanted=$build optional= ;;
test) wanted=$build optional=$test ;;
bench) wanted=$build optional="$test $bench" ;;
*)
	echo "usage: setup.sh [build|test|bench]" >&2
	exit 2
	;;
esac

is_installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing() {
	for package; do
		is_installed "$package" || printf '%s ' "$package"
	done
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
	echo "setup: no apt-get here; install by hand: $wanted" >&2
	exit 0
fi
# shellcheck disable=SC2086 # lists of words
lacking=$(missing $wanted $optional)
if [ -z "$lacking" ]; then
	exit 0
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
	# shellcheck disable=SC2086
	if ! command -v sudo >/dev/null; then
		needed=$(missing $wanted)
		echo "setup: neither root nor sudo, cannot install: $lacking" >&2
		[ -z "$needed" ] && exit 0
		exit 1
	fi
	as_root=sudo
fi

apt() {
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# Servers are installed for their program only: nothing is started.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	trap '$as_root rm -f $policy' EXIT
	printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
	$as_root chmod 755 $policy
fi

echo "setup: installing $lacking" >&2
apt update
# shellcheck disable=SC2086
lacking=$(missing $wanted)
# shellcheck disable=SC2086
[ -z "$lacking" ] || apt install --no-install-recommends $lacking >/dev/null
# shellcheck disable=SC2086
lacking=$(missing $optional)
# shellcheck disable=SC2086
if [ -n "$lacking" ] && ! apt install --no-install-recommends $lacking >/dev/null; then
	for package in $lacking; do
		apt install --no-install-recommends "$package" >/dev/null ||
			echo "setup: $package is not to be had; the tests that want it skip" >&2
	done
fi
