#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# sample=BYTES: a few recorded allocations stand for all, in threads and in children; what was passed over
# is no wrong release, nothing is called lost, and the report says that its figures are estimates.
. "$LW_SOURCE/test/e2e/lib.sh"

# about FUNCTION BYTES BLOCKS: the sums of the sites in FUNCTION in all reports; some hundred samples are within 25 %
about() {
	python3 - "$@" <<-'PYTHON'
		import glob, json, sys
		name, bytes_, blocks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
		sums = [0, 0]
		for path in glob.glob('json/*.json'):
		    for leak in json.load(open(path))['sites']:
		        if any(frame.get('function', '').split('(')[0] == name for frame in leak['frames']):
		            sums[0] += leak['bytes']
		            sums[1] += leak['blocks']
		print(name, *sums)
		sys.exit(not (abs(sums[0] - bytes_) <= bytes_ / 4 and abs(sums[1] - blocks) <= blocks / 4))
	PYTHON
}

OPTIONS=sample=4k watch "$victims/victim-sampled"
exits 0
ok 'many small blocks are estimated' about lose_small 3840000 80000
ok 'and few large ones' about lose_large 12000000 4000
clean give_back
ok 'nothing is taken for lost' has_no_match json/*.json "\"verdict\": *\"lost\""
says 'Sampled: one allocation in about 4.0 KiB was recorded'
never_says 'wrong release'
has_field sample_bytes 4096
nothing_dropped

OPTIONS=sample=4k watch "$victims/victim-sampled" fork
exits 0
ok 'a child samples its own' about lose_small 5760000 120000

OPTIONS=sample=1k watch "$victims/victim-sampled-new"
exits 0
ok 'objects are estimated' about lose_object 640000 80000
ok 'and arrays' about lose_array 4000000 40000
clean give_back
never_says 'wrong release'
nothing_dropped

OPTIONS=sample=1 watch "$victims/victim-sampled"
ok 'one byte records everything' about lose_small 3840000 80000

OPTIONS=sample=oops watch "$victims/victim-leak" 5 100
says 'sample.*oops'
leaks 500 5 lose
done_testing
