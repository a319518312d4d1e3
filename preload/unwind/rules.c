/* SPDX-License-Identifier: MIT */
/* rules.c - filling, growing and clearing the table of unwind rules; see rules.h. */
#include "preload/unwind/rules.h"

#include "preload/base/hot.h"
#include "preload/base/mem.h"

enum { GROWTH_BITS = 2 };

/* A pc has 47 bits: those that do not choose the set and the rule fill an entry. */
_Static_assert(47 - LW_RULE_FIRST_BITS + LW_RULE_BITS <= 64, "tag and rule are one word");

static union {
	struct lw_rule_table table;
	char room[sizeof(struct lw_rule_table) + sizeof(uint64_t[LW_RULE_WAYS]) * (1 << LW_RULE_FIRST_BITS)];
} first __attribute__((aligned(LW_CACHE_LINE))) = { .table = { .bits = LW_RULE_FIRST_BITS } };

struct lw_rule_table *lw_rules = &first.table;

static uint64_t nr_sets(const struct lw_rule_table *table)
{
	return UINT64_C(1) << table->bits;
}

/* Takes a larger table once a quarter of this one's rules have been thrown out by others. */
static void grow(struct lw_rule_table *table)
{
	uint32_t bits = table->bits + GROWTH_BITS;
	struct lw_rule_table *larger;
	size_t bytes;

	/* each number is one thread's, so that exactly one grows the table */
	if (__atomic_add_fetch(&table->nr_thrown_out, 1, __ATOMIC_RELAXED) != nr_sets(table) / 2 ||
			bits > LW_RULE_LAST_BITS)
		return;
	bytes = sizeof(*larger) + (sizeof(larger->sets[0]) << bits);
	larger = lw_mem_map(bytes, "leakwatch rules");
	if (!larger)
		return; /* the small one goes on, slower */
	larger->bits = bits;
	if (!__atomic_compare_exchange_n(&lw_rules, &table, larger, false, __ATOMIC_RELEASE,
			__ATOMIC_RELAXED))
		lw_mem_unmap(larger, bytes);
}

LW_COLD uint32_t lw_rules_fill(uintptr_t pc)
{
	struct lw_rule_table *table = lw_load_acquire(&lw_rules);
	uint64_t *set = table->sets[pc & (nr_sets(table) - 1)], older;
	uint32_t rule = lw_cfi_pack(pc, false);

	/* while code is being unmapped a rule may be true now and false in a moment: not kept */
	if (lw_load_acquire(&lw_hot.unloading) || pc >> 47)
		return rule;
	older = lw_load(&set[0]);
	if (lw_load(&set[1]))
		grow(table);
	lw_store(&set[1], older);
	lw_store(&set[0], (uint64_t)pc >> table->bits << LW_RULE_BITS | rule);
	return rule;
}

void lw_rules_clear(void)
{
	struct lw_rule_table *table = lw_load_acquire(&lw_rules);

	for (uint64_t set = 0; set < nr_sets(table); set++) {
		for (size_t way = 0; way < LW_RULE_WAYS; way++) {
			if (lw_load(&table->sets[set][way]))
				lw_store(&table->sets[set][way], 0);
		}
	}
}
