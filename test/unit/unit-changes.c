/* SPDX-License-Identifier: MIT */
/*
 * unit-changes.c - the live dump: first everything, then what changed, nothing lost when the sink stops
 * half way, everything again after a reset, and no step outside a region that lies.
 */
#include "test/unit/tap.h"
#include "test/unit/fake_region.h"

#include "preload/share/changes.h"
#include "snapshot/model/decode.h"

struct counter {
	struct decode decode;
	int nr[LW_WIRE_NR_TYPES]; /* records by type, of this tick */
	int nr_left;		  /* records taken before it stops; -1 all */
};

static bool count(void *context, const struct lw_wire_head *record)
{
	struct counter *counter = context;

	if (!counter->nr_left)
		return false;
	counter->nr_left -= counter->nr_left > 0;
	counter->nr[record->type]++;
	return decode_record(&counter->decode, record);
}

static uint64_t seen[FAKE_SITES];
static struct lw_changes changes;
static struct counter counter;

static bool tick(void)
{
	memset(counter.nr, 0, sizeof(counter.nr));
	return lw_changes_tick(&changes, 5000000000);
}

static struct fake start(uint32_t nr_sites)
{
	static const struct fake_frame stack[] = {{0x100, 0}, {0x200, 0}};
	struct fake fake = fake_new();

	memset(seen, 0, sizeof(seen));
	fake_module(&fake, "/opt/app", 0x400000, 0xaa);
	for (uint32_t i = 0; i < nr_sites; i++) {
		uint32_t site = fake_site(&fake, LW_KIND_MALLOC, stack, 2);

		*fake_count(&fake, 1, site) = (struct lw_count){100 + i, 1, 0, 0};
	}
	counter = (struct counter){.decode.model = model_new(), .nr_left = -1};
	ok(lw_changes_open(&changes, fake.header, fake.bytes, seen, FAKE_SITES, count, &counter), "opened");
	return fake;
}

static uint64_t live_of(uint32_t id)
{
	uint32_t place = model_find_site(counter.decode.model, id);

	return place == MODEL_NO_SITE ? 0 : counter.decode.model->sites[place].live_bytes;
}

static void test_changes(void)
{
	struct lw_mark *mark;
	struct fake fake = start(40);
	static const struct fake_frame stack[] = {{0x100, 0}};
	uint32_t added, freed;

	ok(tick(), "the first tick");
	is_u64(counter.nr[LW_WIRE_HELLO], 1, "hello");
	ok(counter.nr[LW_WIRE_TEXT] > 0, "texts");
	is_u64(counter.nr[LW_WIRE_MODULE], 1, "modules");
	is_u64(counter.nr[LW_WIRE_SITE], 40, "all sites");
	is_u64(counter.nr[LW_WIRE_COUNT], 40, "and their counts");
	ok(tick(), "a second without changes");
	is_u64(counter.nr[LW_WIRE_SITE] + counter.nr[LW_WIRE_COUNT] + counter.nr[LW_WIRE_TEXT] +
			counter.nr[LW_WIRE_MODULE],
		0, "says nothing of them");
	is_u64(counter.nr[LW_WIRE_TOTALS], 1, "but the totals");

	fake_count(&fake, 2, 7)->freed_bytes = 50;
	ok(tick(), "one counter moved");
	is_u64(counter.nr[LW_WIRE_COUNT], 1, "one count");
	is_u64(counter.nr[LW_WIRE_SITE], 0, "its stack is known");
	is_u64(live_of(7), 56, "as an absolute value");

	added = fake_site(&fake, LW_KIND_NEW, stack, 1);
	*fake_count(&fake, 1, added) = (struct lw_count){9, 1, 0, 0};
	fake_module(&fake, "/opt/late.so", 0x800000, 0xbb);
	freed = fake_site(&fake, LW_KIND_DELETE, stack, 1);
	fake_event(&fake, LW_EVENT_MISMATCH, added, freed, 1);
	ok(lw_changes_has_events(&changes), "an event is noticed");
	memset(counter.nr, 0, sizeof(counter.nr));
	ok(lw_changes_events(&changes), "and told at once");
	is_u64(counter.nr[LW_WIRE_EVENT], 1, "once");
	is_u64(counter.nr[LW_WIRE_SITE], 2, "with the stacks it names");
	is_u64(counter.nr[LW_WIRE_MODULE], 1, "and the module that came");
	ok(!lw_changes_has_events(&changes), "then it is known");
	((struct lw_event *)fake_at(&fake, &fake.header->events, 0))->count = 5;
	ok(!lw_changes_has_events(&changes) && tick(), "it happens again: that is for the next tick");
	is_u64(counter.nr[LW_WIRE_EVENT], 1, "told again");
	is_u64(counter.decode.model->nr_events, 1, "as the same event");
	is_u64(counter.decode.model->events[0].count, 5, "with its new count");

	mark = fake_mark(&fake, "request", 1);
	ok(lw_changes_has_events(&changes), "a new mark is noticed");
	memset(counter.nr, 0, sizeof(counter.nr));
	ok(lw_changes_events(&changes) && counter.nr[LW_WIRE_MARK] == 1, "and told at once");
	is_str(counter.decode.model->marks[0].name, "request", "by its name");
	mark->count = 9;
	ok(!lw_changes_has_events(&changes), "passed again: that is for the next tick");
	ok(tick() && counter.decode.model->marks[0].count == 9, "which tells it");
	memset(counter.nr, 0, sizeof(counter.nr));
	ok(tick() && !counter.nr[LW_WIRE_MARK], "and the one after does not");

	lw_changes_reset(&changes);
	ok(tick(), "after a reset");
	is_u64(counter.nr[LW_WIRE_MARK], 1, "the mark comes again");
	is_u64(counter.nr[LW_WIRE_SITE], 42, "everything comes again");
	model_free(counter.decode.model);
	fake_free(&fake);
}

static void test_stops(void)
{
	struct fake fake = start(40);
	int nr_tries = 0;

	for (bool is_done = false; !is_done && nr_tries < 200; nr_tries++) {
		counter.nr_left = 9;
		is_done = tick();
	}
	ok(nr_tries > 5 && nr_tries < 200, "a sink that stops every 9 records gets all in the end (%d)", nr_tries);
	for (uint32_t id = 1, nr_bad = 0; id <= 40; id++) {
		nr_bad += live_of(id) != 99 + id;
		if (id == 40)
			is_u64(nr_bad, 0, "and every count is right");
	}
	model_free(counter.decode.model);
	fake_free(&fake);
}

/* Every 32-bit word of the header as a lie: the sanitizers watch. */
static void test_lies(void)
{
	static const uint32_t lies[] = {0, 1, 0x7fffffff, 0xffffffff, 0x10000};

	for (size_t word = 0; word < offsetof(struct lw_region_header, exe) / 4; word++)
		for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
			struct fake fake = fake_new();

			memset(seen, 0, sizeof(seen));
			counter = (struct counter){.decode.model = model_new(), .nr_left = 100000};
			if (lw_changes_open(&changes, fake.header, fake.bytes, seen, FAKE_SITES, count, &counter)) {
				((uint32_t *)(void *)fake.header)[word] = lies[i];
				(void)tick();
				(void)tick();
			}
			model_free(counter.decode.model);
			fake_free(&fake);
		}
	ok(true, "a header that changes under the reader does no harm");
}

int main(void)
{
	test_changes();
	test_stops();
	test_lies();
	return done();
}
