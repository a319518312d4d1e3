/* SPDX-License-Identifier: MIT */
/*
 * log.c - messages built on the stack, sent with one write that cannot hurt the target.
 *
 * What can go wrong when a library writes to a descriptor of its host, and what is done here:
 *   - the target closed it, and opened its database there: device and inode must still be those
 *     of the start.
 *   - a full pipe, a stopped terminal, a socket nobody reads: poll() with timeout 0 first. It
 *     promises one page of room in a pipe; a piece is 1 KiB.
 *   - a pipe nobody reads (SIGPIPE), a file-size limit (SIGXFSZ), a terminal with `tostop` and us
 *     in the background (SIGTTOU, which stops the process; when blocked the write is let through):
 *     the three are blocked in this thread around the write. The first two then stay pending and
 *     are taken back, unless one was pending before, which is the target's.
 *
 * All of it by raw system calls, since the target may interpose write, poll and sigprocmask. The
 * kernel's signal set is one 64-bit word; glibc's is not, and takes its own signals out.
 */
#include "preload/base/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char prefix[] = "leakwatch: ";
static const char cut_mark[] = "...";

#define SIGNAL_BIT(signal) (UINT64_C(1) << ((signal)-1))
static const uint64_t write_signals =
	SIGNAL_BIT(SIGPIPE) | SIGNAL_BIT(SIGXFSZ) | SIGNAL_BIT(SIGTTOU);

enum target_state { UNKNOWN, CLOSED, OPEN };

/* Where messages go. Written by lw_log_set_fd; state is stored last, with release order. */
static struct {
	int state; /* enum target_state */
	int fd;
	dev_t dev;
	ino_t ino;
} target;

static uint64_t causes_named; /* bit per enum lw_log_cause, atomic */
static uint64_t nr_dropped;   /* atomic add */

_Static_assert(LW_NR_LOG_CAUSES <= 64, "one bit each");

static bool raw_fstat(int fd, struct stat *file)
{
	return fd >= 0 && !syscall(SYS_fstat, fd, file);
}

void lw_log_set_fd(int fd)
{
	int saved_errno = errno;
	struct stat file;
	bool is_open = raw_fstat(fd, &file);

	lw_store_release(&target.state, CLOSED);
	target.fd = fd;
	target.dev = is_open ? file.st_dev : 0;
	target.ino = is_open ? file.st_ino : 0;
	lw_store_release(&target.state, is_open ? OPEN : CLOSED);
	errno = saved_errno;
}

void lw_log_init(void)
{
	if (lw_load_acquire(&target.state) == UNKNOWN)
		lw_log_set_fd(STDERR_FILENO);
}

/* On success *file is what the descriptor is now. */
static bool find_target(int *fd, struct stat *file)
{
	lw_log_init();
	if (lw_load_acquire(&target.state) != OPEN)
		return false;
	*fd = target.fd;
	return raw_fstat(*fd, file) && file->st_dev == target.dev && file->st_ino == target.ino;
}

bool lw_log_is_same_file(void)
{
	int saved_errno = errno, fd;
	struct stat file;
	bool is_same = find_target(&fd, &file);

	errno = saved_errno;
	return is_same;
}

static bool takes_bytes_now(int fd, mode_t mode)
{
	struct pollfd wanted = {.fd = fd, .events = POLLOUT};
	struct timespec no_time = {0};

	if (S_ISREG(mode))
		return true;
	return syscall(SYS_ppoll, &wanted, 1, &no_time, NULL, 0) == 1 &&
	       (wanted.revents & (POLLOUT | POLLERR | POLLHUP | POLLNVAL)) == POLLOUT;
}

/*
 * Between poll() and here another writer may have filled the pipe. Newer kernels can be told not to
 * wait for one write alone (O_NONBLOCK would change the pipe for the target too); older ones refuse
 * the flag, and the small window stays.
 */
static long write_pipe(int fd, const char *text, size_t nr_bytes)
{
	struct iovec piece = {.iov_base = (void *)(uintptr_t)text, .iov_len = nr_bytes};
	long n = syscall(SYS_pwritev2, fd, &piece, 1, -1L, -1L, RWF_NOWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR && errno != EPIPE)
		n = syscall(SYS_write, fd, text, nr_bytes);
	return n;
}

