/* SPDX-License-Identifier: MIT */
/*
 * unit-cfi.c - stacks of every kind of frame, walked by us, by libunwind and by the compiler's own
 * unwinder, must be the same; a remembered stack must be found again; garbage must end the walk and
 * nothing else.
 */
#include "test/unit/tap.h"

#ifdef LW_HAS_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

#include <dlfcn.h>
#include <pthread.h>

#include "preload/base/hot.h"
#include "preload/unwind/memo.h"
#include "preload/unwind/stack.h"
#include "preload/unwind/trail.h"
#include "preload/unwind/unwind.h"
#include "test/unit/frames.h"

union lw_hot_page lw_hot_page __attribute__((aligned(4096)));

enum { NR_KINDS = LW_ARRAY_LENGTH(frames_kinds), NR_CHAINS = 3000, MAX_CHAIN = 24, MAX_TRACE = 300, NR_GARBAGE = 300000 };

struct trace {
	unsigned nr;
	uint64_t pcs[MAX_TRACE];
};

/* The kinds of frame that the stack under test is made of; chain_at of them are on it. */
static const struct frames_kind *chain[MAX_CHAIN];
static unsigned chain_nr, chain_at;

static int (*libc_backtrace)(void **, int); /* libunwind has a function of this name too */
static struct lw_memo_room room;
static uint64_t random_state = 7;
static uint64_t known_pcs[8192]; /* all return addresses that were seen, for the garbage */
static unsigned nr_known_pcs;

static uint32_t any(uint32_t below)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)((random_state >> 33) % below);
}

/* ---- the others ---- */

/* Theirs, from the frame of `pc` on; the address after an interrupted one is what we would say. */
static void keep_from(struct trace *trace, uintptr_t pc)
{
	unsigned from = 0, nr = 0;

	while (from < trace->nr && trace->pcs[from] != pc)
		from++;
	for (unsigned i = from; i < trace->nr; i++)
		trace->pcs[nr++] = trace->pcs[i] + (i > from && trace->pcs[i - 1] == frames_trampoline);
	trace->nr = nr;
}

static void trace_by_libc(struct trace *trace)
{
	void *pcs[MAX_TRACE];

	trace->nr = (unsigned)libc_backtrace(pcs, MAX_TRACE);
	for (unsigned i = 0; i < trace->nr; i++)
		trace->pcs[i] = (uint64_t)pcs[i];
}

#ifdef LW_HAS_LIBUNWIND
static void trace_by_libunwind(struct trace *trace)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t pc;

	trace->nr = 0;
	(void)unw_getcontext(&context);
	(void)unw_init_local(&cursor, &context);
	while (trace->nr < MAX_TRACE && unw_step(&cursor) > 0) {
		if (unw_get_reg(&cursor, UNW_REG_IP, &pc) || !pc)
			break;
		trace->pcs[trace->nr++] = pc;
	}
}
#endif

/* ---- the comparison ---- */

static struct {
	unsigned nr, nr_unlike_libc, nr_unlike_libunwind, nr_forgotten, nr_walked_twice,
			nr_unlike_without;
	bool is_repeatable, is_slow;
	unsigned nr_frames;
	const char *told;
} seen;

static void tell(const char *whose, const struct lw_stack *ours, const struct trace *theirs)
{
	if (seen.told)
		return;
	seen.told = whose;
	for (unsigned i = 0; i < ours->nr || i < theirs->nr; i++)
		printf("# %2u ours %#" PRIx64 " %s %#" PRIx64 "\n", i, i < ours->nr ? ours->pcs[i] : 0, whose,
				i < theirs->nr ? theirs->pcs[i] : 0);
}

static bool is_equal(const struct lw_stack *ours, const struct trace *theirs)
{
	return (ours->nr == theirs->nr || ours->is_truncated) &&
	       !memcmp(ours->pcs, theirs->pcs, ours->nr * sizeof(ours->pcs[0]));
}

