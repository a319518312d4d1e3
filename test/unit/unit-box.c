/* SPDX-License-Identifier: MIT */
/*
 * unit-box.c - a process gets a region of its own whatever stands under its keys, a forked child one that holds
 * what it needs of its parent's, and where the system has no segment for us, private memory will do.
 *
 * Each case runs in a child, whose pid gives it keys of its own. It says by its exit status which of
 * its expectations failed, one bit each; everything it puts under its keys it removes itself.
 */
#include "test/unit/tap.h"
#include "test/unit/tables.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT = 77, NR_FORKS = 60 };

static int run(int (*body)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (!pid)
		_exit(body());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test(int (*body)(void), const char *what)
{
	int status = run(body);

	if (status == CANNOT)
		ok(true, "%s # SKIP this system does not let us", what);
	else
		is_u64((uint64_t)status, 0, "%s", what);
}

static bool create(void)
{
	int refusal;

	lw_options_init(&tables_options);
	tables_options.max_sites = 2048;
	if (!lw_box_create(&tables_options, 0, &refusal))
		return false;
	lw_store(&lw_box->state, LW_STATE_RUNNING);
	return true;
}

/* Under which of our keys a segment lies, as a number of attempts; -1 none. */
static int attempt_of(int shmid)
{
	for (unsigned attempt = 0; attempt < LW_REGION_KEYS; attempt++) {
		if (shmget(lw_region_key(getpid(), attempt), 0, 0) == shmid)
			return (int)attempt;
	}
	return -1;
}

/* Whatever lies under one of our keys. */
static unsigned remove_all(void)
{
	unsigned nr = 0;

	for (unsigned attempt = 0; attempt < LW_REGION_KEYS; attempt++) {
		int shmid = shmget(lw_region_key(getpid(), attempt), 0, 0);

		nr += shmid >= 0 && !shmctl(shmid, IPC_RMID, NULL);
	}
	return nr;
}

/* A segment under our key, with a region in it that says of itself what `edit` makes it say. */
static int plant(unsigned attempt, void (*edit)(struct lw_region_header *))
{
	static struct lw_region_header header;
	uint64_t bytes = lw_region_layout(&header, 1024);
	int shmid = shmget(lw_region_key(getpid(), attempt), bytes, IPC_CREAT | IPC_EXCL | 0600);
	void *at = shmid < 0 ? (void *)-1 : shmat(shmid, NULL, 0);

	if (at == (void *)-1)
		_exit(CANNOT);
	header.magic = LW_REGION_MAGIC;
	header.version = LW_REGION_VERSION;
	header.pid = getpid();
	header.state = LW_STATE_RUNNING;
	edit(&header);
	memcpy(at, &header, sizeof(header));
	(void)shmdt(at);
	return shmid;
}

/* ---- creating ---- */

static int is_created(void)
{
	const struct lw_region_header *found;
	struct shmid_ds stat;
	uint64_t bytes;
	const char *why;
	int shmid, wrong = 0;

	if (!create())
		return 1;
	wrong |= (lw_box->flags & LW_REGION_PRIVATE || attempt_of(lw_box->shmid) != 0) << 1;
	wrong |= (shmctl(lw_box->shmid, IPC_STAT, &stat) || (stat.shm_perm.mode & 0777) != 0600) << 2;
	wrong |= (lw_region_attach(getpid(), lw_box->start_ticks, &found, &bytes, &shmid, &why) != 0) << 3;
	wrong |= (shmid != lw_box->shmid || found->pid != getpid()) << 4;
	wrong |= (lw_box->nr_sites != 1 || lw_box->pool_used == 0 || lw_box->nr_rows != 1) << 5;
	lw_box_remove();
	wrong |= (attempt_of(shmid) != -1) << 6;
	lw_box->nr_hints = lw_own.nr_hints = 5; /* the memory stays ours */
	return wrong;
}

static void edit_nothing(struct lw_region_header *header)
{
	(void)header;
}

static void edit_dead(struct lw_region_header *header)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	(void)waitpid(pid, NULL, 0);
	header->pid = pid;
	header->state = LW_STATE_REPORTED;
}

static void edit_unreported(struct lw_region_header *header)
{
	edit_dead(header);
	header->state = LW_STATE_RUNNING; /* killed: the cleaner has yet to say what it held */
}

static void edit_reused(struct lw_region_header *header)
{
	header->pid = getppid();
	header->start_ticks = 1; /* when the parent cannot have been started */
	header->state = LW_STATE_REPORTED;
}

static void edit_living(struct lw_region_header *header)
{
	int32_t ppid;

	header->pid = getppid();
	(void)lw_region_proc_stat(header->pid, &header->start_ticks, &ppid);
}

static void edit_garbage(struct lw_region_header *header)
{
	memset(header, 0x5a, sizeof(*header));
}

static void edit_version(struct lw_region_header *header)
{
	header->version++;
}

