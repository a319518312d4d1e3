/* SPDX-License-Identifier: MIT */
/* process.c - reading how this process was started; see process.h. */
#include "preload/share/process.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/shm.h>

#include "preload/base/sys.h"
#include "preload/share/limits.h"

extern void *__libc_stack_end; /* at process entry: argc, argv, NULL, envp, NULL, auxv */

enum {
	MAX_ANCESTORS = 32,
	TICKS_PER_S = 100, /* USER_HZ, the unit of times in /proc */
};

static const char *const *find_environment(void)
{
	const uintptr_t *top = __libc_stack_end;
	uintptr_t argc = top ? top[0] : 0;

	if (!top || argc > (1u << 24) || top[1 + argc])
		return NULL; /* not what the kernel leaves: another loader */
	return (const char *const *)(top + 1 + argc + 1);
}

const char *lw_process_env(const char *name)
{
	const char *const *env = find_environment();
	size_t bytes = strlen(name);

	for (size_t i = 0; env && env[i]; i++) {
		if (!strncmp(env[i], name, bytes) && env[i][bytes] == '=')
			return env[i] + bytes + 1;
	}
	return NULL;
}

unsigned long lw_process_aux(unsigned long type)
{
	const char *const *env = find_environment();
	const Elf64_auxv_t *aux;

	if (!env)
		return 0;
	while (*env)
		env++;
	for (aux = (const Elf64_auxv_t *)(env + 1); aux->a_type != AT_NULL; aux++) {
		if (aux->a_type == type)
			return aux->a_un.a_val;
	}
	return 0;
}

/* The arguments, each with its NUL, as many as fit: they lie one after another on the stack. */
static uint32_t copy_arguments(char *out, size_t out_bytes)
{
	const uintptr_t *top = __libc_stack_end;
	size_t used = 0;

	if (!find_environment())
		return 0;
	for (uintptr_t i = 0; i < top[0]; i++) {
		const char *argument = (const char *)top[1 + i];
		size_t bytes = argument ? strnlen(argument, out_bytes) + 1 : 0;

		if (!bytes || bytes > out_bytes - used)
			break; /* a program that writes a title of its own over them leaves holes */
		memcpy(out + used, argument, bytes);
		used += bytes;
	}
	return (uint32_t)used;
}

/* Without /proc: what the program was called by. */
static uint32_t copy_exec_name(char *out, size_t out_bytes)
{
	const char *name = (const char *)lw_process_aux(AT_EXECFN);
	size_t bytes = name ? strnlen(name, out_bytes - 1) : 0;

	if (bytes)
		memcpy(out, name, bytes);
	return (uint32_t)bytes;
}

static void describe_stderr(struct lw_region_header *header)
{
	struct stat st;
	char termios[64];

	if (lw_syscall(SYS_fstat, 2, &st) < 0)
		return;
	header->flags |= LW_REGION_STDERR_OPEN;
	header->stderr_dev = st.st_dev;
	header->stderr_ino = st.st_ino;
	if (S_ISCHR(st.st_mode) && lw_syscall(SYS_ioctl, 2, 0x5401 /* TCGETS */, termios) == 0)
		header->flags |= LW_REGION_STDERR_TTY;
}

uint32_t lw_process_exe(char *out, size_t out_bytes)
{
	long bytes = lw_syscall(SYS_readlink, "/proc/self/exe", out, out_bytes - 1);
	uint32_t used = bytes > 0 ? (uint32_t)bytes : copy_exec_name(out, out_bytes);

	out[used] = 0;
	return used;
}

void lw_process_name(struct lw_region_header *header)
{
	header->exe_bytes = lw_process_exe(header->exe, sizeof(header->exe));
	header->cmdline_bytes = copy_arguments(header->cmdline, sizeof(header->cmdline));
}

static bool is_subreaper(void)
{
	int is_one = 0; /* exec leaves it as it was */

	return !lw_syscall(SYS_prctl, PR_GET_CHILD_SUBREAPER, &is_one) && is_one;
}

