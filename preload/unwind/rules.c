/* SPDX-License-Identifier: MIT */
/* rules.c - filling and clearing the table of unwind rules; see rules.h. */
#include "preload/unwind/rules.h"

#include <string.h>

#include "preload/base/hot.h"

uint64_t lw_rules[1u << LW_RULE_SET_BITS][LW_RULE_WAYS] __attribute__((aligned(64)));

LW_COLD uint32_t lw_rules_fill(uintptr_t pc)
{
	uint64_t *set = lw_rules[pc & ((1u << LW_RULE_SET_BITS) - 1)];
	uint32_t rule = lw_cfi_pack(pc, false);

	/* while code is being unmapped a rule may be true now and false in a moment: not kept */
	if (lw_load_acquire(&lw_hot.unloading) || pc >> 47)
		return rule;
	lw_store(&set[1], lw_load(&set[0])); /* the older of the two goes */
	lw_store(&set[0], (uint64_t)pc >> LW_RULE_SET_BITS << 32 | rule);
	return rule;
}

void lw_rules_clear(void)
{
	for (size_t set = 0; set < LW_ARRAY_LENGTH(lw_rules); set++) {
		for (size_t way = 0; way < LW_RULE_WAYS; way++) {
			if (lw_load(&lw_rules[set][way]))
				lw_store(&lw_rules[set][way], 0);
		}
	}
}