/* The last walk's trail is a short cut: with it and without it the same must come out. */
static void walk(const struct lw_frame *frame, uint32_t max_frames, struct lw_stack *stack)
{
	static __thread struct lw_trail trail;
	static struct lw_trail none;
	static struct lw_stack without;
	uintptr_t lo = lw_self.stack_lo, hi = lw_self.stack_hi;

	memset(&none, 0, sizeof(none));
	lw_self.trail = &none;
	lw_unwind_walk(&lw_self, frame, max_frames, &without);
	lw_self.trail = &trail;
	lw_self.stack_lo = lo; /* what the first has found out of stacks is not the trail's doing */
	lw_self.stack_hi = hi;
	lw_unwind_walk(&lw_self, frame, max_frames, stack);
	seen.nr_unlike_without += stack->nr != without.nr || stack->is_truncated != without.is_truncated ||
				  stack->is_repeatable != without.is_repeatable ||
				  memcmp(stack->pcs, without.pcs, stack->nr * sizeof(stack->pcs[0]));
	if (!stack->is_repeatable)
		return;
	seen.nr_unlike_without += stack->nr_links != without.nr_links ||
				  memcmp(stack->slots + 1, without.slots + 1,
					  (stack->nr - 1) * sizeof(stack->slots[0])) ||
				  memcmp(stack->links, without.links, stack->nr_links * sizeof(stack->links[0]));
}

static void note_pcs(const struct lw_stack *stack)
{
	for (unsigned i = 0; i < stack->nr && nr_known_pcs < LW_ARRAY_LENGTH(known_pcs); i++)
		known_pcs[nr_known_pcs++] = stack->pcs[i];
}

/* Another walk over the same words, one frame at a time less, is the beginning of the first. */
static bool is_prefix(const struct lw_frame *frame, const struct lw_stack *whole)
{
	static struct lw_stack part;
	uint32_t some = 1 + any(whole->nr);

	walk(frame, some, &part);
	return part.nr == some && part.is_truncated == (some < whole->nr || whole->is_truncated) &&
	       !memcmp(part.pcs, whole->pcs, some * sizeof(part.pcs[0]));
}

/* Does libunwind know all that is in it? */
__attribute__((unused)) static bool is_chain_for_libunwind(void)
{
	for (unsigned i = 0; i < chain_at; i++) {
		if (chain[i]->is_beyond_libunwind)
			return false;
	}
	return true;
}

/* What a hook is to its caller; the frame pointer, asked for by LW_CALLER, makes it one. */
__attribute__((noinline)) static void probe(void)
{
	static struct lw_stack stack;
	struct trace theirs;
	LW_CALLER(call);
	const struct lw_frame frame = lw_frame_of(call);

	walk(&frame, LW_MAX_FRAMES, &stack);
	seen.nr++;
	seen.is_repeatable = stack.is_repeatable;
	seen.is_slow = stack.is_slow;
	seen.nr_frames = stack.nr;
	note_pcs(&stack);
	trace_by_libc(&theirs);
	keep_from(&theirs, frame.pc);
	if (!is_equal(&stack, &theirs)) {
		seen.nr_unlike_libc++;
		tell("libc", &stack, &theirs);
	}
#ifdef LW_HAS_LIBUNWIND
	if (is_chain_for_libunwind()) {
		trace_by_libunwind(&theirs);
		keep_from(&theirs, frame.pc);
		seen.nr_unlike_libunwind += !is_equal(&stack, &theirs);
		if (seen.nr_unlike_libunwind)
			tell("libunwind", &stack, &theirs);
	}
#endif
	memset(&room, 0, sizeof(room));
	lw_self.memos = lw_memos_init(&room);
	lw_memo_keep(&lw_self, &frame, &stack, stack.pcs, seen.nr, 1, 0);
	seen.nr_forgotten += (lw_memo_find(&lw_self, &frame, 1) == seen.nr) !=
			     (stack.is_repeatable && stack.nr + 2 * stack.nr_links <= LW_MEMO_HALVES);
	seen.nr_walked_twice += !is_prefix(&frame, &stack);
}

static uint32_t packed_rule;

