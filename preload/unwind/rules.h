/* SPDX-License-Identifier: MIT */
/*
 * rules.h - the process-wide table pc -> packed unwind rule, readable without locks.
 *
 * 2-way sets; the set is chosen by the low bits of the pc, so that code that runs together has its
 * rules together; an entry is one 64-bit word, the remaining pc bits over the rule, so that a reader
 * sees a whole entry or another whole entry, never a mixture. A lost race costs a second look-up.
 * Rules are computed from the module's .eh_frame when first needed; unmapping code clears the table.
 */
#ifndef LW_UNWIND_RULES_H
#define LW_UNWIND_RULES_H

#include "preload/base/base.h"
#include "preload/unwind/cfi.h"

enum { LW_RULE_SET_BITS = 15, LW_RULE_WAYS = 2 };

/* relaxed loads and stores: an entry publishes nothing but itself */
extern uint64_t lw_rules[1u << LW_RULE_SET_BITS][LW_RULE_WAYS];

uint32_t lw_rules_fill(uintptr_t pc);
/* Forget all rules. The caller also raises lw_hot.generation. */
void lw_rules_clear(void);

/* The rule of a return address. */
LW_INLINE uint32_t lw_rules_find(uintptr_t pc)
{
	const uint64_t *set = lw_rules[pc & ((1u << LW_RULE_SET_BITS) - 1)];
	uint64_t tag = (uint64_t)pc >> LW_RULE_SET_BITS << 32;
	uint64_t entry = lw_load(&set[0]);

	if (LW_LIKELY((entry & UINT64_C(0xffffffff00000000)) == tag && entry))
		return (uint32_t)entry;
	entry = lw_load(&set[1]);
	if (LW_LIKELY((entry & UINT64_C(0xffffffff00000000)) == tag && entry))
		return (uint32_t)entry;
	return lw_rules_fill(pc);
}

#endif