static long write_some(int fd, mode_t mode, const char *text, size_t nr_bytes)
{
	if (S_ISFIFO(mode))
		return write_pipe(fd, text, nr_bytes);
	if (S_ISSOCK(mode))
		return syscall(
			SYS_sendto, fd, text, nr_bytes, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
	return syscall(SYS_write, fd, text, nr_bytes);
}

/* Takes back the signal that a failed write left pending. */
static void consume_signal(uint64_t pending_before)
{
	uint64_t raised = errno == EPIPE   ? SIGNAL_BIT(SIGPIPE)
			  : errno == EFBIG ? SIGNAL_BIT(SIGXFSZ)
					   : 0;
	struct timespec no_time = {0};

	if (raised & ~pending_before)
		syscall(SYS_rt_sigtimedwait, &raised, NULL, &no_time, sizeof(raised));
}

/* Called with write_signals blocked. */
static bool write_all(
	int fd, mode_t mode, const char *text, size_t nr_bytes, uint64_t pending_before)
{
	while (nr_bytes) {
		size_t piece_bytes = nr_bytes < LW_LOG_BYTES ? nr_bytes : LW_LOG_BYTES;
		long n;

		if (!takes_bytes_now(fd, mode))
			return false;
		n = write_some(fd, mode, text, piece_bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (n < 0)
				consume_signal(pending_before);
			return false;
		}
		text += n;
		nr_bytes -= (size_t)n;
	}
	return true;
}

bool lw_log_text(const char *text, size_t nr_bytes)
{
	uint64_t old_mask, pending = 0;
	int saved_errno = errno, fd;
	bool is_written = false;
	struct stat file;

	if (find_target(&fd, &file) && !syscall(SYS_rt_sigprocmask, SIG_BLOCK, &write_signals,
					       &old_mask, sizeof(old_mask))) {
		syscall(SYS_rt_sigpending, &pending, sizeof(pending));
		is_written = write_all(fd, file.st_mode, text, nr_bytes, pending);
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old_mask, NULL, sizeof(old_mask));
	}
	if (!is_written)
		lw_add(&nr_dropped, 1);
	errno = saved_errno;
	return is_written;
}

/* nr_bytes is what the message would have needed; buffer holds LW_LOG_BYTES. */
static void finish_and_write(char *buffer, size_t nr_bytes)
{
	if (nr_bytes > LW_LOG_BYTES - 1) {
		nr_bytes = LW_LOG_BYTES - 1;
		memcpy(buffer + nr_bytes - strlen(cut_mark), cut_mark, strlen(cut_mark));
	}
	buffer[nr_bytes++] = '\n';
	lw_log_text(buffer, nr_bytes);
}

static void log_args(const char *fmt, va_list ap)
{
	enum { PREFIX_BYTES = sizeof(prefix) - 1 };
	char buffer[LW_LOG_BYTES];
	int saved_errno = errno, n;

	memcpy(buffer, prefix, PREFIX_BYTES);
	n = vsnprintf(buffer + PREFIX_BYTES, sizeof(buffer) - PREFIX_BYTES, fmt, ap);
	finish_and_write(buffer, PREFIX_BYTES + (n > 0 ? (size_t)n : 0));
	errno = saved_errno;
}

void lw_log(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_args(fmt, ap);
	va_end(ap);
}

bool lw_log_once(enum lw_log_cause cause, const char *fmt, ...)
{
	uint64_t bit = UINT64_C(1) << cause;
	va_list ap;

	if (__atomic_fetch_or(&causes_named, bit, __ATOMIC_RELAXED) & bit)
		return false;
	va_start(ap, fmt);
	log_args(fmt, ap);
	va_end(ap);
	return true;
}

void lw_log_line(void *unused, const char *line)
{
	char buffer[LW_LOG_BYTES];
	size_t nr_bytes = strlen(line);

	(void)unused;
	memcpy(buffer, line, nr_bytes < sizeof(buffer) ? nr_bytes : sizeof(buffer));
	finish_and_write(buffer, nr_bytes);
}

uint64_t lw_log_nr_dropped(void)
{
	return lw_load(&nr_dropped);
}
