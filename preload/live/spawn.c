/* SPDX-License-Identifier: MIT */
/* spawn.c - orphans, and a child at the end, by raw clone and exec; see spawn.h. */
#include "preload/live/spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/base/mem.h"
#include "preload/base/sys.h"
#include "preload/share/limits.h"

enum { MAX_ENV = 512, ANY_CHILD = 0x40000000 /* __WALL */ };

static char library_dir[LW_SPAWN_PATH_BYTES] LW_ROOM;
static const char *programs_dir = "";

void lw_spawn_init(const char *programs)
{
	struct dl_find_object self;
	const char *name, *slash;
	long used = 0;

	programs_dir = programs;
	library_dir[0] = 0;
	if (_dl_find_object(library_dir, &self) || !self.dlfo_link_map->l_name)
		return;
	name = self.dlfo_link_map->l_name;
	slash = strrchr(name, '/');
	if (!slash || (size_t)(slash - name) >= sizeof(library_dir) / 2)
		return;
	if (name[0] != '/') {
		used = lw_syscall(SYS_getcwd, library_dir, sizeof(library_dir) / 2);
		if (used < 1)
			return;
		library_dir[used - 1] = '/';
	}
	memcpy(library_dir + used, name, (size_t)(slash - name));
	library_dir[used + (slash - name)] = 0;
}

static bool try_path(char *out, size_t out_bytes, const char *dir, const char *below, const char *name)
{
	if (!dir[0] || strlen(dir) + strlen(below) + strlen(name) + 2 > out_bytes)
		return false;
	stpcpy(stpcpy(stpcpy(stpcpy(out, dir), below), "/"), name);
	return lw_syscall(SYS_faccessat, AT_FDCWD, out, 1 /* X_OK */) == 0;
}

bool lw_spawn_find(const char *name, char *out, size_t out_bytes)
{
	const char *room = strrchr(name, '-'); /* leakwatch-cleaner: cleaner/ of the build tree */
	char below[64];

	if (programs_dir[0])
		return try_path(out, out_bytes, programs_dir, "", name);
	stpcpy(stpcpy(below, "/../"), room ? room + 1 : "");
	return try_path(out, out_bytes, library_dir, "", name) ||
	       try_path(out, out_bytes, library_dir, below, name) ||
	       try_path(out, out_bytes, library_dir, "/../../bin", name) || /* a tree that was moved */
	       try_path(out, out_bytes, library_dir, "/../../../bin", name) ||
	       try_path(out, out_bytes, library_dir, "/../../libexec/leakwatch", name) ||
	       try_path(out, out_bytes, library_dir, "/../../../libexec/leakwatch", name) ||
	       try_path(out, out_bytes, LW_LIBEXECDIR, "", name) ||
	       try_path(out, out_bytes, LW_BINDIR, "", name);
}

/* What the orphan must not inherit: preloads, library paths of the target, our own settings. */
static bool is_for_orphan(const char *entry)
{
	return strncmp(entry, "LD_", 3) && strncmp(entry, "LEAKWATCH_OPTIONS=", 18) &&
	       strncmp(entry, "MALLOC_", 7) && strncmp(entry, "GLIBC_TUNABLES=", 15);
}

/* Closes every descriptor from first to last, where the kernel knows how. */
static void close_all(unsigned first, unsigned last)
{
	if (first <= last)
		(void)lw_syscall(SYS_close_range, first, last, 0);
}

struct orphan {
	const char *const *argv;
	const char *const *env;
	int stdin_fd, keep_fd;
	bool keep_stderr, is_child;
	struct lw_spawn_needs needs;
	volatile int pid, error;
};

/* Raised as far as they go, do its limits allow what is needed? 0, or -errno. */
static int missing(const struct orphan *orphan)
{
	if (lw_limits_hard(LW_LIMIT_FILES) < orphan->needs.files)
		return -EMFILE;
	return orphan->needs.limits & lw_limits_poor() ? -EFBIG : 0;
}

