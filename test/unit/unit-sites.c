/* SPDX-License-Identifier: MIT */
/*
 * unit-sites.c - the same stack is the same site, from any number of threads at once; another is
 * another; ids are dense and what they name is complete; a full table says so.
 *
 * Stacks are derived from their number, so that each thread makes the same ones by itself, and what
 * an id names can be checked at any time. The build with ThreadSanitizer runs the same threads.
 */
#include "test/unit/tap.h"
#include "test/unit/tables.h"

#include <pthread.h>

enum { NR_THREADS = 8, NR_STACKS = 6000, NR_INTERNS = 60000 };

static uint32_t ids[NR_THREADS][NR_STACKS]; /* what each thread was told */
static uint64_t nr_incomplete;

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

static enum lw_kind kind_of(uint64_t number)
{
	return (enum lw_kind)(1 + number % 6);
}

static uint32_t hint_of(uint64_t number)
{
	return (uint32_t)(number / 6 % 3);
}

/* Neighbouring numbers share all of the stack, and differ in kind, hint or whether it was cut. */
static void make_stack(uint64_t number, struct lw_stack *stack)
{
	uint64_t family = number / 36;

	memset(stack, 0, sizeof(*stack));
	/* of 20 frames on average, which the pool has room for */
	stack->nr = family % 50 ? 1 + (uint32_t)(mix(family) % 40) : LW_MAX_FRAMES;
	stack->is_truncated = number / 18 % 2;
	for (uint32_t i = 0; i < stack->nr; i++)
		stack->pcs[i] = 0x1000 + mix(family * 1000 + i / 3) % (1 << 20); /* modules: none */
}

static bool is_complete(uint32_t id, uint64_t number)
{
	const struct lw_site *site = lw_box_site(id);
	struct lw_stack stack;

	make_stack(number, &stack);
	return id < lw_load_acquire(&lw_box->nr_sites) && site->nr_frames == stack.nr &&
	       site->kind == kind_of(number) && site->hint == hint_of(number) &&
	       !(site->flags & LW_SITE_TRUNCATED) == !stack.is_truncated &&
	       !memcmp(lw_sites_pcs(id), stack.pcs, stack.nr * sizeof(stack.pcs[0]));
}

static uint32_t intern(uint64_t number)
{
	struct lw_stack stack;

	make_stack(number, &stack);
	return lw_sites_intern(&stack, lw_site_key(kind_of(number), 0, hint_of(number))).id;
}

static void *intern_many(void *argument)
{
	uint32_t *mine = argument;
	uint64_t state = mix((uintptr_t)argument);

	for (uint32_t i = 0; i < NR_INTERNS; i++) {
		uint64_t number = (state = mix(state + i)) % NR_STACKS;
		uint32_t id = intern(number);

		if (!id || (mine[number] && mine[number] != id) || !is_complete(id, number))
			lw_add(&nr_incomplete, 1);
		mine[number] = id;
	}
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[NR_THREADS];

	for (unsigned i = 0; i < NR_THREADS; i++) {
		if (pthread_create(&threads[i], NULL, intern_many, ids[i]))
			abort();
	}
	for (unsigned i = 0; i < NR_THREADS; i++)
		(void)pthread_join(threads[i], NULL);
}

static void test_threads(void)
{
	static uint64_t number_of[1 << 14]; /* plus one */
	uint64_t nr_different = 0, nr_shared = 0, nr_ids = 0;

	run_threads();
	is_u64(nr_incomplete, 0, "in %d threads an id is always the same, and complete", NR_THREADS);
	for (uint64_t number = 0; number < NR_STACKS; number++) {
		uint32_t id = intern(number);

		for (unsigned i = 0; i < NR_THREADS; i++)
			nr_different += ids[i][number] && ids[i][number] != id;
		nr_shared += number_of[id] != 0;
		number_of[id] = number + 1;
		nr_ids++;
	}
	is_u64(nr_different, 0, "all threads were told the same");
	is_u64(nr_shared, 0, "different stacks, kinds, hints and lengths are different sites");
	is_u64(lw_box->nr_sites, nr_ids + 1, "the ids have no gap, through all growth of the index");
	is_u64(lw_box->dropped[LW_DROP_SITES], 0, "nothing was dropped");
}

/* ---- unloaded code ---- */

static uint32_t intern_here(struct lw_stack *stack)
{
	stack->nr = 2;
	stack->is_truncated = false;
	stack->pcs[0] = (uintptr_t)&make_stack + 1;
	stack->pcs[1] = (uintptr_t)&printf + 1;
	return lw_sites_intern(stack, lw_site_key(LW_KIND_MALLOC, 0, 0)).id;
}

static void test_unloaded(void)
{
	static struct lw_stack stack;
	uint32_t first = intern_here(&stack), second, untouched = intern(1);
	struct lw_module *module = lw_box_module(stack.modules[0]);

	ok(stack.modules[0] != LW_NO_MODULE && stack.modules[1] != LW_NO_MODULE &&
			stack.modules[0] != stack.modules[1], "frames are in their modules");
	module->is_unloaded = 1;
	lw_sites_retire();
	ok(lw_box_site(first)->flags & LW_SITE_DEAD, "a site in code that is gone is dead");
	is_u64(intern(1), untouched, "another is not");
	/* the loader finds the module again, at the same place: the stack is looked at anew */
	second = intern_here(&stack);
	ok(!module->is_unloaded && !(lw_box_site(first)->flags & LW_SITE_DEAD),
			"code that comes back at its old place brings its sites back");
	is_u64(second, first, "with their old ids");
	lw_hot.unloading = 1;
	is_u64(intern_here(&stack), first, "while code is being unloaded a stack is looked up by its modules too");
	lw_hot.unloading = 0;
}

static void test_full(void)
{
	uint32_t before = lw_box->nr_sites, nr_refused = 0, last = 0;
	uint64_t number = NR_STACKS;

	for (; lw_box->nr_sites < lw_box->sites.max && number < 1 << 20; number++)
		last = intern(number);
	is_u64(last, lw_box->sites.max - 1, "the last site there is room for is made");
	ok(lw_box->nr_sites > before, "after %u others", before);
	for (unsigned i = 0; i < 10; i++)
		nr_refused += intern(number + i) == 0;
	is_u64(nr_refused, 10, "then new stacks are site 0");
	is_u64(lw_box->dropped[LW_DROP_SITES], 10, "each counted");
	is_u64(intern(number - 1), last, "known ones are found as ever");
}

static void test_full_pool(void)
{
	uint32_t used = lw_box->pool_used, sites = lw_box->nr_sites;
	uint64_t dropped = lw_box->dropped[LW_DROP_SITES];

	lw_box->nr_sites = sites - 1; /* room for one more record, none for its frames */
	lw_box->pool_used = lw_box->pool.max;
	is_u64(intern(UINT32_MAX), 0, "without room for its frames a stack is site 0");
	is_u64(lw_box->dropped[LW_DROP_SITES], dropped + 1, "and counted");
	lw_box->pool_used = used;
	lw_box->nr_sites = sites;
}

int main(void)
{
	tables_max_sites = 12000;
	tables_start();
	test_threads();
	test_unloaded();
	test_full();
	test_full_pool();
	return done();
}
