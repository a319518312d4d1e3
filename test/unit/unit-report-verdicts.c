/* SPDX-License-Identifier: MIT */
/*
 * unit-report-verdicts.c - what a search and the past make of a site in a report: growing, held, bounded, lost, lost
 * indirectly, reachable; how a site is split, what is summed up where, and that nothing is counted twice.
 */
#include "test/unit/report.h"

/* Three sites of one process: growing, freed by exit, and filled. Then the same, killed. */
static struct fake make_grown(void)
{
	static const struct fake_frame first[] = {{0x200, 0}}, second[] = {{0x300, 0}}, third[] = {{0x700, 0}};
	struct fake fake = fake_new();

	fake_module(&fake, "/opt/app", 0x400000, 0);
	fake_site(&fake, LW_KIND_MALLOC, first, 1);
	fake_site(&fake, LW_KIND_MALLOC, second, 1);
	fake_site(&fake, LW_KIND_MALLOC, third, 1);
	for (uint32_t i = 0; i < 48; i++)
		fake_sample(&fake, i, 50 + 50 * i, 4,
			(uint64_t[]){0, UINT64_C(1024) * (i + 1), 4096 * i, 512 * (i < 20 ? i : 20)});
	*fake_count(&fake, 0, 1) = (struct lw_count){50176, 49, 0, 0};
	*fake_count(&fake, 0, 2) = (struct lw_count){200000, 200, 200000, 200};
	*fake_count(&fake, 0, 3) = (struct lw_count){10240, 20, 0, 0};
	fake.header->exit_began_ms = 2450;
	fake_held(&fake, 1, 50176, 49);
	fake_held(&fake, 2, 200000, 200);
	fake_held(&fake, 3, 10240, 20);
	return fake;
}

static void test_trends(void)
{
	struct fake fake = make_grown();
	struct made made;
	char *text;

	setenv("LC_ALL", "C", 1);
	judge(&made, &fake, "", "");
	made.report.left_bytes = 1 << 30;
	text = text_of(&made);
	is_u64(made.report.nr_leak_sites, 2, "two sites that grew");
	is_u64(made.report.leaked.blocks, 49, "what exit freed is not leaked, nor what stopped");
	is_u64(made.report.reachable.blocks, 20, "which is counted with what is reachable");
	is_u64(made.report.held.blocks, 200, "but counted by itself");
	ok(strstr(text, " leaked 49.0 KiB (50176 bytes) in 49 blocks, from 1 site; 1 site grew and was "
			"freed only by exit\n"),
		"the conclusion");
	ok(strstr(text, "\nGrowing: 49.0 KiB (50176 bytes) in 49 blocks, 100% of all\n"), "growing");
	ok(strstr(text, "  growing: +20.0 KiB/s for 2.4 s, p < 0.000001, not levelling off; at this rate "
			"the 1.0 GiB left run out in 14 h 33 min\n  |_"),
		"why, and what it means");
	ok(strstr(text, "##|\n"), "how it looks");
	ok(strstr(text, "\nHeld: 195.3 KiB (200000 bytes) in 200 blocks\n"), "held");
	ok(strstr(text, "; freed only after exit began"), "why");
	ok(strstr(text, "\n  bounded: grew by 10.0 KiB until 1.0 s after the start, flat since\n"),
		"bounded, and why");
	ok(!strstr(text, "none was ever freed, first seen 2.4 s ago\n  held"), "held blocks were freed");
	if (tap_nr_failed)
		printf("# %s\n", text);
	free(text);
	unmake(&made);

	fake.header->exit_began_ms = 0;
	judge(&made, &fake, "", "");
	is_u64(made.report.nr_leak_sites, 1, "exit not noted: only what is there");
	is_str(made.report.nr_sites ? verdict_name(made.report.sites[0].verdict) : "", "growing",
		"still growing");
	unmake(&made);
	fake_free(&fake);
}

