/* SPDX-License-Identifier: MIT */
/* json_holder.c - example blocks: address, class, first bytes, and the way from a root; see json_holder.h. */
#include "snapshot/report/json_holder.h"

#include <stdio.h>

#include "snapshot/report/holder.h"

static json_t *make_first(const struct lw_chain *chain)
{
	char text[2 * LW_FIRST_BYTES + 1] = "";

	for (uint32_t i = 0; i < chain->nr_first; i++)
		(void)snprintf(text + (size_t)2 * i, 3, "%02x", chain->first[i]);
	return json_string(text);
}

static json_t *make_root(struct report *report, const struct lw_chain *chain)
{
	json_t *out = json_object();
	char text[HOLDER_TEXT_BYTES];
	const char *variable;
	uint64_t into;

	json_object_set_new(out, "kind", json_text(holder_root_name(chain->root)));
	json_object_set_new(out, "text", json_text(holder_root(text, report, chain)));
	if (chain->root_at)
		json_object_set_new(out, "address", json_hex(chain->root_at));
	if (chain->tid)
		json_object_set_new(out, "thread", json_integer(chain->tid));
	variable = holder_variable(report, chain, &into);
	if (variable) {
		json_object_set_new(out, "variable", json_text(variable));
		json_object_set_new(out, "offset", json_number(into));
	}
	return out;
}

static json_t *make_owners(const struct report *report, const struct lw_chain *chain)
{
	json_t *out = json_array(), *one;
	uint32_t nr_kept, site;

	(void)holder_left_out(chain, &nr_kept);
	for (uint32_t i = 0; i < nr_kept; i++) {
		one = json_object();
		site = holder_site(report, &chain->owners[i]);
		if (site != MODEL_NO_SITE)
			json_object_set_new(one, "site", json_integer(report->model->sites[site].id));
		if (chain->owners[i].offset != LW_NO_OWNER)
			json_object_set_new(one, "offset", json_integer(chain->owners[i].offset));
		json_array_append_new(out, one);
	}
	return out;
}

static json_t *make_example(struct report *report, const struct report_site *judged, const struct lw_chain *chain)
{
	json_t *out = json_object();
	const char *class = holder_class(report, chain);

	json_object_set_new(out, "address", json_hex(chain->address));
	json_object_set_new(out, "bytes", json_number(chain->bytes));
	json_object_set_new(out, "age_s", json_real((double)holder_age_ms(report, judged, chain) / 1e3));
	if (class)
		json_object_set_new(out, "class", json_text(class));
	if (holder_is_shown(judged))
		json_object_set_new(out, "first", make_first(chain));
	if (!holder_is_held(report, chain))
		return out;
	json_object_set_new(out, "root", make_root(report, chain));
	json_object_set_new(out, "owners", make_owners(report, chain));
	json_object_set_new(out, "nr_owners", json_integer(chain->nr_owners));
	return out;
}

json_t *json_holders(struct report *report, const struct report_site *judged)
{
	const struct lw_chain *chain;
	json_t *out = NULL;
	size_t from = 0;

	while ((chain = holder_next(report, judged, &from))) {
		if (!out)
			out = json_array();
		json_array_append_new(out, make_example(report, judged, chain));
	}
	return out;
}
