/* SPDX-License-Identifier: MIT */
/*
 * fake_region.h - a region made by hand, for tests of those who read one.
 *
 * It lies in ordinary memory of exactly its size, so that a sanitizer sees every read past its end.
 * The layout is the real one, made small: sanitizers do not like 100 MB each.
 */
#ifndef LW_TEST_FAKE_REGION_H
#define LW_TEST_FAKE_REGION_H

#include <stdlib.h>
#include <string.h>

#include "preload/share/region.h"

enum { FAKE_SITES = 1024 };

struct fake {
	struct lw_region_header *header;
	uint64_t bytes;
};

static inline void *fake_at(const struct fake *fake, const struct lw_area *area, uint32_t index)
{
	return (char *)fake->header + area->off + (uint64_t)index * area->stride;
}

static inline struct fake fake_new(void)
{
	struct lw_region_header *layout = calloc(1, sizeof(*layout));
	struct fake fake;

	(void)lw_region_layout(layout, FAKE_SITES);
	/* the pool is last: most of its room and of the chunks is not needed here */
	layout->chunks.max = 64;
	layout->pool.off =
		layout->chunks.off + (uint64_t)layout->chunks.max * layout->chunks.stride;
	layout->pool.max = 8192;
	layout->total_bytes = layout->pool.off + (uint64_t)layout->pool.max * 8;
	fake.bytes = layout->total_bytes;
	fake.header = calloc(1, fake.bytes);
	memcpy(fake.header, layout, sizeof(*layout));
	free(layout);
	fake.header->magic = LW_REGION_MAGIC;
	fake.header->version = LW_REGION_VERSION;
	fake.header->pid = 4242;
	fake.header->ppid = 1;
	fake.header->depth = 32;
	fake.header->started_mono_ns = 1000000000;
	fake.header->ended_mono_ns = 3500000000;
	fake.header->state = LW_STATE_ENDING;
	fake.header->end_kind = LW_END_EXIT;
	fake.header->exit_status = 3;
	fake.header->nr_sites = fake.header->nr_hints = fake.header->nr_rows = 1;
	fake.header->nr_chunks = fake.header->pool_used = 1;
	strcpy(fake.header->exe, "/opt/app");
	memcpy(fake.header->cmdline, "app\0--serve", 12);
	fake.header->cmdline_bytes = 12;
	return fake;
}

static inline uint32_t fake_pool(struct fake *fake, const void *bytes, size_t nr_bytes)
{
	uint32_t at = fake->header->pool_used;

	memcpy(fake_at(fake, &fake->header->pool, at), bytes, nr_bytes);
	fake->header->pool_used += (uint32_t)((nr_bytes + 7) / 8);
	return at;
}

static inline uint32_t fake_module(
	struct fake *fake, const char *path, uint64_t base, uint8_t id_byte)
{
	uint32_t id = fake->header->nr_modules++;
	struct lw_module *module = fake_at(fake, &fake->header->modules, id);

	*module = (struct lw_module){.base = base,
		.start = base,
		.end = base + 0x10000,
		.path_off = fake_pool(fake, path, strlen(path) + 1),
		.path_bytes = (uint16_t)strlen(path),
		.build_id_bytes = id_byte ? 4 : 0};
	memset(module->build_id, id_byte, module->build_id_bytes);
	return id;
}

/* Frames as pairs of offset and module. */
struct fake_frame {
	uint64_t offset;
	uint16_t module;
};

static inline uint32_t fake_site(
	struct fake *fake, enum lw_kind kind, const struct fake_frame *frames, uint16_t nr_frames)
{
	uint32_t id = fake->header->nr_sites++;
	struct lw_site *site = fake_at(fake, &fake->header->sites, id);
	unsigned char stack[LW_MAX_FRAMES * 10];

	for (uint16_t i = 0; i < nr_frames; i++) {
		const struct lw_module *module =
			frames[i].module < fake->header->nr_modules
				? fake_at(fake, &fake->header->modules, frames[i].module)
				: NULL;
		uint64_t pc = frames[i].offset + (module ? module->base : 0);

		memcpy(stack + (size_t)i * 8, &pc, 8);
		memcpy(stack + (size_t)nr_frames * 8 + (size_t)i * 2, &frames[i].module, 2);
	}
	*site = (struct lw_site){.stack_off = fake_pool(fake, stack, (size_t)nr_frames * 10),
		.first_ms = 100,
		.oldest_ms = 500,
		.nr_frames = nr_frames,
		.kind = (uint8_t)kind};
	return id;
}

static inline void fake_hint(struct fake *fake, uint32_t site, const char *file, uint32_t line)
{
	uint32_t index = fake->header->nr_hints++;
	struct lw_hint *hint = fake_at(fake, &fake->header->hints, index);

	*hint = (struct lw_hint){.file_off = fake_pool(fake, file, strlen(file) + 1), .line = line};
	((struct lw_site *)fake_at(fake, &fake->header->sites, site))->hint = index;
}

/* The counters of a site in a row, made if need be. */
static inline struct lw_count *fake_count(struct fake *fake, uint32_t row, uint32_t site)
{
	uint32_t *dir = (uint32_t *)(void *)((char *)fake_at(fake, &fake->header->rows, row) +
					     sizeof(struct lw_row));
	uint32_t *chunk = &dir[site / LW_CHUNK_SITES];

	if (row >= fake->header->nr_rows)
		fake->header->nr_rows = row + 1;
	if (!*chunk)
		*chunk = fake->header->nr_chunks++;
	return (struct lw_count *)fake_at(fake, &fake->header->chunks, *chunk) +
	       site % LW_CHUNK_SITES;
}

static inline void fake_event(struct fake *fake, enum lw_event_what what, uint32_t alloc_site,
	uint32_t free_site, uint64_t count)
{
	struct lw_event *event = fake_at(fake, &fake->header->events, fake->header->nr_events++);

	*event = (struct lw_event){.what = what,
		.alloc_site = alloc_site,
		.free_site = free_site,
		.count = count,
		.bytes = 40,
		.expected = 16,
		.is_ready = 1};
}

static inline struct lw_mark *fake_mark(struct fake *fake, const char *name, uint64_t count)
{
	struct lw_mark *mark = fake_at(fake, &fake->header->marks, fake->header->nr_marks++);

	*mark = (struct lw_mark){.name_off = fake_pool(fake, name, strlen(name) + 1), .count = count, .last_bytes = 77,
		.is_ready = 1};
	return mark;
}

/* Sample number i of the run, in a slot of the test's choice; values are those of ids from 0 on. */
static inline void fake_sample(struct fake *fake, uint32_t slot, uint64_t ms, uint32_t nr_sites,
	const uint64_t *values)
{
	for (uint32_t site = 0; site < nr_sites; site++) {
		uint32_t *tile = fake_at(fake, &fake->header->history, site / LW_CHUNK_SITES);

		tile[slot * LW_CHUNK_SITES + site % LW_CHUNK_SITES] = lw_history_pack(values[site]);
	}
	fake->header->samples[slot] = (struct lw_sample){ms, nr_sites, 1};
}

static inline void fake_held(struct fake *fake, uint32_t site, uint64_t bytes, uint64_t blocks)
{
	*(struct lw_held *)fake_at(fake, &fake->header->held, site) = (struct lw_held){bytes, blocks};
}

static inline void fake_free(struct fake *fake)
{
	free(fake->header);
}

#endif