/* A scan splits a site: what is lost, what only that points to, the rest. */
static void test_scan(void)
{
	struct fake fake = make_grown();
	struct lw_scan_site *found = fake_at(&fake, &fake.header->scans, 3);
	struct made made;
	char *text;

	*found = (struct lw_scan_site){.lost_bytes = 512, .lost_blocks = 1, .indirect_bytes = 1024,
		.indirect_blocks = 2, .dragged_bytes = 1024, .dragged_blocks = 2};
	found = fake_at(&fake, &fake.header->scans, 1);
	*found = (struct lw_scan_site){.lost_bytes = 50000, .lost_blocks = 48};
	memset(fake.header->samples, 0, sizeof(fake.header->samples)); /* no past */
	fake.header->scan.state = LW_SCAN_DONE;
	fake.header->scan.flags = LW_SCAN_AT_EXIT;
	fake.header->scan.seq = 2;
	fake.header->exit_began_ms = 0;
	judge(&made, &fake, "", "");
	text = text_of(&made);
	is_u64(made.report.nr_sites, 5, "five parts of two sites");
	is_u64(made.report.lost.blocks, 49, "lost");
	is_u64(made.report.indirect.blocks, 2, "lost indirectly");
	is_u64(made.report.reachable.blocks, 18, "reachable");
	is_u64(made.report.leaked.bytes, 50000 + 512 + 1024, "only what is lost is leaked");
	ok(strstr(text, "drags along 1.0 KiB (1024 bytes) in 2 blocks"), "what it drags along");
	ok(strstr(text, "\nStill reachable, so not counted as leaked: 8.7 KiB (8880 bytes) in 18 blocks, from 2 sites\n"),
		"the rest, in few words");
	if (tap_nr_failed)
		printf("# %s\n", text);
	free(text);
	unmake(&made);

	fake.header->scan.state = LW_SCAN_FAILED;
	fake.header->scan.why = LW_SCAN_WHY_TIME;
	judge(&made, &fake, "", "");
	text = text_of(&made);
	is_u64(made.report.nr_leak_sites, 2, "without a scan all counts");
	ok(strstr(text, "Not known what is lost: the search for pointers was not finished: the time limit was reached"),
		"and why there is none is said");
	free(text);
	unmake(&made);

	fake.header->scan.state = LW_SCAN_DONE;
	fake.header->scan.seq = 3;
	judge(&made, &fake, "", "");
	is_u64(made.report.nr_leak_sites, 2, "half written results are not believed");
	unmake(&made);
	fake_free(&fake);
}

/* Whatever the past says of a site: what the scan saw is summed up by that, and nothing is listed twice. */
static void test_reachability(void)
{
	struct fake fake = make_grown();
	struct lw_scan_site *found = fake_at(&fake, &fake.header->scans, 1);
	struct lw_chain *chains = fake_at(&fake, &fake.header->chains, 0);
	struct made made;
	char *text, *at;
	json_t *tree;

	*found = (struct lw_scan_site){.lost_bytes = 50000, .lost_blocks = 48};
	fake.header->scan.state = LW_SCAN_DONE;
	fake.header->scan.flags = LW_SCAN_AT_EXIT;
	fake.header->scan.seq = 2;
	fake.header->exit_began_ms = 0;
	*fake_count(&fake, 0, 2) = (struct lw_count){256, 1, 0, 0};
	for (uint32_t i = 0; i < 48; i++)
		fake_sample(&fake, i, 50 + 50 * i, 4, (uint64_t[]){0, UINT64_C(1024) * (i + 1), 256, 512 * (i < 20 ? i : 20)});
	fake_hint(&fake, 2, "src/few.c", 12);
	chains[0] = (struct lw_chain){.site = 1, .root = LW_ROOT_UNKNOWN, .address = 0x1000, .bytes = 50};
	chains[1] = (struct lw_chain){.site = 1, .root = LW_ROOT_MEMORY, .address = 0x2000, .bytes = 50, .root_at = 0x3000};
	for (int i = 0; i < 2; i++)
		chains[i].place.module = chains[i].type.module = LW_NO_MODULE;
	fake.header->scan.nr_chains = 2;
	judge(&made, &fake, "", "");
	text = text_of(&made);
	ok(strstr(text, "example 0x000000001000,") && !strstr(text, "not found again"),
		"an example that may be lost is held by nothing");
	ok(strstr(text, "held by memory of the program's own at 0x3000"), "one that is not is held by what it is");
	ok(strstr(text, "\nGrowing: 49.0 KiB (50176 bytes) in 49 blocks"), "a site that grows is called that");
	ok(strstr(text, "nothing points to 48.8 KiB (50000 bytes) in 48 blocks any more"), "though most of it is lost");
	ok(strstr(text, "; still reachable: 10.4 KiB (10672 bytes) in 22 blocks (searched"),
		"the rest of it, what stopped growing, and what never did");
	ok(strstr(text, "\nStill reachable, so not counted as leaked: 256 bytes in 1 block, from 1 site\n"),
		"the list is of the last alone");
	at = strstr(text, "Bounded: 10.0 KiB");
	ok(at && !strstr(at + 10, "10.0 KiB (10240") && strstr(text, "10.0 KiB (10240") == at + 9,
		"what stopped growing is listed once");
	if (tap_nr_failed)
		printf("# %s\n", text);
	free(text);
	tree = json_of(&made);
	is_u64(number(json_object_get(tree, "summary"), "reachable_bytes"), 10672, "the same in JSON");
	json_decref(tree);
	unmake(&made);
	judge(&made, &fake, "min_bytes=1k:show=all", "");
	text = text_of(&made);
	ok(strstr(text, "from 1 site\n  and 1 more site with 256 bytes in 1 block (min_bytes=1024)\n"),
		"below min_bytes it is summed up");
	free(text);
	unmake(&made);
	fake_free(&fake);
}

/*
 * What was made while the program started and has been there ever since is behind the rest: but only as much of it as
 * nothing points to.
 */
