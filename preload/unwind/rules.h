/* SPDX-License-Identifier: MIT */
/*
 * rules.h - the process-wide table pc -> packed unwind rule, readable without locks.
 *
 * 2-way sets; the set is chosen by the low bits of the pc, so that code that runs together has its
 * rules together; an entry is one 64-bit word, the remaining pc bits over the rule, so that a reader
 * sees a whole entry or another whole entry, never a mixture. A lost race costs a second look-up.
 * Rules are computed from the module's .eh_frame when first needed; unmapping code clears the table.
 *
 * The table starts small, since most processes that are ever started run for a millisecond, and is
 * exchanged for one of 16 times the size when it throws out too much. The new one fills as it is asked.
 */
#ifndef LW_UNWIND_RULES_H
#define LW_UNWIND_RULES_H

#include "preload/base/base.h"
#include "preload/unwind/cfi.h"

enum { LW_RULE_WAYS = 2, LW_RULE_FIRST_BITS = 7, LW_RULE_LAST_BITS = 15 };

/* log2 of the number of sets, and the sets: never moved or given back, a reader may be in it. */
struct lw_rule_table {
	uint32_t bits;
	uint32_t nr_thrown_out; /* rules that had to go for others */
	uint64_t sets[][LW_RULE_WAYS]; /* relaxed: an entry publishes nothing but itself */
};

/* Release when exchanged: an entry of another size must not be read with the old bits. */
extern struct lw_rule_table *lw_rules;

uint32_t lw_rules_fill(uintptr_t pc);
/* Forget all rules. The caller also raises lw_hot.generation. */
void lw_rules_clear(void);

/* The rule of a return address. */
LW_INLINE uint32_t lw_rules_find(uintptr_t pc)
{
	const struct lw_rule_table *table = lw_load_acquire(&lw_rules);
	const uint64_t *set = table->sets[pc & ((UINT64_C(1) << table->bits) - 1)];
	uint64_t tag = (uint64_t)pc >> table->bits;
	uint64_t entry = lw_load(&set[0]);

	if (LW_LIKELY(entry >> LW_RULE_BITS == tag && entry))
		return (uint32_t)entry & ((1u << LW_RULE_BITS) - 1);
	entry = lw_load(&set[1]);
	if (LW_LIKELY(entry >> LW_RULE_BITS == tag && entry))
		return (uint32_t)entry & ((1u << LW_RULE_BITS) - 1);
	return lw_rules_fill(pc);
}

#endif
