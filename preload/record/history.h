/* SPDX-License-Identifier: MIT */
/*
 * history.h - the past of each site: its live bytes at LW_HISTORY_SAMPLES moments of the run.
 *
 * There is no thread of ours, so the threads that allocate take the samples: lw_hot.next_sample_ms
 * says when the next one is due, which costs the ordinary path a load and a comparison. Whoever comes
 * then claims the work, and does a slice of it; the next allocation, of any thread, does the next
 * slice. So no single call takes longer than some microseconds (512 sites: about 5), however many there are.
 *
 * A moment is chosen at random inside its interval, so that what swings in step with the sampling
 * does not look like a trend. When all samples are used, the interval doubles, and for each new
 * sample one of the oldest two neighbours goes, by lot: the run is always covered evenly, by as many
 * samples as there are, be it of a second or of weeks.
 *
 * All functions need the caller's gate closed (guard.h), and none waits.
 */
#ifndef LW_RECORD_HISTORY_H
#define LW_RECORD_HISTORY_H

#include "preload/base/base.h"

/* At the start of a process, or of a forked child: nothing noted yet. lw_hot.start_ns is set. */
void lw_history_start(void);

/* For an allocation that finds now_ms >= lw_hot.next_sample_ms: takes a sample, or a slice of one. */
LW_COLD void lw_history_step(uint64_t now_ms);

/*
 * Exit begins: notes what each site holds, exactly. Not for a run too short to have a trend. May be
 * called again; the last call counts.
 */
void lw_history_note_exit(uint64_t now_ms);

/* Could some site have grown, and been emptied since exit began? May be wrong for yes, not for no. */
bool lw_history_may_be_held(void);

#endif
