/* SPDX-License-Identifier: MIT */
/*
 * observe.c - looks over the shoulder of the unwinder, in a library made of LeakWatch's own objects.
 *
 * The linker's --wrap puts these functions between record/track.c and the rest. LW_OBSERVE, in the
 * environment, is MODE:EVERY:FILE and says what is compared for every EVERYth allocation:
 *   walk  the stack of our walk with libunwind's unw_step, frame by frame. Nothing is remembered in
 *         this mode, so that every allocation walks.
 *   memo  the stack of the site that an allocation was recorded under, most often by the memo, with a walk made
 *         at the same moment. Any difference is a defect.
 * The counts, and the first differences with module and offset of the frames around them, are written
 * to FILE when the process ends.
 */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/base/hot.h"
#include "preload/base/lock.h"
#include "preload/record/blocks.h"
#include "preload/record/sites.h"
#include "preload/record/track.h"
#include "preload/share/process.h"
#include "preload/unwind/memo.h"

enum { MAX_COMPARED = 150000, MAX_NOTED = 40, MAX_OWN_FRAMES = 24, SHOWN_FRAMES = 3 };

enum mode { MODE_UNKNOWN, MODE_NONE, MODE_WALK, MODE_MEMO };

enum outcome { EQUAL, SHORTER, LONGER, DIFFERENT, LOST, NR_OUTCOMES };
static const char *const outcome_names[NR_OUTCOMES] = { "equal", "shorter", "longer", "different", "lost" };

/* One stack, ours or the reference's. */
struct trace {
	uint32_t nr;
	bool is_truncated;
	uint64_t pcs[LW_MAX_FRAMES];
};

/* A difference as it is told at the end. */
struct note {
	enum outcome outcome;
	uint32_t at; /* index of the first frame that differs */
	uint32_t nr_ours, nr_theirs;
	uint64_t ours[2 * SHOWN_FRAMES], theirs[2 * SHOWN_FRAMES]; /* around it; 0 none */
};

void __real_lw_unwind_walk(struct lw_thread *, const struct lw_frame *, uint32_t, struct lw_stack *);
void __wrap_lw_unwind_walk(struct lw_thread *, const struct lw_frame *, uint32_t, struct lw_stack *);
void __real_lw_track_alloc(struct lw_hidden, size_t, enum lw_kind, const struct lw_call *);
void __wrap_lw_track_alloc(struct lw_hidden, size_t, enum lw_kind, const struct lw_call *);
typedef __typeof__(lw_memo_keep) memo_keep_fn;
extern memo_keep_fn __real_lw_memo_keep;
void __wrap_lw_memo_keep(const struct lw_thread *, const struct lw_frame *, const struct lw_stack *,
		const uint64_t *, uint32_t, uint64_t, uint32_t);

static enum mode mode;
static unsigned every = 1;
static char file[1024];
static uint64_t nr_seen, nr_compared, nr_slow, nr_frames, counts[NR_OUTCOMES];
static struct note notes[MAX_NOTED];
static unsigned nr_notes;
static LW_TLS bool is_inside;

static enum mode read_mode(void)
{
	const char *text = lw_process_env("LW_OBSERVE");
	enum mode found = MODE_NONE;

	if (text && sscanf(text, "%*4[a-z]:%u:%1000s", &every, file) == 2 && every)
		found = !strncmp(text, "walk", 4) ? MODE_WALK : MODE_MEMO;
	__atomic_store_n(&mode, found, __ATOMIC_RELEASE);
	return found;
}

static enum mode get_mode(void)
{
	enum mode found = __atomic_load_n(&mode, __ATOMIC_ACQUIRE);

	return found ? found : read_mode();
}

static bool is_turn(void)
{
	return __atomic_fetch_add(&nr_seen, 1, __ATOMIC_RELAXED) % every == 0 &&
	       __atomic_load_n(&nr_compared, __ATOMIC_RELAXED) < MAX_COMPARED;
}

static void copy_around(uint64_t out[2 * SHOWN_FRAMES], const struct trace *trace, uint32_t at)
{
	for (uint32_t i = 0; i < 2 * SHOWN_FRAMES; i++) {
		uint32_t index = at + i - SHOWN_FRAMES;

		out[i] = at + i >= SHOWN_FRAMES && index < trace->nr ? trace->pcs[index] : 0;
	}
}

static void note(enum outcome outcome, const struct trace *ours, const struct trace *theirs, uint32_t at)
{
	unsigned slot = __atomic_fetch_add(&nr_notes, 1, __ATOMIC_RELAXED);

	if (slot >= MAX_NOTED)
		return;
	notes[slot] = (struct note){ .outcome = outcome, .at = at, .nr_ours = ours->nr, .nr_theirs = theirs->nr };
	copy_around(notes[slot].ours, ours, at);
	copy_around(notes[slot].theirs, theirs, at);
}

static void compare(const struct trace *ours, const struct trace *theirs)
{
	uint32_t at = 0;
	enum outcome outcome = EQUAL;

	while (at < ours->nr && at < theirs->nr && ours->pcs[at] == theirs->pcs[at])
		at++;
	if (at < ours->nr && at < theirs->nr)
		outcome = DIFFERENT;
	else if (ours->nr < theirs->nr && !ours->is_truncated)
		outcome = SHORTER;
	else if (ours->nr > theirs->nr && !theirs->is_truncated)
		outcome = LONGER;
	__atomic_fetch_add(&counts[outcome], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&nr_compared, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&nr_frames, ours->nr, __ATOMIC_RELAXED);
	if (outcome != EQUAL)
		note(outcome, ours, theirs, at);
}