__attribute__((noinline)) static void note_rule(void)
{
	packed_rule = lw_cfi_pack((uintptr_t)__builtin_return_address(0), false);
}

static void test_kinds(void)
{
	for (unsigned i = 0; i < NR_KINDS; i++) {
		const struct frames_kind *kind = &frames_kinds[i];
		bool is_packed;

		chain[0] = kind;
		chain_at = 1;
		kind->call(note_rule);
		is_packed = kind->rule == FRAMES_ANY_RULE || (int)lw_rule_type(packed_rule) == kind->rule;
		seen.nr_unlike_libc = seen.nr_unlike_libunwind = 0;
		kind->call(probe);
		ok(is_packed && !seen.nr_unlike_libc && !seen.nr_unlike_libunwind &&
				seen.is_repeatable == !kind->is_not_remembered &&
				(kind->rule == FRAMES_ANY_RULE || seen.is_slow == (kind->rule == LW_RULE_SLOW)),
				"%s: the rule, the stack, and whether it is remembered", kind->name);
	}
}

/* ---- chains of frames ---- */

__attribute__((noinline)) static void next_in_chain(void)
{
	if (chain_at == chain_nr)
		probe();
	else
		chain[chain_at++]->call(next_in_chain);
	__asm__ volatile(""); /* no tail call */
}

static void make_chain(void)
{
	unsigned used[NR_KINDS] = { 0 };

	chain_at = 0;
	chain_nr = 1 + any(MAX_CHAIN);
	for (unsigned i = 0; i < chain_nr; i++) {
		unsigned kind = any(NR_KINDS);

		while (used[kind] == frames_kinds[kind].most)
			kind = any(NR_KINDS);
		used[kind]++;
		chain[i] = &frames_kinds[kind];
	}
}

static void report_chains(const char *where)
{
	is_u64(seen.nr_unlike_libc, 0, "%u stacks of mixed frames are as the compiler's unwinder sees them, %s",
			seen.nr, where);
	is_u64(seen.nr_unlike_libunwind, 0, "and as libunwind does");
	is_u64(seen.nr_forgotten, 0, "what can be remembered is found again, the rest is not");
	is_u64(seen.nr_walked_twice, 0, "a shorter walk is the beginning of a longer one");
}

static void run_chains(const char *where)
{
	memset(&seen, 0, sizeof(seen));
	for (unsigned i = 0; i < NR_CHAINS; i++) {
		make_chain();
		next_in_chain();
	}
	report_chains(where);
}

static void *run_in_thread(void *unused)
{
	(void)unused;
	frames_start();
	run_chains("in a thread");
	return NULL;
}

/* ---- garbage ---- */

enum { PAGE_BYTES = 4096, GARBAGE_WORDS = 16 * PAGE_BYTES / 8 };

/* With more around it than any_word() goes astray: beyond lie the thread's own variables, and the trail itself. */
static uint64_t *new_garbage(void)
{
	const size_t around = 4 * PAGE_BYTES;
	char *all = mmap(NULL, 16 * PAGE_BYTES + 2 * around, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED || mprotect(all + around, 16 * PAGE_BYTES, PROT_READ | PROT_WRITE))
		abort();
	return (uint64_t *)(void *)(all + around);
}

/*
 * The stacks there are, and what lies around them, but for the frames at work: what they write between two walks
 * would be another stack.
 */
static uintptr_t quiet_above; /* frames from here up stand still */

static uint64_t any_stack_word(void)
{
	const uint64_t nr_busy = 1 << 17;
	uintptr_t at = quiet_above + any(1 << 26) - (1 << 25);

	return at < quiet_above && at + nr_busy >= quiet_above ? at + nr_busy : at;
}

