/* SPDX-License-Identifier: MIT */
/*
 * region.c - where things lie in the black box, and how a stranger's black box is opened safely.
 *
 * Two halves. The layout is computed by the target that makes a region, so it allocates nothing,
 * calls no stdio and needs no libc state. The other half is for readers: a segment found under a
 * key of ours may belong to somebody else, to another version, or to somebody who wants us to read
 * out of bounds. Nothing of it is followed before lw_region_check() has passed a copy of the
 * header: the live one may change between check and use. Copies of the areas are what a reader
 * works with from then on (emit.c does).
 *
 * The segment is sparse: only pages that were written exist, so room is given generously. The big
 * areas start on a page of their own, so that a page of the one never brings in the other.
 */
#include "preload/share/region.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/base.h"
#include "preload/base/sys.h"

enum {
	PAGE_BYTES = 4096,
	SITE_POOL_BYTES = 256, /* stack and share of names: 25 frames of 10 bytes */
	CHUNKS_PER_SLICE = 8,  /* threads that touch one slice of 64 sites, on average */
	LEAST_CHUNKS = 4096,
	STARTING_TRIES =
		50, /* times STARTING_WAIT_NS: how long a target may take to fill in its header */
	STARTING_WAIT_NS = 2000000,
	STAT_STATE = 3,
	STAT_PPID = 4,
	STAT_MINFLT = 10,
	STAT_MAJFLT = 12,
	STAT_UTIME = 14,
	STAT_STIME = 15,
	STAT_START_TIME = 22,
	STAT_VSIZE = 23,
	NR_STAT_FIELDS,
	STAT_BYTES = 1024, /* /proc/PID/stat: 52 numbers and a name of at most 64 bytes */
};

_Static_assert(sizeof(struct lw_region_header) % LW_CACHE_LINE == 0, "areas start on a line");
_Static_assert(sizeof(struct lw_count) * LW_CHUNK_SITES == 2048, "a chunk is 2 KiB");

int32_t lw_region_key(int32_t pid, unsigned attempt)
{
	uint32_t mixed = (uint32_t)pid * 0x9e3779b1u ^ (attempt + 1) * 0x85ebca6bu;

	mixed ^= mixed >> 15;
	mixed *= 0x2c1b3c6du;
	mixed ^= mixed >> 13;
	mixed &= 0x7fffffffu;
	/* bit 30 keeps the key away from 0 (IPC_PRIVATE) and from any pid (at most 2^22) */
	return (int32_t)(mixed | 0x40000000u);
}

static uint64_t place(
	struct lw_area *area, uint64_t off, uint64_t align, uint32_t max, uint32_t stride)
{
	off = LW_ALIGN_UP(off, align);
	*area = (struct lw_area){.off = off, .max = max, .stride = stride};
	return off + (uint64_t)max * stride;
}

