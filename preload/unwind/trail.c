/* SPDX-License-Identifier: MIT */
/* trail.c - changing the remembered frames in place; see trail.h. */
#include "preload/unwind/trail.h"

void lw_trail_splice(struct lw_trail *trail, struct lw_trail_walk *walk)
{
	ptrdiff_t more = (ptrdiff_t)walk->nr_fresh - (walk->at - walk->from);
	ptrdiff_t nr_inner = walk->from - walk->first;

	if (LW_UNLIKELY(walk->first - trail->steps < more)) {
		walk->first = walk->at = walk->from = trail->steps + LW_TRAIL_STEPS;
		walk->nr_fresh = 0;
		return;
	}
	walk->first -= more;
	for (ptrdiff_t i = 0; more > 0 && i < nr_inner; i++)
		walk->first[i] = walk->first[i + more];
	for (ptrdiff_t i = nr_inner; more < 0 && i-- > 0;)
		walk->first[i] = walk->first[i + more];
	for (uint32_t i = 0; i < walk->nr_fresh; i++)
		walk->at[(ptrdiff_t)i - walk->nr_fresh] = trail->fresh[i];
	walk->nr_fresh = 0;
	walk->from = walk->at;
}
