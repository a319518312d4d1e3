/* SPDX-License-Identifier: MIT */
/*
 * unit-modules.c - every loaded object is entered with the numbers the loader itself gives, keeps its id
 * while it is there and when it comes back, and leaves nothing that was derived from it when it goes.
 *
 * The libraries that come and go are small ones that belong to libc.
 */
#include "test/unit/tap.h"
#include "test/unit/tables.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include "preload/unwind/modules.h"
#include "preload/unwind/rules.h"

enum { NR_UNLOADS = 300, NR_READERS = 3 };

static const char *const plugin = "libresolv.so.2", *const other_plugin = "libnss_compat.so.2";

static uint16_t id_of(uintptr_t pc)
{
	struct lw_stack stack = { .nr = 1, .pcs = { pc } };

	lw_modules_resolve(&stack);
	return stack.modules[0];
}

struct expected {
	uint8_t build_id[LW_BUILD_ID_BYTES];
	size_t build_id_bytes;
	uintptr_t code;
};

static void read_notes(const uint8_t *at, size_t bytes, struct expected *expected)
{
	const uint8_t *end = at + bytes;
	Elf64_Nhdr note;

	for (; at + sizeof(note) <= end; at += sizeof(note) + ((note.n_namesz + 3) & ~3u) + ((note.n_descsz + 3) & ~3u)) {
		memcpy(&note, at, sizeof(note));
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || memcmp(at + sizeof(note), "GNU", 4))
			continue;
		expected->build_id_bytes = note.n_descsz;
		memcpy(expected->build_id, at + sizeof(note) + 4, note.n_descsz);
	}
}

static int check_object(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct expected expected = { .code = 0 };
	unsigned *nr_wrong = context;
	char exe[PATH_MAX] = "";
	const char *path = info->dlpi_name;
	const struct lw_module *module;
	uint16_t id;

	(void)bytes;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];

		if (phdr->p_type == PT_NOTE && !expected.build_id_bytes)
			read_notes((const uint8_t *)info->dlpi_addr + phdr->p_vaddr, phdr->p_memsz, &expected);
		if (phdr->p_type == PT_LOAD && phdr->p_flags & PF_X)
			expected.code = info->dlpi_addr + phdr->p_vaddr + 1;
	}
	if (!path[0] && readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0)
		path = exe;
	id = id_of(expected.code);
	module = lw_box_module(id);
	if (id == LW_NO_MODULE || module->base != info->dlpi_addr || module->path_bytes != strlen(path) ||
			memcmp(lw_box_pool(module->path_off), path, module->path_bytes) ||
			module->build_id_bytes != expected.build_id_bytes ||
			memcmp(module->build_id, expected.build_id, expected.build_id_bytes) ||
			expected.code < module->start || expected.code >= module->end) {
		printf("# %s is module %u, base %#" PRIx64 "\n", path, id, module->base);
		++*nr_wrong;
	}
	return 0;
}

static void test_loaded(void)
{
	unsigned nr_wrong = 0;
	uint32_t nr_modules;

	(void)dl_iterate_phdr(check_object, &nr_wrong);
	is_u64(nr_wrong, 0, "path, base and build-id of all objects are the loader's");
	nr_modules = lw_box->nr_modules;
	(void)dl_iterate_phdr(check_object, &nr_wrong);
	is_u64(lw_box->nr_modules, nr_modules, "looked at again, %u modules stay what they are", nr_modules);
	is_u64(id_of((uintptr_t)&nr_wrong), LW_NO_MODULE, "the stack is no module");
	is_u64(id_of(1), LW_NO_MODULE, "nor is nothing");
}

/* ---- coming and going ---- */

static void *open_plugin(const char *name, const char *symbol, uintptr_t *pc)
{
	void *handle = dlopen(name, RTLD_NOW);

	*pc = handle ? (uintptr_t)dlsym(handle, symbol) + 1 : 0;
	return handle;
}

static void close_plugin(void *handle)
{
	lw_modules_unload_begin();
	(void)dlclose(handle);
	lw_modules_unload_end(lw_sites_retire);
}

static uint32_t site_of(uintptr_t pc)
{
	struct lw_stack stack = { .nr = 1, .pcs = { pc } };

	return lw_sites_intern(&stack, lw_site_key(LW_KIND_MALLOC, 0, 0)).id;
}

