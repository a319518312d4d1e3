#!/bin/sh
# SPDX-License-Identifier: MIT
# The launcher sets two variables and becomes the program, or says in one line why it does not.
# usage: e2e-launcher.sh LEAKWATCH; LEAKWATCH is the launcher with libleakwatch.so beside it.
set -u
LC_ALL=C
export LC_ALL
launcher=$(realpath "$1")
library=$(dirname "$launcher")/libleakwatch.so
unset LD_PRELOAD LEAKWATCH_OPTIONS
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
nr=0
failed=0

ok() { # ok CONDITION-STATUS NAME
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $nr - $2"
	else
		failed=1
		echo "not ok $nr - $2"
		sed 's/^/# /' out err
	fi
}

run() { # run ARGS...: status, out and err
	"$launcher" "$@" >out 2>err
	status=$?
}

run_with() { # run_with VARIABLE=VALUE ARGS...
	assignment=$1
	shift
	env "$assignment" "$launcher" "$@" >out 2>err
	status=$?
}

# says STATUS LINE NAME: the status, and exactly this line on stderr
says() {
	[ "$status" -eq "$1" ] && [ "$(cat err)" = "leakwatch: $2" ]
	ok $? "$3"
}

# prints LINE NAME: status 0 and exactly this on stdout
prints() {
	[ "$status" -eq 0 ] && [ "$(cat out)" = "$1" ]
	ok $? "$2"
}

# shellcheck disable=SC2016 # for the shell that is run
variables='echo "$LD_PRELOAD|$LEAKWATCH_OPTIONS"'

run --help
[ "$status" -eq 0 ] && grep -q '^--depth=N' out && [ ! -s err ] && ! grep -q '.\{81\}' out
ok $? '--help goes to stdout and fits 80 columns'
run --version
[ "$status" -eq 0 ] && grep -q '^leakwatch [0-9]' out
ok $? '--version'

run sh -c "$variables"
prints "$library|" 'the library alone'
run --depth=5 --min-bytes=64k --verbose --no-full-stacks -- sh -c "$variables"
prints "$library|depth=5:min_bytes=64k:verbose=1:full_stacks=0" 'options become LEAKWATCH_OPTIONS'
run --depth 6 --min_bytes 1 sh -c "$variables"
prints "$library|depth=6:min_bytes=1" 'a value may be the next argument'
run "--json=/a b:c'd" "--log_path='x" sh -c "$variables"
prints "$library|json='/a b:c'\"'\"'d':log_path=''\"'\"'x'" 'values are quoted where they need it'
run_with LEAKWATCH_OPTIONS=top=3 --depth=5 sh -c "$variables"
prints "$library|top=3:depth=5" 'the command line is laid over the environment'
run_with "LEAKWATCH_OPTIONS=json='/a" --depth=5 sh -c "$variables"
prints "$library|depth=5:json='/a" 'a quote left open in the environment swallows nothing'
run_with LEAKWATCH_OPTIONS=top=3 sh -c "$variables"
prints "$library|top=3" 'without options the environment stays'
run_with LD_PRELOAD=libm.so.6 sh -c "$variables"
prints "$library:libm.so.6|" 'an existing LD_PRELOAD stays behind ours'
run "$launcher" --top=1 sh -c "$variables"
prints "$library|top=1" 'under itself it is there once'
run --report=never sh -c 'exit 42'
[ "$status" -eq 42 ] && [ ! -s err ]
ok $? "the program's status"

run
says 2 'no program to run (try --help)' 'no program'
run --depth=5 --
says 2 'no program to run (try --help)' 'options and no program'
run --depth=abc true
says 2 '--depth=abc: not a number from 1 to 128 (try --help)' 'a bad number'
run --color=blue true
says 2 '--color=blue: not one of auto|always|never (try --help)' 'a bad choice'
run --deep=5 true
says 2 "unknown option '--deep=5' (try --help)" 'an unknown option'
run --no-depth true
says 2 "'--no-depth': depth is no switch of 0 and 1 (try --help)" '--no- is for switches'
run -d true
says 2 "unknown option '-d' (try --help)" 'a short option'
run --json
says 2 "option '--json' needs a value (try --help)" 'a value is missing'

