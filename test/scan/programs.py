# SPDX-License-Identifier: MIT
"""The real programs of compare.py: name, program, what it needs (made by a shell in an empty folder), what it does; % is the
program and how it is run."""
import subprocess
import sys

CC1PLUS = subprocess.run(['gcc', '-print-prog-name=cc1plus'], capture_output=True, text=True, check=False).stdout.strip()

TEXT = 'seq 1 3000 | while read -r i; do echo "line $((i * 7919 % 3001)) of the text"; done > text\n'
REPOSITORY = '''git init -q -b master r && cd r && git config user.name a && git config user.email a@b
for i in 1 2 3 4 5 6; do seq $i 7 900 > numbers; seq 1 $((i * 40)) > file$i; git add . ; git commit -q -m "change $i"; done
git checkout -q -b side HEAD~2 && echo side > side && git add . && git commit -q -m side'''
JSON = '''awk 'BEGIN { printf "["; for (i = 0; i < 1500; i++) printf "%s{\\"id\\":%d,\\"name\\":\\"n%d\\",\\"tags\\":[\\"a%d\\",\\"b\\"],\\"v\\":%f}",
i ? "," : "", i, i * 7919 % 1009, i % 13, i / 7; print "]" }' > data.json'''
SQL = '''cat > s.sql <<'.'
create table t(id integer primary key, name text, v real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
insert into t select i, printf('name %d', i * 7919 % 1009), i / 7.0 from n;
create index t_name on t(name);
create table u as select name, count(*) c, sum(v) s from t group by name;
select count(*), sum(c), max(s) from u join t using (name) where name like '%9%';
update t set name = upper(name) where id % 3 = 0; delete from t where id % 5 = 0; vacuum;
select name, group_concat(id) from t group by name order by 1 limit 5;
.'''
PERL = '''cat > s.pl <<'.'
use strict; use warnings; use List::Util qw(sum); use Data::Dumper;
my %seen; my @rows;
for my $i (1 .. 2000) { my $k = "k" . ($i * 7919 % 313); $seen{$k}{n}++; push @{$seen{$k}{all}}, $i; push @rows, {id => $i, key => $k}; }
my @top = sort { $seen{$b}{n} <=> $seen{$a}{n} || $a cmp $b } keys %seen;
my $text = join ",", map { "$_=" . sum(@{$seen{$_}{all}}) } @top[0 .. 9];
(my $copy = $text) =~ s/(\\d+)/<$1>/g;
local $Data::Dumper::Sortkeys = 1;
my $ring = {}; $ring->{self} = $ring; $ring = undef;
print length(Dumper(\\@rows)), " $copy\\n", (eval "sub { \\$_[0] * 2 }")->(21), "\\n";
.'''
PYTHON = '''cat > s.py <<'.'
import collections, csv, io, json, re
rows = [{'id': i, 'key': 'k%d' % (i * 7919 % 313), 'v': i / 7} for i in range(2000)]
groups = collections.defaultdict(list)
for row in rows: groups[row['key']].append(row['v'])
text = json.dumps(json.loads(json.dumps(rows)))
out = io.StringIO(); csv.writer(out).writerows((k, sum(v)) for k, v in sorted(groups.items()))
class Node:
    def __init__(self): self.me = self
for _ in range(100): Node()
print(len(text), len(out.getvalue()), len(re.findall(r'"k\\d+"', text)))
.'''
BASH = '''cat > s.sh <<'.'
declare -A count; declare -a list
add() { local k=$1; count[$k]=$((${count[$k]:-0} + 1)); list+=("$k"); }
while read -r a n rest; do add "k$((n % 37))"; [[ $rest =~ of\\ (.*) ]] && last=${BASH_REMATCH[1]}; done < text
for k in "${!count[@]}"; do printf '%s %s\\n' "$k" "${count[$k]}"; done | { while read -r k c; do s=$((s + c)); done; echo "$s $last"; }
x=$(echo "${list[@]:0:5}" | tr k K); echo "${x//K/k}"; case $x in K*) trap 'echo bye' EXIT;; esac
.'''
MAKE = '''cat > Makefile <<'.'
parts := $(foreach i,1 2 3 4 5 6 7 8 9,part$(i).out)
all: whole.out
whole.out: $(parts) ; @cat $^ > $@; wc -l < $@
define rule
part$(1).out: $(1).in Makefile
\t@sed 's/^/$(1) /' $$< > $$@
endef
$(foreach i,1 2 3 4 5 6 7 8 9,$(eval $(call rule,$(i))))
%.in: ; @seq 1 $* > $@
.PHONY: all
.'''
CXX = '''cat > s.cc <<'.'
#include <map>
#include <string>
#include <vector>
template <class T> struct tree { T value; std::vector<tree> below; long sum() const { long s = value; for (auto &t : below) s += t.sum(); return s; } };
int main(int argc, char **) { std::map<std::string, tree<long>> m; for (int i = 0; i < argc * 9; i++) m[std::to_string(i)].below.push_back({i, {}});
long s = 0; for (auto &p : m) s += p.second.sum(); return (int)s; }
.'''
REDIS = '''cat > c.sh <<'.'
until redis-cli -s r.sock ping > ping.out 2>&1; do sleep 0.1; done
for i in 1 2 3 4 5 6 7 8 9; do echo "set key:$i value$i"; echo "lpush list $i"; echo "hset hash f$i $i"; echo "zadd z $i m$i"; done | redis-cli -s r.sock > set.out
echo "eval \\"return redis.call('get', 'key:1')\\" 0" | redis-cli -s r.sock > eval.out
redis-cli -s r.sock del key:1 > del.out; redis-cli -s r.sock shutdown nosave
.'''

