# SPDX-License-Identifier: MIT
# As probe.py, in Perl.
use strict;
use warnings;
use POSIX ();

open my $status, '<', '/proc/self/status' or die;
print grep { /^(Sig(Pnd|Blk|Ign|Cgt)|Shd|Umask|Threads)/ } <$status>;
close $status;
opendir my $fds, '/proc/self/fd' or die;
print join(' ', sort grep { !/^\./ } readdir $fds), "\n";
closedir $fds;
print join(' ', sort grep { !/^(LD_PRELOAD|LEAKWATCH_OPTIONS)$/ } keys %ENV), ' ', POSIX::getcwd(), "\n";
my (%count, %by);
for my $i (1 .. 20000) {
	my $word = sprintf 'w%d', $i * 7919 % 1009;
	$count{$word}++;
	push @{$by{length $word}}, $word;
}
print join(',', map { "$_=$count{$_}" } (sort keys %count)[0 .. 20]), ' ', scalar @{$by{4}}, "\n";
print scalar(my @parts = split /[05]/, join('', 1 .. 5000)), "\n";
my $pid = fork;
exit 9 unless $pid;
waitpid $pid, 0;
print $? >> 8, ' ', `echo captured 2>&1`;
$SIG{USR1} = sub { print "signal\n" };
kill USR1 => $$;
exit 3;
