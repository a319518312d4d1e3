/* SPDX-License-Identifier: MIT */
/*
 * unit-log.c - messages arrive whole, and never hurt: closed and reused descriptors, full pipes,
 * pipes and sockets without a reader, a stopped terminal, a file-size limit.
 *
 * SIGPIPE and SIGXFSZ keep their deadly default here, and an alarm ends a test that blocks.
 */
#include "preload/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "test/unit/tap.h"

enum { NR_WRITERS = 4, NR_LINES = 500, DEADLINE_S = 30 };

static char got[16384];

static const char *read_all(int fd)
{
	ssize_t n;
	size_t used = 0;

	while ((n = read(fd, got + used, sizeof(got) - 1 - used)) > 0)
		used += (size_t)n;
	got[used] = '\0';
	return got;
}

/* A pipe as the descriptor; what was written is read with read_all(ends[0]), which does not block.
 */
static void open_pipe(int ends[2])
{
	if (pipe(ends) || fcntl(ends[0], F_SETFL, O_NONBLOCK))
		exit(1);
	lw_log_set_fd(ends[1]);
}

static void close_pipe(int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

static bool is_pending(int number)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, number);
}

static bool is_blocked(int number)
{
	sigset_t blocked;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	return sigismember(&blocked, number);
}

/* Stderr stands for the descriptor until another is chosen. */
static void test_stderr(void)
{
	int ends[2], old = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
	uint64_t dropped;

	if (pipe(ends) || fcntl(ends[0], F_SETFL, O_NONBLOCK))
		exit(1);
	dup2(ends[1], STDERR_FILENO);
	lw_log_init();
	lw_log("%s", "to stderr");
	is_str(read_all(ends[0]), "leakwatch: to stderr\n", "a message goes to stderr");
	ok(lw_log_is_same_file(), "which is the file of the start");
	dup2(null, STDERR_FILENO);
	lw_log_init();
	dropped = lw_log_nr_dropped();
	lw_log("%s", "elsewhere");
	ok(!lw_log_is_same_file() && lw_log_nr_dropped() == dropped + 1,
		"another file in its place gets nothing, and it is counted");
	close(STDERR_FILENO);
	lw_log("%s", "nowhere");
	is_u64(lw_log_nr_dropped(), dropped + 2, "nor does a closed one");
	dup2(ends[1], STDERR_FILENO);
	lw_log("%s", "back");
	is_str(read_all(ends[0]), "leakwatch: back\n", "the same pipe again is fine");
	dup2(old, STDERR_FILENO);
	close_pipe(ends);
	close(null);
	close(old);
}

static void test_form(void)
{
	int ends[2];
	char text[3000];

	open_pipe(ends);
	errno = 77;
	lw_log("%d %s %p %zu", -5, "text", NULL, (size_t)7);
	is_u64(errno, 77, "errno is kept");
	is_str(read_all(ends[0]), "leakwatch: -5 text (nil) 7\n", "prefix, message, newline");

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	lw_log("%s", text);
	read_all(ends[0]);
	ok(strlen(got) == LW_LOG_BYTES && !strcmp(got + LW_LOG_BYTES - 5, "x...\n"),
		"a long message is cut at 1 KiB, and looks it");
	lw_log("%.*s", LW_LOG_BYTES - 12, text);
	read_all(ends[0]);
	ok(strlen(got) == LW_LOG_BYTES && !strcmp(got + LW_LOG_BYTES - 3, "xx\n"),
		"the longest one that fits is whole");
	lw_log_line(NULL, "a finished line");
	is_str(read_all(ends[0]), "a finished line\n", "a finished line has no prefix");
	lw_log_line(NULL, text);
	is_u64(strlen(read_all(ends[0])), LW_LOG_BYTES, "it is cut too");

	ok(lw_log_once(LW_LOG_OTHER, "%d", 1), "a cause is named");
	ok(!lw_log_once(LW_LOG_OTHER, "%d", 2), "once");
	ok(lw_log_once(LW_LOG_QUEUE, "%d", 3), "another cause too");
	is_str(read_all(ends[0]), "leakwatch: 1\nleakwatch: 3\n", "and that is what arrives");
	ok(lw_log_text(text, sizeof(text) - 1), "text of any length");
	is_str(read_all(ends[0]), text, "arrives as it is");
	close_pipe(ends);
	lw_log_set_fd(-1);
	ok(!lw_log_text("x", 1), "descriptor -1 is silence");
}

static void test_pipe(void)
{
	int ends[2];
	uint64_t dropped;

	open_pipe(ends);
	dropped = lw_log_nr_dropped();
	for (int i = 0; i < 1000; i++)
		lw_log("%0500d", i);
	ok(lw_log_nr_dropped() > dropped,
		"a full pipe does not block, messages are counted as dropped");
	read_all(ends[0]);
	close(ends[0]);
	dropped = lw_log_nr_dropped();
	errno = 77;
	lw_log("%s", "nobody");
	ok(lw_log_nr_dropped() == dropped + 1 && errno == 77,
		"a pipe nobody reads raises no SIGPIPE");
	ok(!is_pending(SIGPIPE) && !is_blocked(SIGPIPE), "and leaves none behind");
	close(ends[1]);
}

