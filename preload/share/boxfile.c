/* SPDX-License-Identifier: MIT */
/* boxfile.c - making and mapping the file of a black box; see boxfile.h. */
#include "preload/share/boxfile.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "preload/base/sys.h"
#include "preload/share/process.h"

static char path[LW_OPTION_PATH_BYTES] LW_ROOM;

static bool expand(const char *path_template, const struct lw_region_header *mine)
{
	char exe[LW_EXE_BYTES];
	const char *slash = lw_process_exe(exe, sizeof(exe)) ? strrchr(exe, '/') : NULL;
	struct utsname host;
	struct lw_options_names names = {
		.pid = mine->pid,
		.program = slash ? slash + 1 : exe,
		.host = lw_syscall(SYS_uname, &host) == 0 ? host.nodename : "localhost",
		.time_s = mine->started_real_ns / 1000000000,
	};

	return lw_options_expand(path, sizeof(path), path_template, &names);
}

/* Would a file of this size raise SIGXFSZ? */
static bool is_over_limit(uint64_t bytes)
{
	struct rlimit limit;

	return lw_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	       limit.rlim_cur < bytes;
}

static int create(uint64_t bytes)
{
	int fd, error;

	if (is_over_limit(bytes))
		return -EFBIG;

	(void)lw_syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	fd = (int)lw_syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);
	if (fd < 0)
		return fd;
	error = (int)lw_syscall(SYS_fallocate, fd, 0, 0, bytes);
	if (!error)
		return fd;
	lw_sys_close(fd);
	(void)lw_syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	return error;
}

struct lw_region_header *lw_boxfile_map(const char *path_template, const struct lw_region_header *mine,
		uint64_t bytes, int *refusal)
{
	long at;
	int fd;

	*refusal = -ENAMETOOLONG;
	if (!expand(path_template, mine))
		path[0] = 0;
	fd = path[0] ? create(bytes) : -ENAMETOOLONG;
	if (fd < 0) {
		path[0] = 0;
		*refusal = fd;
		return NULL;
	}
	at = lw_syscall(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	lw_sys_close(fd);
	*refusal = lw_sys_failed(at) ? (int)at : 0;
	if (*refusal)
		path[0] = 0;
	return *refusal ? NULL : (struct lw_region_header *)at;
}

const char *lw_boxfile_path(void)
{
	return path;
}
