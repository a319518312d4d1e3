#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Another process of the same user writes all over the region of a running program: the numbers in it are
# worth nothing then, but the program runs, forks, ends as it would alone, and nobody who reads it is harmed.
# usage: e2e-scribbled.sh [BUILD_DIR]
# shellcheck source=test/e2e/cleaner-lib.sh
. "$(dirname "$0")/cleaner-lib.sh"
snapshot=$build/snapshot/leakwatch-snapshot

# scribble SEED FIRST LAST: bytes of all segments that are ours, in many places between, until `stop` is there
scribble() {
	python3 - "$@" <<-'PYTHON' 9>&- &
		import ctypes, os, random, sys
		random.seed(int(sys.argv[1]))
		first, last = int(sys.argv[2]), int(sys.argv[3])
		libc = ctypes.CDLL(None)
		libc.shmat.restype = ctypes.c_void_p
		maps = {}
		while not os.path.exists('stop'):
		    for line in open('/proc/sysvipc/shm').readlines()[1:]:
		        key, shmid, _, size = line.split()[:4]
		        if shmid not in maps:
		            at = libc.shmat(int(shmid), None, 0)
		            if at == ctypes.c_void_p(-1).value:
		                continue
		            maps[shmid] = at, int(size)
		    for at, size in maps.values():
		        for _ in range(200):
		            where = random.randrange(first, min(last, size - 8))
		            word = random.choice((0, 0xffffffff, 0x7fffffff, random.getrandbits(32), random.getrandbits(10)))
		            ctypes.memmove(at + where // 4 * 4, word.to_bytes(4, 'little'), 4)
		    open('begun', 'w').close()
	PYTHON
	scribbler=$!
}
scribbled() { # WHAT SEED FIRST LAST VICTIM...
	local what=$1 seed=$2 first=$3 last=$4
	shift 4
	rm -rf stop begun json
	mkdir json
	start "$@"
	scribble "$seed" "$first" "$last"
	within 5 test -e begun
	sleep 0.3 # it and the program are both at it
	timeout 20 "$snapshot" --columns --interval=0.1 --count=2 "$pid" >/dev/null 2>&1 9>&-
	ok "$what: who reads it is not harmed" test $? -lt 126
	let_go
	reap
	ok "$what: the program ends as it would alone" is_status 7
	touch stop
	wait "$scribbler"
}
header=20480 # the header and its texts lie below
for seed in 1 2 3; do
	scribbled "header $seed" $seed 0 $header "$victims/victim-live" grow
	scribbled "tables $seed" $seed $header 900000000 "$victims/victim-live" wild 3000 3000
	scribbled "its beginning $seed" $seed 64 3000000 "$victims/victim-live" grow
done
scribbled 'a forked one' 4 0 3000000 "$victims/victim-live" fork
for id in $(objects | comm -13 objects.before - | awk '/^shm/ { print $3 }'); do ipcrm -m "$id"; done 2>/dev/null
for id in $(objects | comm -13 objects.before - | awk '/^msg/ { print $3 }'); do ipcrm -q "$id"; done 2>/dev/null
done_testing