static unsigned nr_rules(void)
{
	unsigned nr = 0;

	for (uint64_t set = 0; set < UINT64_C(1) << lw_rules->bits; set++)
		nr += (lw_rules->sets[set][0] != 0) + (lw_rules->sets[set][1] != 0);
	return nr;
}

static void test_unload(void)
{
	uintptr_t pc, again;
	void *handle = open_plugin(plugin, "__p_option", &pc), *second = dlopen(plugin, RTLD_NOW);
	uint32_t generation = lw_hot.generation, site = site_of(pc), own = site_of((uintptr_t)&test_unload + 1);
	uint16_t id = id_of(pc);

	(void)lw_rules_find(pc);
	ok(id != LW_NO_MODULE && nr_rules() > 0, "a plugin is a module, and has rules");
	close_plugin(second);
	ok(!lw_box_module(id)->is_unloaded && nr_rules() > 0 && site_of(pc) == site,
			"closed by one of two, it is still there");
	ok(lw_hot.generation > generation, "stacks that were remembered are void all the same");
	close_plugin(handle);
	ok(lw_box_module(id)->is_unloaded && nr_rules() == 0, "closed by both, it is gone with all rules");
	ok(lw_box_site(site)->flags & LW_SITE_DEAD && !(lw_box_site(own)->flags & LW_SITE_DEAD),
			"its sites are dead, the others not");
	is_u64(lw_hot.unloading, 0, "no unloading is under way");
	handle = open_plugin(plugin, "__p_option", &again);
	ok(again != pc || (id_of(pc) == id && !lw_box_module(id)->is_unloaded && site_of(pc) == site),
			"back at its place it is the same module, with the same sites");
	close_plugin(handle);
	handle = open_plugin(other_plugin, "_nss_compat_endgrent", &again);
	ok(!handle || id_of(again) != id, "another one at its place is another module");
	if (handle)
		close_plugin(handle);
}

/* ---- threads ---- */

static uint32_t is_over, nr_confused;

static void *resolve_always(void *unused)
{
	uint16_t mine = id_of((uintptr_t)&resolve_always + 1), libc = id_of((uintptr_t)&printf + 1);

	while (!lw_load(&is_over)) {
		if (id_of((uintptr_t)&resolve_always + 1) != mine || id_of((uintptr_t)&printf + 1) != libc)
			lw_add(&nr_confused, 1);
		if (!site_of((uintptr_t)&printf + 1))
			lw_add(&nr_confused, 1);
	}
	return unused;
}

static void test_threads(void)
{
	pthread_t threads[NR_READERS];
	uint32_t nr_modules;
	uintptr_t pc;

	close_plugin(open_plugin(plugin, "__p_option", &pc));
	nr_modules = lw_box->nr_modules;
	for (unsigned i = 0; i < NR_READERS; i++) {
		if (pthread_create(&threads[i], NULL, resolve_always, NULL))
			abort();
	}
	for (unsigned i = 0; i < NR_UNLOADS; i++) {
		void *handle = open_plugin(plugin, "__p_option", &pc);

		if (id_of(pc) == LW_NO_MODULE)
			lw_add(&nr_confused, 1);
		close_plugin(handle);
	}
	lw_store(&is_over, 1);
	for (unsigned i = 0; i < NR_READERS; i++)
		(void)pthread_join(threads[i], NULL);
	is_u64(nr_confused, 0, "other modules keep their ids while one comes and goes");
	ok(lw_box->nr_modules <= nr_modules + NR_UNLOADS / 10, "which takes few entries (%u)",
			lw_box->nr_modules - nr_modules);
}

static void test_full(void)
{
	uintptr_t pc;
	void *handle = open_plugin("libBrokenLocale.so.1", "__ctype_get_mb_cur_max", &pc);

	lw_box->nr_modules = lw_own.nr_modules = lw_own.max_modules;
	is_u64(id_of(pc), LW_NO_MODULE, "without room for it a module is none");
	ok(lw_box->dropped[LW_DROP_MODULES] > 0, "which is counted");
	if (handle)
		close_plugin(handle);
}

int main(void)
{
	void *handle;
	uintptr_t pc;

	tables_start();
	if (dlopen(plugin, RTLD_NOW | RTLD_NOLOAD))
		return tap_skip_all("libresolv is loaded for good here");
	handle = open_plugin(plugin, "__p_option", &pc);
	if (!handle || !pc)
		return tap_skip_all("no libresolv to load and unload here");
	(void)dlclose(handle);
	test_loaded();
	test_unload();
	test_threads();
	test_full();
	return done();
}