static void copy_stack(struct trace *out, const struct lw_stack *stack)
{
	out->nr = stack->nr;
	out->is_truncated = stack->is_truncated;
	memcpy(out->pcs, stack->pcs, stack->nr * sizeof(stack->pcs[0]));
}

/* ---- walk: against libunwind ---- */

static bool stands_at(unw_cursor_t *cursor, const struct lw_frame *frame)
{
	unw_word_t pc = 0, sp = 0;

	unw_get_reg(cursor, UNW_REG_IP, &pc);
	unw_get_reg(cursor, UNW_REG_SP, &sp);
	return pc == frame->pc && sp == frame->sp;
}

/* Through our own frames to the caller of the hook, then as many as there are. */
static bool walk_by_libunwind(const struct lw_frame *frame, uint32_t max_frames, struct trace *out)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t pc;

	unw_getcontext(&context);
	unw_init_local(&cursor, &context);
	for (int i = 0; !stands_at(&cursor, frame); i++) {
		if (i == MAX_OWN_FRAMES || unw_step(&cursor) <= 0)
			return false;
	}
	out->nr = 0;
	out->is_truncated = false;
	do {
		if (out->nr == max_frames) {
			out->is_truncated = true;
			return true;
		}
		unw_get_reg(&cursor, UNW_REG_IP, &pc);
		if (!pc)
			return true;
		out->pcs[out->nr++] = pc;
	} while (unw_step(&cursor) > 0);
	return true;
}

void __wrap_lw_unwind_walk(struct lw_thread *thread, const struct lw_frame *frame, uint32_t max_frames,
		struct lw_stack *stack)
{
	struct trace ours, theirs = { 0 };

	__real_lw_unwind_walk(thread, frame, max_frames, stack);
	if (get_mode() != MODE_WALK || is_inside || !is_turn())
		return;
	is_inside = true;
	if (stack->is_slow)
		__atomic_fetch_add(&nr_slow, 1, __ATOMIC_RELAXED);
	copy_stack(&ours, stack);
	if (walk_by_libunwind(frame, max_frames, &theirs)) {
		compare(&ours, &theirs);
	} else {
		__atomic_fetch_add(&counts[LOST], 1, __ATOMIC_RELAXED);
		note(LOST, &ours, &theirs, 0);
	}
	is_inside = false;
}

void __wrap_lw_memo_keep(const struct lw_thread *thread, const struct lw_frame *frame, const struct lw_stack *stack,
		const uint64_t *pcs, uint32_t site, uint64_t key, uint32_t generation)
{
	if (get_mode() != MODE_WALK)
		__real_lw_memo_keep(thread, frame, stack, pcs, site, key, generation);
}

/* ---- memo: the recorded site against a walk ---- */

void __wrap_lw_track_alloc(struct lw_hidden hidden, size_t bytes, enum lw_kind kind, const struct lw_call *call)
{
	static LW_TLS struct lw_stack fresh;
	const struct lw_frame frame = lw_frame_of(call);
	struct lw_block block;
	struct trace recorded, walked;

	__real_lw_track_alloc(hidden, bytes, kind, call);
	if (get_mode() != MODE_MEMO || is_inside || !lw_load(&lw_hot.active) ||
			lw_self.gate != LW_GATE_OPEN || !is_turn())
		return;
	if (!lw_blocks_find(lw_reveal(hidden), &block) || !block.site)
		return;
	is_inside = true;
	__real_lw_unwind_walk(&lw_self, &frame, lw_hot.depth, &fresh);
	copy_stack(&walked, &fresh);
	recorded.nr = lw_box_site(block.site)->nr_frames;
	recorded.is_truncated = false;
	memcpy(recorded.pcs, lw_sites_pcs(block.site), recorded.nr * sizeof(recorded.pcs[0]));
	walked.is_truncated = false; /* both were cut at the same depth */
	compare(&recorded, &walked);
	is_inside = false;
}

/* ---- the end ---- */

__attribute__((format(printf, 2, 3))) static void say(int fd, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (write(fd, line, n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1) < 0)
		return;
}

static void say_frames(int fd, const char *whose, const uint64_t pcs[2 * SHOWN_FRAMES])
{
	for (int i = 0; i < 2 * SHOWN_FRAMES; i++) {
		Dl_info info = { 0 };

		if (!pcs[i])
			continue;
		if (!dladdr((void *)(uintptr_t)pcs[i], &info))
			say(fd, "  %s%c 0x%llx\n", whose, i == SHOWN_FRAMES ? '>' : ' ', (unsigned long long)pcs[i]);
		else
			say(fd, "  %s%c %s+0x%llx %s\n", whose, i == SHOWN_FRAMES ? '>' : ' ', info.dli_fname,
					(unsigned long long)(pcs[i] - (uintptr_t)info.dli_fbase),
					info.dli_sname ? info.dli_sname : "");
	}
}

__attribute__((destructor)) static void tell(void)
{
	unsigned nr = nr_notes < MAX_NOTED ? nr_notes : MAX_NOTED;
	int fd;

	if (get_mode() == MODE_NONE)
		return;
	fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	say(fd, "compared %llu\nframes %llu\nslow %llu\n", (unsigned long long)nr_compared,
			(unsigned long long)nr_frames, (unsigned long long)nr_slow);
	for (int i = 0; i < NR_OUTCOMES; i++)
		say(fd, "%s %llu\n", outcome_names[i], (unsigned long long)counts[i]);
	for (unsigned i = 0; i < nr; i++) {
		say(fd, "note %s at %u, %u against %u frames\n", outcome_names[notes[i].outcome], notes[i].at,
				notes[i].nr_ours, notes[i].nr_theirs);
		say_frames(fd, "ours  ", notes[i].ours);
		say_frames(fd, "theirs", notes[i].theirs);
	}
	close(fd);
}