ASM = """cat > s.c <<'.'
struct point { int x, y; } all[40];
int sum(int n) { int s = 0; for (int i = 0; i < n; i++) { all[i].x = i; s += all[i].y * all[i].x; } return s; }
int main(int argc, char **argv) { (void)argv; return sum(argc); }
.
gcc -g -O2 -S s.c && gcc -g -c s.s -o s.o && gcc s.o -o s"""

PROGRAMS = [
    ('jq', 'jq', JSON, "% -c '[.[] | {id, n: (.name | length), t: (.tags | join(\"+\"))}] | group_by(.n) | map({n: .[0].n, c: length})' data.json"),
    ('git-log', 'git', REPOSITORY, '% -C r --no-pager log -p --stat --all --graph'),
    ('git-merge', 'git', REPOSITORY, '% -C r merge -q -m merged master'),
    ('sqlite3', 'sqlite3', SQL, "% t.db '.read s.sql'"),
    ('perl', 'perl', PERL, '% s.pl'),
    ('python3', sys.executable, PYTHON, 'PYTHONMALLOC=malloc % s.py'),
    ('tar', 'tar', TEXT + 'mkdir d && cp text d/a && cp text d/b', '% cf out.tar d text'),
    ('xz', 'xz', TEXT, '% -T2 -9 -k text'),
    ('bash', 'bash', TEXT + BASH, '% s.sh'),
    ('make', 'make', MAKE, '% -s -j2'),
    ('cc1plus', CC1PLUS, CXX, '% -quiet -imultiarch $(gcc -print-multiarch) -D_GNU_SOURCE -O1 s.cc -o s.s'),
    ('redis-server', 'redis-server', REDIS, "sh c.sh & % --port 0 --unixsocket r.sock --save '' --logfile r.log"),
    ('node', 'node', JSON, "% -e 'const r = JSON.parse(require(\"fs\").readFileSync(\"data.json\")); console.log(new Set(r.map(o => o.name)).size)'"),
    ('as', 'as', ASM, '% -o out.o s.s'),
    ('ld', 'ld', ASM, '% -r -o out.o s.o'),
    ('objdump', 'objdump', ASM, '% -dS s'),
    ('mawk', 'mawk', TEXT, "% '{ n[$2 % 37] += $2; s = s substr($0, 1, 3) } END { for (i in n) print i, n[i], length(s) | \"cat\" }' text"),
    ('find', 'find', REPOSITORY, '% r -name "*e*" -newer r/numbers -o -size +1 -printf "%%p %%s\\n"'),
    ('diff', 'diff', TEXT + 'sed s/7/8/ text > other', '% -u text other || test $? = 1'),
    ('sort', 'sort', TEXT, '% -k2n -u text'),
    ('sed', 'sed', TEXT, "% -n -e 's/line \\([0-9]*\\)/\\1 &/;h;G;/3/p' text"),
    ('openssl', 'openssl', '', '% req -x509 -newkey rsa:1024 -nodes -keyout k -out c -subj /CN=a -days 1'),
    ('curl', 'curl', TEXT, '% -s file://$PWD/text'),
    ('vim', 'vim', TEXT, "% -u NONE -es -c '%s/line/row/g' -c 'g/9/d' -c 'w out' -c 'q!' text"),
]
