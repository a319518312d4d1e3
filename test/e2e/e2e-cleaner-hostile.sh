#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What others made under our keys, garbage and sandboxes: left alone, no crash, no hang, nothing left of ours.
. "$(dirname "$0")/cleaner-lib.sh"

killed_is_reported() {
	rm -f json/*
	start "$victims/victim-killed" pause
	ok 'one cleaner' within 2 has_cleaners 1
	kill -KILL "$pid"
	reap
	let_go
	ok "$1" within 2 is_reported "$pid"
}

# segments of this user that are no regions
make_segments() {
	python3 - "$1" <<-'PYTHON'
		import ctypes, os, struct, sys
		libc = ctypes.CDLL(None, use_errno=True)
		libc.shmat.restype = ctypes.c_void_p
		magic = 0x314e4749524b574c
		def segment(nr_bytes, content, mode=0o600):
		    shmid = libc.shmget(0, ctypes.c_size_t(nr_bytes), 0o1000 | mode)
		    at = libc.shmat(shmid, None, 0)
		    ctypes.memmove(at, content, len(content))
		    libc.shmdt(ctypes.c_void_p(at))
		    print(shmid)
		rest = os.urandom(30000)
		segment(32768, rest)                                               # garbage
		segment(32768, b'')                                                # all zero
		segment(100, b'x' * 100)                                           # too small
		segment(32768, struct.pack('<QII', magic, 99, 20000) + rest)       # another version
		head = int(sys.argv[1])
		segment(32768, struct.pack('<QIIQ', magic, 1, head, 1 << 60) + rest) # too large
		segment(32768, struct.pack('<QIIQii', magic, 1, head, 32768, 1, 1) + b'\xff' * 32000)
	PYTHON
}
header_bytes=$(od -An -tu4 -j12 -N4 <(
	env LD_PRELOAD="$library" "$victims/victim-killed" pause </dev/null >ready &
	within 5 grep -q ready ready
	python3 - <<-'PYTHON'
		import ctypes, sys
		libc = ctypes.CDLL(None)
		libc.shmat.restype = ctypes.c_void_p
		for line in open('/proc/sysvipc/shm').readlines()[1:]:
		    at = libc.shmat(int(line.split()[1]), None, 0o10000)
		    head = ctypes.string_at(at, 64)
		    if head[:8] == b'LWKRIGN1'[:8] or head[:8] == (0x314e4749524b574c).to_bytes(8, 'little'):
		        sys.stdout.buffer.write(head)
		        break
	PYTHON
	kill -KILL $!
))
ok 'the header of a region can be read' test "${header_bytes:-0}" -gt 0
mapfile -t segments < <(make_segments "${header_bytes:-0}")
killed_is_reported 'reported among strange segments'
are_there() {
	local id
	for id in "$@"; do awk -v id="$id" '$2 == id { f = 1 } END { exit !f }' /proc/sysvipc/shm || return; done
}
ok 'which stay' are_there "${segments[@]}"
objects >objects.before
nothing_left 'and do not hold the cleaner'
for id in "${segments[@]}"; do ipcrm -m "$id"; done
objects >objects.before

# semaphores of somebody else under our first key: the next one is taken
key_of_door() { awk 'NR > 1 && $4 == 3 { print $1 }' /proc/sysvipc/sem; }
start "$victims/victim-killed" pause
within 2 has_cleaners 1
key=$(key_of_door)
kill -KILL "$pid"
reap
let_go
nothing_left
make_set() { # NR VALUE: under our key, with this value in all of them
	python3 - "$key" "$1" "$2" <<-'PYTHON'
		import ctypes, sys
		libc = ctypes.CDLL(None)
		key, number, value = map(int, sys.argv[1:])
		semid = libc.semget(ctypes.c_int(key), number, 0o1600)
		for i in range(number):
		    libc.semctl(semid, i, 16, value)
		print(semid)
	PYTHON
}
for set in '1 0' '3 1' '3 30000' '5 0'; do
	# shellcheck disable=SC2086 # two words
	semid=$(make_set $set)
	objects >objects.before
	killed_is_reported "reported, with $set at our key"
	nothing_left
	ipcrm -s "$semid"
	objects >objects.before
done
# sets that look like a door which is just being made, or locked: not waited for without end
for values in '0 0 0' '1 0 19457'; do
	semid=$(make_set 3 0)
	# shellcheck disable=SC2086 # three words
	python3 - "$semid" $values <<-'PYTHON'
		import ctypes, sys
		for i in range(3):
		    ctypes.CDLL(None).semctl(int(sys.argv[1]), i, 16, int(sys.argv[2 + i]))
	PYTHON
	objects >objects.before
	rm -f json/*
	start "$victims/victim-killed" pause
	kill -KILL "$pid"
	reap
	let_go
	ok "reported, with $values at our key" within 6 is_reported "$pid"
	nothing_left
	# shellcheck disable=SC2016 # for awk
	ok 'which is left alone' awk -v id="$semid" '$2 == id { f = 1 } END { exit !f }' /proc/sysvipc/sem
	ipcrm -s "$semid"
done
objects >objects.before

# no cleaner is to be had: nothing is left all the same
mkdir programs
ln -s "$build/snapshot/leakwatch-snapshot" programs/
rm -f json/*
OPTIONS="programs=$work/programs" start "$victims/victim-killed" pause
ok 'without the program there is no cleaner' has_cleaners 0
kill -KILL "$pid"
reap
let_go
nothing_left 'and the segment goes with its process'
OPTIONS="programs=$work/programs" start "$victims/victim-killed" exit
let_go
reap
ok 'an exit is reported without a cleaner' within 1 has "$pid" '"state":"exit"'
ok 'by itself' has_losses
nothing_left

# no semaphores in the system
if sysctl -q -w kernel.sem="$(awk '{ print $1, $2, $3, 0 }' /proc/sys/kernel/sem)" 2>/dev/null; then
	start "$victims/victim-killed" pause
	within 2 has_cleaners 0
	kill -KILL "$pid"
	reap
	let_go
	sysctl -q -w kernel.sem="32000 1024000000 500 32000"
	nothing_left 'without semaphores nothing is left'
else
	skip 'without semaphores nothing is left' 'the limit cannot be set here'
fi

# the soft limits of the target are not those of the cleaner
rm -f json/*
bash -c "ulimit -S -n 4; ulimit -S -f 0; ulimit -S -v 400000; exec env LD_PRELOAD=$library \
	LEAKWATCH_OPTIONS=json=$work/json/%p.json $victims/victim-killed abort" </dev/null >/dev/null 2>&1 3>&- &
pid=$!
reap
ok 'reported in spite of its limits' within 2 is_reported "$pid"
nothing_left

# exec into a program that is not watched: what the image before it left goes without a report
rm -f json/*
env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="json=$work/json/%p.json" bash -c \
	'unset LD_PRELOAD; exec sleep 100' &
pid=$!
has_no_segment() { ! objects | comm -13 objects.before - | grep shm; }
within 1 has_cleaners 1
ok 'the region of an image that is gone' within 4 has_no_segment
ok 'is no dead process' test ! -e "json/$pid.json"
kill -KILL "$pid"
reap
nothing_left
done_testing
