/* SPDX-License-Identifier: MIT */
/*
 * unit-memo.c - a remembered stack is found again exactly as long as every word it names is the same.
 *
 * Stacks are made up: return addresses and frame pointers are written at random places of a piece of
 * memory that has unreadable pages on both sides, so that a read outside of it ends the test.
 */
#include "test/unit/tap.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "preload/unwind/memo.h"

union lw_hot_page lw_hot_page __attribute__((aligned(4096)));

enum { PAGE_BYTES = 4096, NR_PAGES = 130, NR_WORDS = NR_PAGES * PAGE_BYTES / 8, SITE = 77, KEY = 1, NR_ROUNDS = 3000 };

static uint64_t *words; /* NR_WORDS of them, between two pages that cannot be read */
static struct lw_thread thread;
static struct lw_memo_room small;
static struct lw_memo_more_room more;
static bool has_more; /* the larger table is under test */
static uint64_t pcs[LW_MAX_FRAMES];
static uint64_t random_state = 42;

static uint32_t any(uint64_t below)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)((random_state >> 33) % below);
}

static void forget_all(void)
{
	memset(&small, 0, sizeof(small));
	memset(&more, 0, sizeof(more));
	thread.memos = has_more ? lw_memos_init_more(&more) : lw_memos_init(&small);
}

static void start(void)
{
	char *all = mmap(NULL, (NR_PAGES + 2) * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED || mprotect(all + PAGE_BYTES, NR_PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE))
		abort();
	words = (uint64_t *)(void *)(all + PAGE_BYTES);
	thread.stack_lo = (uintptr_t)words;
	thread.stack_hi = (uintptr_t)(words + NR_WORDS);
}

/* A stack of nr frames and nr_links links from word `from` on; slots rise, as those of walks do. */
static struct lw_frame make(struct lw_stack *stack, uint32_t from, uint32_t nr, uint32_t nr_links)
{
	uint32_t room = NR_WORDS - from > UINT16_MAX - 1 ? UINT16_MAX - 1 : NR_WORDS - from;
	uint32_t nr_places = nr - 1 + nr_links, gap = nr_places ? room / nr_places : room, slot = 0;
	struct lw_frame frame = { .pc = 0x400000 + any(1 << 20), .sp = (uintptr_t)(words + from),
		.fp = (uintptr_t)(words + from) + 8 * (uintptr_t)any(UINT16_MAX) };

	memset(stack, 0, sizeof(*stack));
	for (uint32_t i = 0; i < NR_WORDS; i++)
		words[i] = any(UINT32_MAX);
	stack->is_repeatable = true;
	stack->nr = nr;
	stack->nr_links = nr_links;
	stack->pcs[0] = frame.pc;
	for (uint32_t i = 0; i < nr_places; i++) {
		slot = i * gap + any(gap);
		if (i == nr_places - 1 && any(2))
			slot = room - 1; /* the very last readable word, when there is room for all */
		if (i < nr - 1) {
			stack->slots[i + 1] = (uint16_t)slot;
			stack->pcs[i + 1] = words[from + slot];
		} else if (i == nr - 1 && any(2)) {
			stack->links[0] = (struct lw_link){ LW_LINK_REGISTER,
				(uint16_t)((frame.fp - frame.sp) / 8) };
		} else {
			uint16_t want = (uint16_t)any(UINT16_MAX + 1);

			stack->links[i - (nr - 1)] = (struct lw_link){ (uint16_t)slot, want };
			words[from + slot] = frame.sp + 8 * (uint64_t)want;
		}
	}
	memcpy(pcs, stack->pcs, sizeof(pcs));
	forget_all();
	lw_memo_keep(&thread, &frame, stack, pcs, SITE, KEY, lw_hot.generation);
	return frame;
}

static uint32_t find(const struct lw_frame *frame)
{
	return lw_memo_find(&thread, frame, KEY);
}

/* With one bit of a word changed the stack is another one; changed back it is the same. */
static bool is_noticed(const struct lw_frame *frame, uint32_t slot)
{
	uint64_t *word = (uint64_t *)frame->sp + slot, bit = UINT64_C(1) << any(64);
	bool is_good;

	*word ^= bit;
	is_good = find(frame) == 0;
	*word ^= bit;
	return is_good && find(frame) == SITE;
}

static bool is_named(const struct lw_stack *stack, uint32_t slot)
{
	for (uint32_t i = 1; i < stack->nr; i++) {
		if (stack->slots[i] == slot)
			return true;
	}
	for (uint32_t i = 0; i < stack->nr_links; i++) {
		if (stack->links[i].slot == slot)
			return true;
	}
	return false;
}

static bool others_do_not_matter(const struct lw_frame *frame, const struct lw_stack *stack)
{
	uint32_t from = (uint32_t)((uint64_t *)frame->sp - words);

	for (uint32_t i = 0; i < NR_WORDS; i++) {
		if (i < from || !is_named(stack, i - from))
			words[i] = ~words[i];
		if (i == NR_WORDS / 200) /* the many are checked together, some at a time */
			i = NR_WORDS - NR_WORDS / 200;
	}
	return find(frame) == SITE;
}