void lw_process_describe(struct lw_region_header *header)
{
	header->pid = lw_sys_getpid();
	header->ppid = (int32_t)lw_syscall(SYS_getppid, 0);
	header->uid = (uint32_t)lw_syscall(SYS_geteuid, 0);
	header->started_mono_ns = lw_sys_clock_ns(CLOCK_MONOTONIC);
	header->started_real_ns = lw_sys_clock_ns(CLOCK_REALTIME);
	header->exit_status = -1;
	header->flags = header->pid == 1 || is_subreaper() ? LW_REGION_REAPER : 0;
	header->flags |= lw_limits_poor() ? LW_REGION_POOR : 0;
	header->start_ticks = lw_sys_clock_ns(CLOCK_BOOTTIME) / (1000000000 / TICKS_PER_S);
	describe_stderr(header);
}

/*
 * The flags of the region of a watched process, or of the image that an exec of ours replaced. It is
 * taken for that process's when the process made it (shm_cpid) and it is still mapped by somebody or
 * our own: one look-up and no reading of /proc, since every process that starts comes by here.
 */
static bool find_watched(int32_t pid, uint32_t *flags)
{
	const struct lw_region_header *region;
	struct shmid_ds segment;
	const char *why;
	uint64_t bytes;
	int shmid, err;

	for (unsigned attempt = 0; attempt < LW_REGION_KEYS; attempt++) {
		shmid = (int)lw_syscall(SYS_shmget, lw_region_key(pid, attempt), 0, 0);
		if (shmid < 0) /* a hole: who was there when this key was passed by is gone */
			continue;
		if (lw_syscall(SYS_shmctl, shmid, IPC_STAT, &segment) < 0 || segment.shm_cpid != pid ||
				(!segment.shm_nattch && pid != lw_sys_getpid()))
			continue;
		*flags = 0;
		err = lw_region_attach_id(shmid, &region, &bytes, &why);
		if (err == -EAGAIN && pid != lw_sys_getpid()) /* still empty, or only a sign: see lw_box_put_sign() */
			return segment.shm_segsz % 4096 == LW_REGION_TAIL_BYTES;
		if (err)
			continue;
		*flags = region->flags;
		bytes = (uint64_t)(region->pid == pid);
		lw_region_detach(region);
		if (bytes)
			return true;
	}
	return false;
}

static bool is_plain_child; /* kept over fork: so is a child's child */

static bool look_for_parent(void)
{
	long shmid = lw_syscall(SYS_shmget, lw_region_key(lw_sys_getpid(), 0), 0, 0);
	int32_t parent = (int32_t)lw_syscall(SYS_getppid, 0);
	struct shmid_ds segment;

	if (shmid != -ENOENT)
		return false;
	shmid = lw_syscall(SYS_shmget, lw_region_key(parent, 0), 0, 0);
	return shmid >= 0 && lw_syscall(SYS_shmctl, shmid, IPC_STAT, &segment) >= 0 &&
	       segment.shm_cpid == parent && segment.shm_nattch &&
	       segment.shm_segsz % 4096 == LW_REGION_TAIL_BYTES;
}

bool lw_process_is_plain_child(void)
{
	if (!is_plain_child)
		is_plain_child = look_for_parent();
	return is_plain_child;
}

uint32_t lw_process_under(uint32_t flags)
{
	return flags & (LW_REGION_REAPER | LW_REGION_UNDER_REAPER) ? LW_REGION_UNDER_REAPER : 0;
}

uint32_t lw_process_place(const struct lw_region_header *header)
{
	int32_t pid = header->ppid, leader = (int32_t)lw_syscall(SYS_getsid, 0), next;
	bool is_child = lw_process_is_plain_child();
	uint64_t start_ticks;
	uint32_t flags;

	/* exec keeps the pid: the image before us knew what it was */
	if (!is_child && find_watched(header->pid, &flags))
		return flags & (LW_REGION_ROOT | LW_REGION_UNDER_REAPER);
	for (unsigned i = 0; i < MAX_ANCESTORS && pid > 0; i++, pid = next) {
		if (find_watched(pid, &flags))
			return lw_process_under(flags);
		if (pid == 1 || !lw_region_proc_stat(pid, &start_ticks, &next))
			break;
	}
	/* a parent that is gone already leaves us its session */
	if (leader > 0 && leader != header->pid && find_watched(leader, &flags))
		return lw_process_under(flags);
	return is_child ? 0 : LW_REGION_ROOT;
}