/* In the orphan, which shares the target's memory: raw system calls, no return. */
static __attribute__((noreturn)) void run(struct orphan *orphan)
{
	unsigned keep = (unsigned)orphan->keep_fd;

	(void)lw_syscall(SYS_setsid, 0);
	close_all(0, 1);
	if (orphan->stdin_fd >= 0)
		(void)lw_syscall(SYS_dup3, orphan->stdin_fd, 0, 0);
	if (orphan->keep_stderr)
		(void)lw_syscall(SYS_fcntl, 2, F_SETFD, 0); /* some programs mark it close-on-exec */
	else
		lw_sys_close(2);
	if (orphan->keep_fd >= 3) {
		close_all(3, keep - 1);
		close_all(keep + 1, ~0u);
		(void)lw_syscall(SYS_fcntl, keep, F_SETFD, 0);
	} else {
		close_all(3, ~0u);
	}
	lw_limits_raise();
	orphan->error = missing(orphan);
	if (!orphan->error)
		orphan->error = (int)lw_syscall(SYS_execve, orphan->argv[0], orphan->argv, orphan->env);
	for (;;)
		(void)lw_syscall(SYS_exit, 127);
}

/* vfork without its C wrapper: the child runs on this stack, below this frame, until it is gone. */
static int clone_suspended(void)
{
	return (int)lw_syscall(SYS_clone, CLONE_VM | CLONE_VFORK, 0, 0, 0, 0);
}

static __attribute__((noreturn, noinline)) void run_between(struct orphan *orphan)
{
	int pid = clone_suspended();

	if (pid == 0)
		run(orphan);
	orphan->pid = pid;
	for (;;)
		(void)lw_syscall(SYS_exit, 0);
}

static __attribute__((noinline)) int start(struct orphan *orphan)
{
	int between = clone_suspended();

	if (between == 0 && orphan->is_child)
		run(orphan);
	if (between == 0)
		run_between(orphan);
	if (between < 0)
		return between;
	if (orphan->is_child)
		return orphan->error ? orphan->error : between;
	while (lw_syscall(SYS_wait4, between, 0, ANY_CHILD, 0) == -EINTR)
		;
	if (orphan->pid < 0)
		return orphan->pid;
	return orphan->error ? orphan->error : orphan->pid;
}

static int spawn(struct orphan *orphan)
{
	const char **env = lw_mem_map((MAX_ENV + 1) * sizeof(*env), "leakwatch spawn"); /* not on a small stack */
	uint64_t before;
	size_t nr_env = 0;
	int pid, is_subreaper = 0;

	if (!env)
		return -ENOMEM;
	/* libc's, not the stack's: servers write their titles over that; NULL before libc is set up */
	for (size_t i = 0; environ && nr_env < MAX_ENV && environ[i]; i++) {
		if (is_for_orphan(environ[i]))
			env[nr_env++] = environ[i];
	}
	env[nr_env] = NULL;
	orphan->env = env;
	lw_sys_block_signals(&before);
	/* a program that adopts orphans must not be given ours: it may wait for all its children */
	(void)lw_syscall(SYS_prctl, PR_GET_CHILD_SUBREAPER, &is_subreaper);
	if (is_subreaper)
		(void)lw_syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 0);
	pid = start(orphan);
	if (is_subreaper)
		(void)lw_syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1);
	lw_sys_restore_signals(&before);
	lw_mem_unmap(env, (MAX_ENV + 1) * sizeof(*env));
	return pid;
}

int lw_spawn(const char *const *argv, int stdin_fd, int keep_fd, bool keep_stderr, struct lw_spawn_needs needs)
{
	struct orphan orphan = { .argv = argv,
		.stdin_fd = stdin_fd,
		.keep_fd = keep_fd,
		.keep_stderr = keep_stderr,
		.needs = needs };

	return spawn(&orphan);
}

static const uint64_t child_bit = UINT64_C(1) << (SIGCHLD - 1);

int lw_spawn_child(const char *const *argv, int stdin_fd, int keep_fd, bool keep_stderr, struct lw_spawn_needs needs,
		uint64_t *before)
{
	struct orphan child = { .argv = argv,
		.stdin_fd = stdin_fd,
		.keep_fd = keep_fd,
		.keep_stderr = keep_stderr,
		.needs = needs,
		.is_child = true };

	*before = 0;
	(void)lw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, &child_bit, before, sizeof(child_bit));
	return spawn(&child);
}

void lw_spawn_reap(int pid, bool does_end, uint64_t before)
{
	struct timespec now = { 0 };

	while (pid > 0 && lw_syscall(SYS_wait4, pid, 0, ANY_CHILD | (does_end ? 0 : WNOHANG), 0) == -EINTR)
		;
	if (pid > 0 && !(before & child_bit))
		(void)lw_syscall(SYS_rt_sigtimedwait, &child_bit, 0, &now, sizeof(child_bit));
	lw_sys_restore_signals(&before);
}
