/* SPDX-License-Identifier: MIT */
/* holder.c - names for what a scan says of who holds a block; see holder.h. */
#include "snapshot/report/holder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/report/format.h"

static const char vtable[] = "vtable for ";

/* Is this one said of lost blocks where the entry is about those, or of others where it is about those? */
static bool is_about(const struct report_site *judged, const struct lw_chain *chain)
{
	if (judged->verdict == VERDICT_GROWING)
		return true;
	return (judged->verdict == VERDICT_LOST) == (chain->root == LW_ROOT_NONE);
}

bool holder_is_shown(const struct report_site *judged)
{
	return judged->verdict == VERDICT_LOST || judged->verdict == VERDICT_GROWING;
}

const struct lw_chain *holder_next(const struct report *report, const struct report_site *judged, size_t *from)
{
	const struct model *model = report->model;

	for (; *from < model->nr_chains; ++*from) {
		const struct lw_chain *chain = &model->chains[*from];
		uint32_t site = model_find_site(model, chain->site);

		if (site == MODEL_NO_SITE || &model->sites[model->sites[site].merged] != judged->site ||
			!is_about(judged, chain))
			continue;
		++*from;
		return chain;
	}
	return NULL;
}

bool holder_is_held(const struct report *report, const struct lw_chain *chain)
{
	uint32_t place = model_find_site(report->model, chain->site);
	const struct model_site *site = place == MODEL_NO_SITE ? NULL : &report->model->sites[place];

	if (chain->root == LW_ROOT_NONE)
		return false;
	/* a way that was not found, at a site some of which is lost: it may be one of those */
	return chain->root != LW_ROOT_UNKNOWN || chain->nr_owners ||
	       !(site && site->scan.lost_blocks + site->scan.indirect_blocks);
}

uint64_t holder_age_ms(const struct report *report, const struct report_site *judged, const struct lw_chain *chain)
{
	const struct model_site *site = judged->site;
	uint64_t searched_ms = report->model->scan.began_ns / 1000000;
	uint64_t born_ms = chain->age_ms < searched_ms ? searched_ms - chain->age_ms : 0;
	uint32_t first_ms = site->oldest_ms != UINT32_MAX ? site->oldest_ms : site->first_ms;

	born_ms = born_ms < first_ms ? first_ms : born_ms < UINT32_MAX ? born_ms : UINT32_MAX;
	return report_age_ms(report, (uint32_t)born_ms);
}

static const char *name_at(struct report *report, const struct lw_place *place, uint64_t *into)
{
	const struct model_module *module = model_module(report->model, place->module);

	return module ? symbols_variable(report->symbols, module->same_as, place->offset, into) : NULL;
}

const char *holder_class(struct report *report, const struct lw_chain *chain)
{
	uint64_t into;
	const char *name = chain->type.name[0] ? name_at(report, &chain->type, &into) : NULL;

	return name && !strncmp(name, vtable, sizeof(vtable) - 1) ? name + sizeof(vtable) - 1 : NULL;
}

const char *holder_variable(struct report *report, const struct lw_chain *chain, uint64_t *into)
{
	return chain->root == LW_ROOT_DATA ? name_at(report, &chain->place, into) : NULL;
}

/* "name (app+0x12)", or what of it is known. */
static void put_place(char *out, size_t bytes, struct report *report, const struct lw_place *place)
{
	const struct model_module *module = model_module(report->model, place->module);
	const char *path = module ? module->path : place->name, *slash = strrchr(path, '/');
	const struct symbol_frame *frames;
	char name[512] = "", file[256];
	size_t nr;

	if (module) {
		frames = symbols_resolve(report->symbols, module->same_as, place->offset, true, &nr);
		if (frames[nr - 1].function)
			format_text(name, sizeof(name), frames[nr - 1].function);
	}
	(void)snprintf(out, bytes, "%s%s(%s+0x%" PRIx64 ")", name, *name ? " " : "",
		format_text(file, sizeof(file), slash ? slash + 1 : path), place->offset);
}

const char *holder_root(char out[HOLDER_TEXT_BYTES], struct report *report, const struct lw_chain *chain)
{
	char place[HOLDER_TEXT_BYTES - 256] = "", name[512];
	uint64_t into = 0;
	const char *variable = holder_variable(report, chain, &into);

	if (chain->place.name[0])
		put_place(place, sizeof(place), report, &chain->place);
	if (variable)
		(void)snprintf(out, HOLDER_TEXT_BYTES, "%s+0x%" PRIx64 " %s", format_text(name, sizeof(name), variable),
			into, place);
	else if (chain->root == LW_ROOT_DATA)
		(void)snprintf(out, HOLDER_TEXT_BYTES, "a variable %s", place);
	else if (chain->root == LW_ROOT_STACK)
		(void)snprintf(out, HOLDER_TEXT_BYTES, "the stack of thread %d%s%s", chain->tid, *place ? ", in " : "",
			place);
	else if (chain->root == LW_ROOT_REGISTER)
		(void)snprintf(out, HOLDER_TEXT_BYTES, "a register of thread %d%s%s", chain->tid, *place ? ", in " : "",
			place);
	else if (chain->root == LW_ROOT_MEMORY)
		(void)snprintf(out, HOLDER_TEXT_BYTES, "memory of the program's own at 0x%" PRIx64, chain->root_at);
	else
		(void)snprintf(out, HOLDER_TEXT_BYTES, "%s", "something that was not found again");
	return out;
}

const char *holder_root_name(unsigned kind)
{
	static const char *const names[LW_NR_ROOT_KINDS] = {
		"none", "unknown", "data", "stack", "register", "memory"};

	return names[kind < LW_NR_ROOT_KINDS ? kind : LW_ROOT_UNKNOWN];
}

uint32_t holder_site(const struct report *report, const struct lw_owner *owner)
{
	uint32_t site = owner->site == LW_NO_OWNER ? MODEL_NO_SITE : model_find_site(report->model, owner->site);

	return site == MODEL_NO_SITE ? site : report->model->sites[site].merged;
}

uint32_t holder_left_out(const struct lw_chain *chain, uint32_t *nr_kept)
{
	bool is_cut = chain->nr_owners > LW_CHAIN_OWNERS;

	*nr_kept = is_cut ? LW_CHAIN_OWNERS : chain->nr_owners;
	return is_cut ? chain->nr_owners - LW_CHAIN_OWNERS : 0;
}