static bool bounds_are_kept(const struct lw_frame *frame, const struct lw_stack *stack)
{
	uintptr_t lo = thread.stack_lo, hi = thread.stack_hi, end = frame->sp + 8;
	bool is_good;

	for (uint32_t i = 0; i < stack->nr + stack->nr_links; i++) {
		uint16_t slot = i < stack->nr ? stack->slots[i] : stack->links[i - stack->nr].slot;

		if (slot != LW_LINK_REGISTER && frame->sp + 8 * (uintptr_t)slot + 8 > end)
			end = frame->sp + 8 * (uintptr_t)slot + 8;
	}
	thread.stack_hi = end;
	is_good = find(frame) == SITE;
	thread.stack_hi = end - 8;
	is_good &= find(frame) == 0;
	thread.stack_hi = hi;
	thread.stack_lo = frame->sp + 8;
	is_good &= find(frame) == 0;
	thread.stack_lo = lo;
	return is_good;
}

static bool identity_matters(const struct lw_frame *frame)
{
	struct lw_frame other = *frame;
	bool is_good;

	other.pc++;
	is_good = find(&other) == 0 && lw_memo_find(&thread, frame, KEY + 1) == 0;
	lw_hot.generation++;
	is_good &= find(frame) == 0;
	lw_hot.generation--;
	return is_good && find(frame) == SITE;
}

struct tally {
	unsigned nr_kept, nr_found, nr_unnoticed, nr_disturbed, nr_out_of_bounds, nr_confused;
};

static void try_one(struct tally *tally, uint32_t nr, uint32_t nr_links)
{
	struct lw_stack stack;
	struct lw_frame frame = make(&stack, any(4) ? any(NR_WORDS / 2) : NR_WORDS - 2 * (nr + nr_links), nr, nr_links);

	tally->nr_kept++;
	tally->nr_found += find(&frame) == SITE;
	for (uint32_t i = 1; i < nr; i++)
		tally->nr_unnoticed += !is_noticed(&frame, stack.slots[i]);
	for (uint32_t i = 0; i < nr_links; i++) {
		if (stack.links[i].slot != LW_LINK_REGISTER) {
			tally->nr_unnoticed += !is_noticed(&frame, stack.links[i].slot);
		} else {
			frame.fp += 8;
			tally->nr_unnoticed += find(&frame) != 0;
			frame.fp -= 8;
		}
	}
	tally->nr_out_of_bounds += !bounds_are_kept(&frame, &stack);
	tally->nr_confused += !identity_matters(&frame);
	tally->nr_disturbed += !others_do_not_matter(&frame, &stack);
}

static void test_all_sizes(void)
{
	struct tally tally = { 0 };

	for (uint32_t nr = 1; nr <= LW_MEMO_HALVES; nr++) {
		for (uint32_t nr_links = 0; nr + 2 * nr_links <= LW_MEMO_HALVES; nr_links += 1 + any(9))
			try_one(&tally, nr, nr_links);
	}
	is_u64(tally.nr_found, tally.nr_kept, "stacks of 1 to %d frames are found again", LW_MEMO_HALVES);
	is_u64(tally.nr_unnoticed, 0, "a change of any word that is named is noticed");
	is_u64(tally.nr_disturbed, 0, "a change of the others does not matter");
	is_u64(tally.nr_out_of_bounds, 0, "nothing is read outside of what is known to be readable");
	is_u64(tally.nr_confused, 0, "another pc, another key and another generation are another stack");
}

static void test_not_kept(void)
{
	struct lw_stack stack;
	struct lw_frame frame;
	bool is_good = true;

	for (uint32_t nr = 1; nr <= LW_MAX_FRAMES; nr++) {
		uint32_t nr_links = nr <= LW_MEMO_HALVES ? (LW_MEMO_HALVES - nr) / 2 + 1 : 0;

		frame = make(&stack, 0, nr, nr_links);
		is_good &= find(&frame) == 0;
	}
	ok(is_good, "what does not fit an entry is not kept");
	frame = make(&stack, 0, 10, 2);
	forget_all();
	lw_memo_keep(&thread, &frame, &stack, pcs, 0, KEY, lw_hot.generation);
	ok(find(&frame) == 0, "a stack without a site is not kept");
	stack.is_repeatable = false;
	lw_memo_keep(&thread, &frame, &stack, pcs, SITE, KEY, lw_hot.generation);
	ok(find(&frame) == 0, "a stack that depends on other words is not kept");
}

static void test_ways(void)
{
	struct lw_stack stack;
	struct lw_frame frame = make(&stack, 100, 20, 3);
	uint16_t slot = stack.slots[19];
	uint64_t outer[LW_MEMO_WAYS + 1][LW_MAX_FRAMES];
	bool is_good = true;

	/* stacks that differ in their outermost frame only come by the same place */
	for (uint32_t i = 0; i <= LW_MEMO_WAYS; i++) {
		memcpy(outer[i], pcs, sizeof(pcs));
		outer[i][19] = 0x777000 + i;
		lw_memo_keep(&thread, &frame, &stack, outer[i], SITE + 1 + i, KEY, lw_hot.generation);
	}
	for (uint32_t round = 0; round < NR_ROUNDS; round++) {
		uint32_t i = 1 + any(LW_MEMO_WAYS);

		words[100 + slot] = 0x777000 + i;
		is_good &= find(&frame) == SITE + 1 + i;
	}
	ok(is_good, "the last %d stacks of one place are told apart", LW_MEMO_WAYS);
	words[100 + slot] = 0x777000;
	ok(find(&frame) == 0, "and an older one has made room for them");
}

int main(void)
{
	start();
	for (int table = 0; table < 2; table++) {
		has_more = table;
		test_all_sizes();
		test_not_kept();
		test_ways();
	}
	return done();
}