static void test_socket(void)
{
	int ends[2], nr = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		exit(1);
	lw_log_set_fd(ends[1]);
	lw_log("%s", "hello");
	got[read(ends[0], got, sizeof(got) - 1)] = '\0';
	is_str(got, "leakwatch: hello\n", "a socket gets it");
	while (nr < 100000 && lw_log_text("0123456789abcdef", 16))
		nr++;
	ok(nr < 100000, "a full socket does not block (%d)", nr);
	close(ends[0]);
	ok(!lw_log_text("x", 1), "nor does a closed one kill");
	close(ends[1]);
}

static void test_terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave, nr = 0;

	if (master < 0 || grantpt(master) || unlockpt(master) ||
		(slave = open(ptsname(master), O_RDWR | O_NOCTTY)) < 0) {
		ok(true, "a terminal # SKIP no pseudo-terminals here");
		return;
	}
	lw_log_set_fd(slave);
	ok(lw_log_text("x", 1), "a terminal gets it");
	tcflow(slave, TCOOFF);
	while (nr < 100000 && lw_log_text("0123456789abcdef", 16))
		nr++;
	ok(nr < 100000, "a stopped terminal does not block (%d)", nr);
	tcflow(slave, TCOON);
	close(slave);
	close(master);
}

/* The one case where a signal is sure to be raised: the kernel has no MSG_NOSIGNAL for it. */
static void test_file_limit(void)
{
	char name[] = "/tmp/unit-log.XXXXXX";
	int file = mkstemp(name);
	struct rlimit old, none;
	sigset_t limit_signal;

	lw_log_set_fd(file);
	getrlimit(RLIMIT_FSIZE, &old);
	none = (struct rlimit){0, old.rlim_max};
	setrlimit(RLIMIT_FSIZE, &none);
	ok(!lw_log_text("x", 1), "a file-size limit of 0 does not kill");
	ok(!is_pending(SIGXFSZ) && !is_blocked(SIGXFSZ), "the signal is taken back");

	sigemptyset(&limit_signal);
	sigaddset(&limit_signal, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &limit_signal, NULL);
	raise(SIGXFSZ);
	lw_log_text("x", 1);
	ok(is_pending(SIGXFSZ) && is_blocked(SIGXFSZ),
		"one that the target had pending stays its own");
	sigtimedwait(&limit_signal, NULL, &(struct timespec){0});
	sigprocmask(SIG_UNBLOCK, &limit_signal, NULL);

	setrlimit(RLIMIT_FSIZE, &old);
	ok(lw_log_text("y", 1), "without the limit the file is written again");
	lseek(file, 0, SEEK_SET);
	is_str(read_all(file), "y", "with what was not dropped");
	unlink(name);
	close(file);
}

static void *write_lines(void *arg)
{
	for (int i = 0; i < NR_LINES; i++)
		lw_log("%c%0200d", *(const char *)arg, i);
	return NULL;
}

static void start_writers(pthread_t writers[NR_WRITERS])
{
	static const char names[NR_WRITERS] = "abcd";

	for (int i = 0; i < NR_WRITERS; i++)
		pthread_create(&writers[i], NULL, write_lines, (void *)(uintptr_t)&names[i]);
}

static void test_threads(void)
{
	enum { LINE_BYTES = 11 + 1 + 200 + 1 };
	pthread_t writers[NR_WRITERS];
	uint64_t dropped = lw_log_nr_dropped(), nr_lines = 0;
	char line[LINE_BYTES];
	bool is_whole = true;
	int ends[2];
	FILE *stream;

	open_pipe(ends);
	start_writers(writers);
	for (int i = 0; i < NR_WRITERS; i++)
		pthread_join(writers[i], NULL);
	stream = fdopen(ends[0], "r");
	for (; fread(line, 1, LINE_BYTES, stream) == LINE_BYTES; nr_lines++)
		is_whole &= !memcmp(line, "leakwatch: ", 11) && line[LINE_BYTES - 1] == '\n';
	ok(is_whole && nr_lines, "lines of %d threads do not mix", NR_WRITERS);
	is_u64(nr_lines + lw_log_nr_dropped() - dropped, NR_WRITERS * NR_LINES,
		"each line has arrived or is counted");
	fclose(stream);
	close(ends[1]);

	for (int round = 0; round < 20; round++) {
		open_pipe(ends);
		start_writers(writers);
		while (read(ends[0], got, 1000) < 0)
			;
		close(ends[0]);
		for (int i = 0; i < NR_WRITERS; i++)
			pthread_join(writers[i], NULL);
		close(ends[1]);
	}
	ok(true, "a reader that leaves in the middle kills nobody");
}

int main(void)
{
	alarm(DEADLINE_S);
	test_stderr();
	test_form();
	test_pipe();
	test_socket();
	test_terminal();
	test_file_limit();
	test_threads();
	return done();
}