/* With a segment under our first key: is it replaced (attempt 0), or left alone (1)? */
static int stands_at(void (*edit)(struct lw_region_header *), int attempt)
{
	int planted = plant(0, edit), wrong = 0;
	struct shmid_ds stat;

	if (!create())
		return 1;
	wrong |= (attempt_of(lw_box->shmid) != attempt) << 1;
	wrong |= ((shmctl(planted, IPC_STAT, &stat) == 0) != (attempt != 0)) << 2;
	remove_all();
	return wrong;
}

static int replaces_own(void)
{
	return stands_at(edit_nothing, 0);
}

static int replaces_dead(void)
{
	return stands_at(edit_dead, 0);
}

static int replaces_reused(void)
{
	return stands_at(edit_reused, 0);
}

static int leaves_unreported(void)
{
	return stands_at(edit_unreported, 1);
}

static int leaves_living(void)
{
	return stands_at(edit_living, 1);
}

static int leaves_garbage(void)
{
	return stands_at(edit_garbage, 1);
}

static int leaves_version(void)
{
	return stands_at(edit_version, 1);
}

static int leaves_small(void)
{
	int shmid = shmget(lw_region_key(getpid(), 0), 100, IPC_CREAT | IPC_EXCL | 0600), wrong;

	if (shmid < 0)
		return CANNOT;
	wrong = !create() || attempt_of(lw_box->shmid) != 1;
	remove_all();
	return wrong;
}

static bool is_private_good(void)
{
	uint32_t chunk;

	if (!create() || !(lw_box->flags & LW_REGION_PRIVATE) || lw_box->shmid != -1)
		return false;
	chunk = lw_box_take_chunk();
	lw_lock_acquire(&lw_sites_lock);
	memset(lw_box_pool(lw_box_take_locked(1000)), 1, 1000);
	lw_lock_release(&lw_sites_lock);
	lw_box_remove(); /* of nothing */
	return chunk == 1;
}

static int is_private_if_taken(void)
{
	int wrong;

	for (unsigned attempt = 0; attempt < LW_REGION_KEYS; attempt++)
		(void)plant(attempt, edit_garbage);
	wrong = !is_private_good();
	remove_all();
	return wrong;
}