run ./missing
says 127 "cannot run './missing': No such file or directory" 'a missing file'
run leakwatch-no-such-program
says 127 "cannot run 'leakwatch-no-such-program': No such file or directory" 'not in PATH'
run ''
says 127 "cannot run '': No such file or directory" 'an empty name'
mkdir sub
run ./sub
says 126 "cannot run './sub': Is a directory" 'a directory'
echo 'echo hello "$@"' >plain
run ./plain
says 126 "cannot run './plain': Permission denied" 'a file that is not executable'
chmod +x plain
run ./plain a 'b c'
prints 'hello a b c' 'a script without #! is run by the shell'
run_with "PATH=$folder:$PATH" plain
prints 'hello' 'also from PATH'
mkdir -p sub/plain
run_with "PATH=$folder/sub:$folder:$PATH" plain
prints 'hello' 'a folder of that name in PATH is passed over'
printf 'a\0b\n' >garbage
printf '\177ELF garbage' >broken
printf '#!/no/such/thing\n' >lost
chmod +x garbage broken lost
run ./garbage
says 126 "cannot run './garbage': not a program" 'a file that is no program'
run ./lost
says 127 "cannot run './lost': No such file or directory (the interpreter it asks for)" \
	'a script whose interpreter is missing'
run ./broken
[ "$status" -eq 126 ] && tail -n 1 err | grep -q "cannot run './broken': not a program"
ok $? 'a broken ELF file'

# Files that cannot be watched run without the preload.
echo 'int puts(const char *); char *getenv(const char *);
int main(void) { char *p = getenv("LD_PRELOAD"); return puts(p ? p : "none") < 0; }' >show.c
cc=${CC:-cc}
if ! $cc show.c -o show 2>/dev/null; then
	echo "ok $((nr + 1)) - SKIP no C compiler # SKIP"
	echo "1..$((nr + 1))"
	exit "$failed"
fi
run ./show
prints "$library" 'a dynamic program'
if $cc -static show.c -o static 2>/dev/null; then
	run ./static
	[ "$(cat out)" = none ]
	says $? "cannot see into './static': it is linked statically; running it unwatched" \
		'a static program'
	[ "$(cat out)" = none ]
	ok $? 'runs without the preload'
fi
if $cc -fsanitize=address show.c -o asan 2>/dev/null; then
	run_with ASAN_OPTIONS=detect_leaks=0 ./asan
	says 0 "steps aside: './asan' is built with AddressSanitizer, which looks for leaks itself" \
		'a program with AddressSanitizer'
	[ "$(cat out)" = none ]
	ok $? 'runs without the preload'
	printf '#!%s/asan\n' "$folder" >script
	chmod +x script
	run_with ASAN_OPTIONS=detect_leaks=0 ./script
	says 0 "steps aside: './script' is built with AddressSanitizer, which looks for leaks itself" \
		'a script run by one'
fi
# another machine: AArch64 in the header of a file that is otherwise ours
cp show foreign
printf '\267' | dd of=foreign bs=1 seek=18 conv=notrunc 2>/dev/null
run ./foreign
[ "$status" -eq 126 ] && [ "$(wc -l <err)" -eq 2 ] && grep -q 'another processor' err
ok $? 'a program for another processor'
if [ "$(id -u)" -eq 0 ]; then
	cp show setuid
	chown 65534 setuid && chmod u+s setuid
	run ./setuid
	says 0 "cannot see into './setuid': it is setuid, setgid or has file capabilities; running it unwatched" \
		'a setuid program'
fi

# Installed layouts.
for layout in lib/leakwatch lib64/leakwatch lib/x86_64-linux-gnu/leakwatch; do
	rm -rf tree
	mkdir -p tree/bin "tree/$layout"
	cp "$launcher" tree/bin/leakwatch
	cp "$library" "tree/$layout"
	tree/bin/leakwatch sh -c "$variables" >out 2>err
	status=$?
	prints "$folder/tree/$layout/libleakwatch.so|" "found in $layout"
done
echo "1..$nr"
exit "$failed"