uint64_t lw_region_layout(struct lw_region_header *header, uint32_t max_sites)
{
	uint64_t end = sizeof(*header);
	uint32_t nr_slices, nr_chunks, row_bytes;

	max_sites = LW_ALIGN_UP(max_sites ? max_sites : 1u, (uint32_t)LW_CHUNK_SITES);
	nr_slices = max_sites / LW_CHUNK_SITES;
	nr_chunks = nr_slices * CHUNKS_PER_SLICE;
	if (nr_chunks < LEAST_CHUNKS)
		nr_chunks = LEAST_CHUNKS;
	row_bytes = LW_ALIGN_UP((uint32_t)sizeof(struct lw_row) + nr_slices * 4u, 64u);

	end = place(&header->modules, end, 64, LW_MAX_MODULES, sizeof(struct lw_module));
	end = place(&header->events, end, 64, LW_MAX_EVENTS, sizeof(struct lw_event));
	end = place(&header->hints, end, 64, LW_MAX_HINTS, sizeof(struct lw_hint));
	end = place(&header->marks, end, 64, LW_MAX_MARKS, sizeof(struct lw_mark));
	end = place(&header->sites, end, PAGE_BYTES, max_sites, sizeof(struct lw_site));
	end = place(&header->held, end, PAGE_BYTES, max_sites, sizeof(struct lw_held));
	end = place(&header->history, end, PAGE_BYTES, nr_slices, LW_HISTORY_TILE_BYTES);
	end = place(&header->scans, end, PAGE_BYTES, max_sites, sizeof(struct lw_scan_site));
	end = place(&header->chains, end, PAGE_BYTES, LW_MAX_CHAINS, sizeof(struct lw_chain));
	end = place(&header->rows, end, PAGE_BYTES, LW_MAX_ROWS, row_bytes);
	end = place(&header->chunks, end, PAGE_BYTES, nr_chunks,
		sizeof(struct lw_count) * LW_CHUNK_SITES);
	end = place(&header->pool, end, PAGE_BYTES, max_sites * (SITE_POOL_BYTES / 8), 8);
	end += LW_REGION_TAIL_BYTES - 1;
	end = end - end % PAGE_BYTES + LW_REGION_TAIL_BYTES;
	header->header_bytes = sizeof(*header);
	header->total_bytes = end;
	return end;
}

static char *put_u32(char *at, uint32_t value)
{
	char digits[10];
	int nr_digits = 0;

	do
		digits[nr_digits++] = (char)('0' + value % 10);
	while ((value /= 10) != 0);
	while (nr_digits > 0)
		*at++ = digits[--nr_digits];
	return at;
}

static const char *version_sentence(uint32_t version)
{
	static char sentence[96];
	char *at = stpcpy(sentence, "the target speaks region version ");

	at = stpcpy(put_u32(at, version), ", this program speaks ");
	*put_u32(at, LW_REGION_VERSION) = '\0';
	return sentence;
}

static bool area_good(const struct lw_area *area, uint64_t total_bytes, uint64_t least_stride)
{
	if (area->off < sizeof(struct lw_region_header) || area->off > total_bytes || area->off % 8)
		return false;
	if (area->stride < least_stride || area->stride % 8 || !area->max)
		return false;
	return (uint64_t)area->max * area->stride <= total_bytes - area->off;
}

const char *lw_region_check(const struct lw_region_header *copy, uint64_t segment_bytes)
{
	uint64_t total = copy->total_bytes;
	uint64_t nr_slices = ((uint64_t)copy->sites.max + LW_CHUNK_SITES - 1) / LW_CHUNK_SITES;

	if (segment_bytes < sizeof(*copy))
		return "the segment is too small to be a LeakWatch region";
	if (copy->magic != LW_REGION_MAGIC)
		return "not a LeakWatch region";
	if (copy->version != LW_REGION_VERSION)
		return version_sentence(copy->version);
	if (copy->header_bytes != sizeof(*copy))
		return "the region's header has another size than this program knows";
	if (total < sizeof(*copy) || total > segment_bytes)
		return "the region claims more memory than its segment has";
	if (!area_good(&copy->modules, total, sizeof(struct lw_module)) ||
		!area_good(&copy->sites, total, sizeof(struct lw_site)) ||
		!area_good(&copy->events, total, sizeof(struct lw_event)) ||
		!area_good(&copy->hints, total, sizeof(struct lw_hint)) ||
		!area_good(&copy->marks, total, sizeof(struct lw_mark)) ||
		!area_good(&copy->chunks, total, sizeof(struct lw_count) * LW_CHUNK_SITES) ||
		!area_good(&copy->held, total, sizeof(struct lw_held)) ||
		!area_good(&copy->history, total, LW_HISTORY_TILE_BYTES) ||
		!area_good(&copy->rows, total, sizeof(struct lw_row) + 4 * nr_slices) ||
		!area_good(&copy->scans, total, sizeof(struct lw_scan_site)) ||
		!area_good(&copy->chains, total, sizeof(struct lw_chain)) ||
		!area_good(&copy->pool, total, 8) || copy->pool.stride != 8)
		return "the region's tables do not lie inside its segment";
	if (copy->sites.max > (uint32_t)INT32_MAX || copy->modules.max > LW_NO_MODULE)
		return "the region's tables are larger than their indices reach";
	return NULL;
}