/* From now on this system call is answered by an error number, if its second argument is at least that. */
static bool refuse(unsigned call, unsigned error, unsigned least)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, least, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { LW_ARRAY_LENGTH(code), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int is_private_if_full(void)
{
	return !refuse(SYS_shmget, ENOSPC, 0) ? CANNOT : !is_private_good();
}

static int is_private_if_not_mapped(void)
{
	return !refuse(SYS_shmat, EACCES, 0) ? CANNOT : !is_private_good() || remove_all();
}

static int is_smaller_if_tight(void)
{
	struct lw_region_header big = { 0 };
	struct rlimit limit;
	unsigned long pages = 0;
	int refusal, wrong;
	FILE *statm = fopen("/proc/self/statm", "r");

	if (!statm || fscanf(statm, "%lu", &pages) != 1)
		return CANNOT;
	(void)fclose(statm);
	lw_options_init(&tables_options);
	tables_options.max_sites = 1 << 18;
	/* half of what it takes is there */
	limit.rlim_cur = limit.rlim_max = pages * 4096 + lw_region_layout(&big, tables_options.max_sites) / 2;
	if (setrlimit(RLIMIT_AS, &limit))
		return CANNOT;
	wrong = !lw_box_create(&tables_options, 0, &refusal);
	wrong |= !wrong && (lw_box->sites.max >= 1 << 18 || lw_box->sites.max < 1024);
	remove_all();
	return wrong;
}

/* ---- forked children ---- */

static uint32_t intern(uint64_t number)
{
	struct lw_stack stack = { .nr = 1 + (uint32_t)(number % 30) };

	for (uint32_t i = 0; i < stack.nr; i++)
		stack.pcs[i] = number * 64 + i + 1;
	return lw_sites_intern(&stack, lw_site_key(LW_KIND_MALLOC, 0, 0)).id;
}

/* Does the copy of site id, whatever its number, hold a whole stack? */
static bool is_whole(uint32_t id)
{
	const uint64_t *pcs = lw_sites_pcs(id);
	const struct lw_site *site = lw_box_site(id);
	uint64_t number = (pcs[0] - 1) / 64;

	if (site->kind != LW_KIND_MALLOC || site->nr_frames != 1 + number % 30)
		return false;
	for (uint32_t i = 0; i < site->nr_frames; i++) {
		if (pcs[i] != number * 64 + i + 1)
			return false;
	}
	return true;
}

static int is_renewed_in_child(const struct lw_region_header *parent)
{
	int32_t parents_id = lw_own.shmid, parents_pid = lw_own.pid;
	uint32_t nr_sites = lw_own.nr_sites; /* at the fork; the parent goes on */
	int wrong = 0;

	if (!lw_box_renew())
		return 1;
	wrong |= (lw_box != parent || lw_box->pid != getpid() || lw_box->ppid != parents_pid) << 1;
	wrong |= (lw_box->shmid == parents_id || attempt_of(lw_box->shmid) != 0) << 2;
	wrong |= (lw_box->nr_sites < nr_sites || lw_box->nr_rows != 1 || lw_box->nr_chunks != 1) << 3;
	wrong |= (lw_box->dropped[LW_DROP_STALE] != 0 || lw_box->peak_bytes != 0 || lw_box->nr_events != 0) << 4;
	wrong |= strcmp(lw_box->options, "depth=7") != 0 << 5;
	for (uint32_t id = 1; id < lw_box->nr_sites; id++)
		wrong |= !is_whole(id) << 6;
	lw_box->dropped[LW_DROP_BLOCKS] = 1000;
	lw_box_remove();
	return wrong;
}

static int renews(void)
{
	struct lw_region_header *parent;
	uint32_t first;
	int status, wrong;
	pid_t pid;

	if (!create() || !lw_sites_init())
		return CANNOT;
	parent = lw_box;
	strcpy(parent->options, "depth=7");
	parent->options_bytes = lw_own.options_bytes = 7;
	first = intern(1);
	for (uint64_t i = 2; i < 500; i++)
		(void)intern(i);
	parent->dropped[LW_DROP_STALE] = 3;
	parent->peak_bytes = 99;
	pid = fork();
	if (!pid)
		_exit(is_renewed_in_child(parent) | (intern(1) != first) << 7);
	(void)waitpid(pid, &status, 0);
	wrong = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
	wrong |= (parent->dropped[LW_DROP_BLOCKS] != 0 || parent->nr_sites != 500 || intern(1) != first) << 7;
	lw_box_remove();
	return wrong;
}

/* The same while another thread of the parent adds sites all the time. */
static uint32_t is_over;

static void *add_sites(void *unused)
{
	for (uint64_t i = 1000; !lw_load(&is_over); i++)
		(void)intern(i % 1900 + 1000);
	return unused;
}

static int renews_in_motion(void)
{
	pthread_t thread;
	int status, wrong = 0;

	if (!create() || !lw_sites_init())
		return CANNOT;
	strcpy(lw_box->options, "depth=7");
	lw_box->options_bytes = lw_own.options_bytes = 7;
	if (pthread_create(&thread, NULL, add_sites, NULL))
		return CANNOT;
	for (unsigned i = 0; i < NR_FORKS; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(is_renewed_in_child(lw_box));
		(void)waitpid(pid, &status, 0);
		wrong |= WIFEXITED(status) ? WEXITSTATUS(status) : 255;
	}
	lw_store(&is_over, 1);
	(void)pthread_join(thread, NULL);
	lw_box_remove();
	return wrong;
}

static int renews_private(void)
{
	struct lw_region_header *parent;
	int status;
	pid_t pid;

	if (!refuse(SYS_shmget, ENOSPC, 0))
		return CANNOT;
	if (!create() || !lw_sites_init())
		return 1;
	parent = lw_box;
	for (uint64_t i = 1; i < 100; i++)
		(void)intern(i);
	pid = fork();
	if (!pid) {
		int wrong = !lw_box_renew() || lw_box != parent || lw_box->pid != getpid() || lw_box->nr_sites != 100;

		for (uint32_t id = 1; id < 100; id++)
			wrong |= !is_whole(id);
		lw_box->dropped[LW_DROP_BLOCKS] = 1000;
		_exit(wrong);
	}
	(void)waitpid(pid, &status, 0);
	return status != 0 || parent->dropped[LW_DROP_BLOCKS] != 0;
}

/* What cannot be moved over the parent's must not stay behind. */
static int renew_leaves_nothing(void)
{
	int status;
	pid_t pid;

	if (!create())
		return CANNOT;
	pid = fork();
	if (!pid) {
		if (!refuse(SYS_shmat, ENOMEM, 1)) /* a segment can be mapped, but not at a place we choose */
			_exit(CANNOT);
		_exit(lw_box_renew() || lw_box || remove_all());
	}
	(void)waitpid(pid, &status, 0);
	lw_box_remove();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

int main(void)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0); /* nothing is left for a child to write */
	test(is_created, "a region lies under the first key, with mode 0600, and can be removed");
	test(replaces_own, "what an image of this process left before its exec is replaced");
	test(replaces_dead, "what a process left that is gone is replaced");
	test(replaces_reused, "and so if its pid is somebody else's now");
	test(leaves_living, "a living process's region is left alone");
	test(leaves_unreported, "what a killed process left is the cleaner's to report");
	test(leaves_garbage, "a stranger's segment is left alone");
	test(leaves_version, "another version's region is left alone");
	test(leaves_small, "a segment too small for a header is left alone");
	test(is_private_if_taken, "with strangers under all keys the region is private");
	test(is_private_if_full, "with no segments left the region is private");
	test(is_private_if_not_mapped, "with none that can be mapped the region is private");
	test(is_smaller_if_tight, "with little memory the region is smaller");
	test(renews, "a forked child has its parent's sites and its own counters");
	test(renews_in_motion, "and so while the parent adds sites");
	test(renews_private, "and so in private memory");
	test(renew_leaves_nothing, "a child that gets no region leaves no segment");
	return done();
}