static void test_start(void)
{
	static const struct fake_frame bare[] = {{0x700, 0}};
	struct fake fake = fake_new();
	struct made made;
	uint32_t site;
	char *text;

	fake_module(&fake, "/opt/app", 0x400000, 0);
	site = fake_site(&fake, LW_KIND_MALLOC, bare, 1);
	*fake_count(&fake, 0, site) = (struct lw_count){4000, 40, 0, 0};
	*(struct lw_scan_site *)fake_at(&fake, &fake.header->scans, site) = (struct lw_scan_site){.lost_bytes = 1800,
		.lost_blocks = 20, .indirect_bytes = 100, .indirect_blocks = 2, .dragged_bytes = 100, .dragged_blocks = 2};
	fake.header->scan.state = LW_SCAN_DONE;
	fake.header->scan.flags = LW_SCAN_AT_EXIT;
	fake.header->scan.seq = 2;
	fake.header->ended_mono_ns = fake.header->started_mono_ns + UINT64_C(6000000000);
	judge(&made, &fake, "", "");
	text = text_of(&made);
	ok(strstr(text, "\nUnfreed: 1.9 KiB (1900 bytes) in 22 blocks"), "what of the start is lost is one entry");
	ok(strstr(text, "nothing points to 1.8 KiB (1800 bytes) in 20 blocks any more, drags along 100 bytes in 2 blocks"),
		"each block in it is said once");
	is_u64(made.report.leaked.blocks, 22, "what is pointed to is not leaked");
	is_u64(made.report.reachable.blocks, 18, "but reachable");
	is_u64(made.report.pointed.blocks, 18, "in both sums");
	is_u64(made.report.lost.blocks + made.report.indirect.blocks, 22, "and the others are the rest");
	ok(strstr(text, "\nSUMMARY: LeakWatch: 1900 byte(s) leaked in 22 allocation(s).\n"), "as the summary has it");
	if (tap_nr_failed)
		printf("# %s\n", text);
	free(text);
	unmake(&made);
	fake.header->ended_mono_ns = fake.header->started_mono_ns + UINT64_C(3900000000);
	judge(&made, &fake, "", "");
	text = text_of(&made);
	ok(strstr(text, "\nLost: 1.8 KiB (1800 bytes) in 20 blocks") && made.report.leaked.blocks == 22,
		"in a short run it is lost like the rest");
	free(text);
	unmake(&made);
	fake_free(&fake);
}

/* A place the program has told is shown where there is no debug information; an age is never more than the run. */
static void test_examples(void)
{
	static const struct fake_frame bare[] = {{0x700, 0}};
	struct fake fake = fake_new();
	struct lw_chain *chains = fake_at(&fake, &fake.header->chains, 0);
	uint32_t lost, kept;
	struct made made;
	char *text;
	json_t *tree, *sites;

	fake_module(&fake, "/opt/app", 0x400000, 0);
	lost = fake_site(&fake, LW_KIND_MALLOC, bare, 1);
	kept = fake_site(&fake, LW_KIND_CALLOC, bare, 1);
	*fake_count(&fake, 0, lost) = (struct lw_count){100, 2, 0, 0};
	*fake_count(&fake, 0, kept) = (struct lw_count){300, 1, 0, 0};
	fake_hint(&fake, kept, "src/kept.c", 7);
	*(struct lw_scan_site *)fake_at(&fake, &fake.header->scans, lost) =
		(struct lw_scan_site){.lost_bytes = 100, .lost_blocks = 2};
	chains[0] = (struct lw_chain){.site = lost, .root = LW_ROOT_NONE, .address = 0x1000, .bytes = 50, .age_ms = 9000};
	chains[1] = (struct lw_chain){.site = lost, .root = LW_ROOT_NONE, .address = 0x2000, .bytes = 50, .age_ms = 600};
	chains[0].place.module = chains[0].type.module = LW_NO_MODULE;
	chains[1].place.module = chains[1].type.module = LW_NO_MODULE;
	fake.header->scan.nr_chains = 2;
	fake.header->scan.state = LW_SCAN_DONE;
	fake.header->scan.flags = LW_SCAN_AT_EXIT;
	fake.header->scan.seq = 2;
	fake.header->scan.began_mono_ns = fake.header->started_mono_ns + UINT64_C(2600000000);
	judge(&made, &fake, "", "");
	text = text_of(&made);
	ok(strstr(text, "\n  300 bytes in 1 block at src/kept.c:7\n"), "the place a macro told");
	ok(strstr(text, "malloc, none was ever freed, oldest 2.0 s ago\n"), "age of the oldest");
	ok(strstr(text, "0x000000001000, 50 bytes, 2.0 s old\n"), "that of an example is not more");
	ok(strstr(text, "0x000000002000, 50 bytes, 500 ms old\n"), "and is counted to the same end");
	if (tap_nr_failed)
		printf("# %s\n", text);
	free(text);
	tree = json_of(&made);
	sites = json_object_get(tree, "sites");
	ok(json_real_value(json_object_get(json_array_get(json_object_get(json_array_get(sites, 0), "examples"), 0),
		   "age_s")) == json_real_value(json_object_get(json_array_get(sites, 0), "oldest_s")),
		"in JSON, too");
	json_decref(tree);
	unmake(&made);
	fake_free(&fake);
}

int main(void)
{
	test_trends();
	test_scan();
	test_reachability();
	test_start();
	test_examples();
	return done();
}