/* 0 and *bytes when the segment is ours to read (or we are root), -EACCES, or -ESRCH: gone. */
static int segment_stat(int shmid, uint64_t *bytes)
{
	struct shmid_ds stat;
	uid_t self = geteuid();

	if (shmctl(shmid, IPC_STAT, &stat) < 0)
		return errno == EACCES ? -EACCES : -ESRCH;
	if (self != 0 && (stat.shm_perm.uid != self || stat.shm_perm.cuid != self))
		return -EACCES;
	*bytes = stat.shm_segsz;
	return 0;
}

int lw_region_attach_id(
	int shmid, const struct lw_region_header **region, uint64_t *bytes, const char **why)
{
	struct lw_region_header copy;
	uint64_t segment_bytes = 0;
	const char *complaint;
	void *map;
	int err = segment_stat(shmid, &segment_bytes);

	if (err)
		return err;
	if (segment_bytes < sizeof(copy)) {
		*why = "the segment is too small to be a LeakWatch region";
		return -EPROTO;
	}
	map = shmat(shmid, NULL, SHM_RDONLY);
	if (map == (void *)-1)
		return errno == EACCES ? -EACCES : errno == ENOMEM ? -ENOMEM : -ESRCH;
	memcpy(&copy, map, sizeof(copy));
	/* before the state is past STARTING nothing else in the header means anything */
	if (copy.state == LW_STATE_STARTING && (!copy.magic || copy.magic == LW_REGION_MAGIC)) {
		(void)shmdt(map);
		return -EAGAIN;
	}
	complaint = lw_region_check(&copy, segment_bytes);
	if (complaint) {
		(void)shmdt(map);
		*why = complaint;
		return -EPROTO;
	}
	*region = map;
	*bytes = segment_bytes;
	return 0;
}

static bool is_of_process(const struct lw_region_header *region, int32_t pid, uint64_t start_ticks)
{
	if (region->pid != pid)
		return false;
	return !lw_region_is_reused(region->start_ticks, start_ticks);
}

/* As lw_region_attach_id, with patience for a target that is just filling in its header. */
static int attach_patiently(
	int shmid, const struct lw_region_header **region, uint64_t *bytes, const char **why)
{
	const struct timespec wait = {.tv_nsec = STARTING_WAIT_NS};
	int err;

	for (int i = 0; i < STARTING_TRIES; i++) {
		err = lw_region_attach_id(shmid, region, bytes, why);
		if (err != -EAGAIN)
			return err;
		(void)nanosleep(&wait, NULL);
	}
	return err;
}

int lw_region_attach(int32_t pid, uint64_t start_ticks, const struct lw_region_header **region,
	uint64_t *bytes, int *shmid, const char **why)
{
	const struct lw_region_header *found;
	uint64_t found_bytes;
	int result = -ESRCH;

	for (unsigned attempt = 0; attempt < LW_REGION_KEYS; attempt++) {
		int id = shmget(lw_region_key(pid, attempt), 0, 0);
		int err = id < 0 ? (errno == EACCES ? -EACCES : -ESRCH)
				 : attach_patiently(id, &found, &found_bytes, why);

		if (!err && is_of_process(found, pid, start_ticks)) {
			*region = found;
			*bytes = found_bytes;
			*shmid = id;
			return 0;
		}
		if (!err)
			lw_region_detach(found);
		else if (err != -ESRCH && result == -ESRCH)
			result = err; /* what the first segment under one of our keys had against us
				       */
	}
	return result;
}

