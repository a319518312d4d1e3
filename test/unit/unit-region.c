/* SPDX-License-Identifier: MIT */
/*
 * unit-region.c - the layout has room for what it promises, a corrupted header is refused with a
 * reason, and a process finds its own region behind a stranger's under the same key.
 */
#include "test/unit/tap.h"
#include "test/unit/fake_region.h"

#include <errno.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

static void test_layout(void)
{
	static const uint32_t sizes[] = {0, 1, 1024, 1000, 262144, 1048576};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct lw_region_header header = {0};
		uint64_t bytes = lw_region_layout(&header, sizes[i]);

		header.magic = LW_REGION_MAGIC;
		header.version = LW_REGION_VERSION;
		ok(!lw_region_check(&header, bytes), "layout for %u sites passes its own check",
			sizes[i]);
		ok(header.sites.max >= sizes[i] && header.sites.off % 4096 == 0,
			"room for the sites");
		ok(header.chunks.max >= 4096 && header.chunks.stride == 2048,
			"room for the counters");
		ok(header.rows.stride >=
				sizeof(struct lw_row) + header.sites.max / LW_CHUNK_SITES * 4,
			"a row reaches all sites");
		ok(bytes == header.total_bytes && bytes < UINT64_C(1) << 30,
			"in all less than 1 GiB");
		ok(lw_region_check(&header, bytes - 1) != NULL,
			"a segment one byte short is refused");
	}
}

struct corruption {
	const char *what;
	size_t off;
	uint64_t value;
	size_t nr_bytes;
};

#define FIELD(member, wrong)                                                                       \
	{                                                                                          \
#member " = " #wrong, offsetof(struct lw_region_header, member),                   \
			(uint64_t)(wrong), sizeof(((struct lw_region_header *)0)->member)          \
	}

static const struct corruption corruptions[] = {
	FIELD(magic, 0),
	FIELD(version, 2),
	FIELD(header_bytes, 64),
	FIELD(total_bytes, 0),
	FIELD(total_bytes, UINT64_MAX),
	FIELD(modules.off, 0),
	FIELD(modules.off, UINT64_MAX - 63),
	FIELD(modules.max, UINT32_MAX),
	FIELD(modules.max, 0),
	FIELD(modules.stride, 0),
	FIELD(sites.off, UINT64_C(1) << 63),
	FIELD(sites.off, 3),
	FIELD(sites.max, UINT32_MAX),
	FIELD(sites.stride, 8),
	FIELD(rows.stride, sizeof(struct lw_row)),
	FIELD(rows.max, UINT32_MAX),
	FIELD(chunks.stride, 32),
	FIELD(chunks.off, UINT64_MAX),
	FIELD(events.stride, 4),
	FIELD(hints.off, 8),
	FIELD(hints.stride, 9),
	FIELD(pool.max, UINT32_MAX),
	FIELD(pool.stride, 16),
};

static void test_corruptions(void)
{
	struct lw_region_header good = {.magic = LW_REGION_MAGIC, .version = LW_REGION_VERSION};
	uint64_t bytes = lw_region_layout(&good, 4096);

	for (size_t i = 0; i < sizeof(corruptions) / sizeof(corruptions[0]); i++) {
		struct lw_region_header bad = good;

		memcpy((char *)&bad + corruptions[i].off, &corruptions[i].value,
			corruptions[i].nr_bytes);
		ok(lw_region_check(&bad, bytes) != NULL, "refused: %s", corruptions[i].what);
	}
	good.version = 77;
	ok(strstr(lw_region_check(&good, bytes), "77") &&
			strstr(lw_region_check(&good, bytes), "1"),
		"both versions are named");
}

static void test_keys(void)
{
	int nr_same = 0;

	for (int32_t pid = 1; pid < 3000; pid++)
		for (unsigned a = 0; a < LW_REGION_KEYS; a++) {
			int32_t key = lw_region_key(pid, a);

			nr_same += key == pid || key == IPC_PRIVATE || key < 4194304;
			for (unsigned b = 0; b < a; b++)
				nr_same += key == lw_region_key(pid, b);
		}
	is_u64(nr_same, 0, "keys are no pids, not private, and differ by attempt");
}

static void test_proc_stat(void)
{
	uint64_t self = 0, other = 0;
	int32_t ppid = 0;

	ok(lw_region_proc_stat(0, &self, &ppid) && self > 0, "own start time is read");
	is_u64(ppid, getppid(), "and the parent");
	ok(lw_region_proc_stat(getpid(), &other, &ppid) && other == self, "the same by number");
	ok(!lw_region_proc_stat(INT32_MAX, &other, &ppid), "no such process");
}

/* A segment under attempt `attempt` of our own key, filled with what `header` says. */
static int make_segment(unsigned attempt, const struct lw_region_header *header, size_t bytes)
{
	int id = shmget(lw_region_key(getpid(), attempt), bytes, IPC_CREAT | IPC_EXCL | 0600);
	void *map = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	if (map == (void *)-1)
		return -1;
	memcpy(map, header, sizeof(*header));
	(void)shmdt(map);
	return id;
}

static void test_attach(void)
{
	struct lw_region_header header = {.magic = LW_REGION_MAGIC,
		.version = LW_REGION_VERSION,
		.pid = getpid(),
		.start_ticks = 5,
		.state = LW_STATE_RUNNING};
	struct lw_region_header garbage;
	const struct lw_region_header *region = NULL;
	uint64_t bytes = lw_region_layout(&header, 1024), got = 0;
	int first, second, shmid = -1;
	const char *why = NULL;

	memset(&garbage, 0x5a, sizeof(garbage));
	is_u64(-lw_region_attach(getpid(), 0, &region, &got, &shmid, &why), ESRCH, "no region yet");
	first = make_segment(0, &garbage, bytes);
	if (first < 0) {
		ok(true, "no SysV segments here # SKIP");
		return;
	}
	is_u64(-lw_region_attach(getpid(), 0, &region, &got, &shmid, &why), EPROTO,
		"garbage is refused");
	second = make_segment(1, &header, bytes);
	is_u64(lw_region_attach(getpid(), 0, &region, &got, &shmid, &why), 0,
		"found behind the garbage");
	is_u64(shmid, second, "it is the right one");
	is_u64(got, bytes, "with its size");
	lw_region_detach(region);
	is_u64(-lw_region_attach(getpid(), 6, &region, &got, &shmid, &why), EPROTO,
		"another start time is another process");
	is_u64(lw_region_attach(getpid(), 5, &region, &got, &shmid, &why), 0,
		"the same start time");
	lw_region_detach(region);
	is_u64(-lw_region_attach_id(first, &region, &got, &why), EPROTO,
		"by id: garbage is refused");
	(void)shmctl(first, IPC_RMID, NULL);
	(void)shmctl(second, IPC_RMID, NULL);
	is_u64(-lw_region_attach_id(second, &region, &got, &why), ESRCH, "by id: gone");

	header.state = LW_STATE_STARTING;
	first = make_segment(0, &header, bytes);
	is_u64(-lw_region_attach(getpid(), 5, &region, &got, &shmid, &why), EAGAIN,
		"still starting");
	(void)shmctl(first, IPC_RMID, NULL);
	first = shmget(lw_region_key(getpid(), 0), 64, IPC_CREAT | IPC_EXCL | 0600);
	is_u64(-lw_region_attach(getpid(), 5, &region, &got, &shmid, &why), EPROTO, "too small");
	(void)shmctl(first, IPC_RMID, NULL);
}

int main(void)
{
	test_layout();
	test_corruptions();
	test_keys();
	test_proc_stat();
	test_attach();
	return done();
}