static uint64_t any_word(const uint64_t *words)
{
	static const uint64_t odd[] = { 0, 1, 8, UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 47,
		UINT64_C(0xffff800000000000), UINT64_C(0x7ffffffffff8), 4096 };
	uint64_t here = (uintptr_t)words;

	switch (any(8)) {
	case 0:
		return odd[any(LW_ARRAY_LENGTH(odd))];
	case 1:
		return random_state;
	case 2:
		return frames_trampoline;
	case 3:
		return any_stack_word();
	case 4:
	case 5:
		return here + any(20 * PAGE_BYTES) - 2 * PAGE_BYTES;
	default:
		return known_pcs[any(nr_known_pcs)];
	}
}

/* A call from here, because the full evaluator starts from the frames that really are there. */
__attribute__((noinline)) static void walk_garbage(const struct lw_frame *frame, struct lw_stack *stack)
{
	walk(frame, 1 + any(LW_MAX_FRAMES), stack);
}

/*
 * Words that look like the marks of the trail itself: Fibonacci hashing has one of them on many a stack. Neither may
 * be taken for a frame the trail knows, nor lead past its end.
 */
static void test_marks(void)
{
	static struct {
		struct lw_trail trail;
		uint64_t behind[4096];
	} fenced;
	static struct lw_stack stack;
	uint64_t *words = new_garbage();
	unsigned nr_bad = 0, nr_written = 0;

	for (unsigned at = 0; at < LW_ARRAY_LENGTH(fenced.behind); at++)
		fenced.behind[at] = at % 2 ? 0 : LW_TRAIL_NO_PC;
	for (unsigned at = 0; at < GARBAGE_WORDS; at++)
		words[at] = at % 3 == 2 ? ~LW_TRAIL_NO_PC : LW_TRAIL_NO_PC;
	lw_self.trail = &fenced.trail;
	for (unsigned i = 0; i < 4096; i++) {
		struct lw_frame frame = { .pc = known_pcs[any(nr_known_pcs)], .sp = (uintptr_t)(words + any(4096)) };

		words[any(GARBAGE_WORDS)] = known_pcs[any(nr_known_pcs)];
		lw_unwind_walk(&lw_self, &frame, LW_MAX_FRAMES, &stack);
		for (unsigned at = 1; at + 1 < stack.nr; at++)
			nr_bad += stack.pcs[at] == LW_TRAIL_NO_PC;
	}
	for (unsigned at = 0; at < LW_ARRAY_LENGTH(fenced.behind); at++)
		nr_written += fenced.behind[at] != (at % 2 ? 0 : LW_TRAIL_NO_PC);
	is_u64(nr_bad, 0, "no walk goes on behind a word that looks like a mark of the trail");
	is_u64(nr_written, 0, "and nothing is written behind the trail");
}

static void test_garbage(void)
{
	static struct lw_stack stack;
	uint64_t *words = new_garbage();
	uint64_t nr_frames = 0;

	quiet_above = (uintptr_t)__builtin_frame_address(0);
	for (unsigned i = 0; i < NR_GARBAGE; i++) {
		struct lw_frame frame = { .pc = known_pcs[any(nr_known_pcs)],
			.sp = (uintptr_t)(words + any(GARBAGE_WORDS)), .fp = any_word(words) };

		if (i % 16 == 0) {
			for (unsigned at = 0; at < GARBAGE_WORDS; at++)
				words[at] = any_word(words);
		}
		if (any(2))
			lw_self.stack_lo = lw_self.stack_hi = 0;
		walk_garbage(&frame, &stack);
		nr_frames += stack.nr;
	}
	is_u64(seen.nr_unlike_without, 0, "the trail of the walk before never changes what a walk finds");
	ok(nr_frames >= NR_GARBAGE, "%u walks over garbage end (%" PRIu64 " frames)", NR_GARBAGE, nr_frames);
}

int main(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	void *found = libc ? dlsym(libc, "backtrace") : NULL;
	pthread_t thread;

	if (!found)
		return tap_skip_all("no backtrace() in this libc");
	memcpy(&libc_backtrace, &found, sizeof(found));
	frames_start();
	test_kinds();
	run_chains("in the main thread");
	if (!pthread_create(&thread, NULL, run_in_thread, NULL))
		(void)pthread_join(thread, NULL);
	test_marks();
	test_garbage();
	return done();
}