void lw_region_detach(const struct lw_region_header *region)
{
	if (region)
		(void)shmdt(region);
}

/* The whole of a small file of /proc; raw system calls, since open() may be somebody's hook, and
 * cancels, and the helper has no errno of its own. */
static bool read_file(const char *path, char *text, size_t max_bytes)
{
	int fd = lw_sys_open(path, O_RDONLY);
	size_t nr_bytes = 0;
	long got = 0;

	if (fd < 0)
		return false;
	while (nr_bytes + 1 < max_bytes) {
		got = lw_sys_read(fd, text + nr_bytes, max_bytes - 1 - nr_bytes);
		if (got == -EINTR)
			continue;
		if (got <= 0)
			break;
		nr_bytes += (size_t)got;
	}
	lw_sys_close(fd);
	text[nr_bytes] = '\0';
	return got >= 0 && nr_bytes > 0;
}

static const char *parse_u64(const char *at, uint64_t *value)
{
	uint64_t sum = 0;

	while (*at == ' ' || *at == '-')
		at++;
	if (*at < '0' || *at > '9')
		return NULL;
	while (*at >= '0' && *at <= '9')
		sum = sum * 10 + (uint64_t)(*at++ - '0');
	*value = sum;
	return at;
}

void lw_region_set_reported(int shmid)
{
	struct lw_region_header *region;
	uint32_t ending = LW_STATE_ENDING;
	struct shmid_ds segment;

	if (shmctl(shmid, IPC_STAT, &segment) < 0 || segment.shm_segsz < sizeof(*region))
		return;
	region = shmat(shmid, NULL, 0);
	if (region == (void *)-1)
		return;
	if (region->magic == LW_REGION_MAGIC)
		__atomic_compare_exchange_n(&region->state, &ending, LW_STATE_REPORTED, false,
			__ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	(void)shmdt(region);
}

/* Fields 3 (a letter) to 22 of /proc/PID/stat, pid 0: our own; by their numbers in proc(5). */
static bool read_stat(int32_t pid, uint64_t fields[NR_STAT_FIELDS])
{
	char path[32] = "/proc/self/stat", text[STAT_BYTES];
	const char *at;

	if (pid)
		memcpy(put_u32(path + 6, (uint32_t)pid), "/stat", sizeof("/stat"));
	if (!read_file(path, text, sizeof(text)))
		return false;
	/* the name (field 2) may hold blanks and parentheses, so the last one ends it */
	at = strrchr(text, ')');
	if (!at || strlen(at) < 4)
		return false;
	fields[STAT_STATE] = (uint64_t)at[2];
	at += 3; /* over ") " and the letter */
	for (int nr = STAT_STATE + 1; nr < NR_STAT_FIELDS && at; nr++)
		at = parse_u64(at, &fields[nr]);
	return at;
}

bool lw_region_proc_stat(int32_t pid, uint64_t *start_ticks, int32_t *ppid)
{
	uint64_t fields[NR_STAT_FIELDS];

	if (!read_stat(pid, fields))
		return false;
	*start_ticks = fields[STAT_START_TIME];
	*ppid = (int32_t)fields[STAT_PPID];
	return true;
}

bool lw_region_proc_memory(int32_t pid, uint64_t *bytes)
{
	uint64_t fields[NR_STAT_FIELDS];

	if (!read_stat(pid, fields))
		return false;
	*bytes = fields[STAT_VSIZE];
	return true;
}

bool lw_region_proc_work(int32_t pid, uint64_t *work, bool *is_at_disk)
{
	uint64_t fields[NR_STAT_FIELDS];

	if (!read_stat(pid, fields))
		return false;
	*work = fields[STAT_MINFLT] + fields[STAT_MAJFLT] + fields[STAT_UTIME] + fields[STAT_STIME];
	*is_at_disk = fields[STAT_STATE] == 'D';
	return true;
}
