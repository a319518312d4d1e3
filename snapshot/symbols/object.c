/* SPDX-License-Identifier: MIT */
/*
 * object.c - opening a module's file and its debug files.
 *
 * The path of a module is a claim: the file may be gone, replaced by another build, a device, or no
 * ELF at all. It is opened without blocking, must be a regular 64-bit ELF program or library, and
 * must carry the build id that the target saw; else the object is unknown for good. elfutils then
 * gets the open descriptor. The descriptor stays with it (and one more for a debug file), so a
 * viewer of hundreds of modules wants its soft limit of descriptors raised.
 *
 * Debug files are looked for twice: for the path inside root_prefix, which finds what lies beside
 * the module, and for the bare path, which finds `/usr/lib/debug/usr/bin/x.debug` inside the root.
 * elfutils checks what it finds (build id, or the checksum in the debug link).
 */
#include "snapshot/symbols/object.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Never reached: the file is open before Dwfl would look for it. */
static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
	char **file_name, Elf **elf)
{
	(void)module, (void)userdata, (void)name, (void)base, (void)file_name, (void)elf;
	return -1;
}

static int find_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
	const char *file_name, const char *link, GElf_Word link_crc, char **debug_name)
{
	const struct object *object = *userdata;
	int fd;

	if (object && object->search->skips_debug && object->search->skips_debug(object->path))
		return -1;
	fd = dwfl_standard_find_debuginfo(
		module, userdata, name, base, file_name, link, link_crc, debug_name);
	if (fd >= 0 || !file_name || !object || !strcmp(file_name, object->path))
		return fd;
	free(*debug_name);
	*debug_name = NULL;
	return dwfl_standard_find_debuginfo(
		module, userdata, name, base, object->path, link, link_crc, debug_name);
}

bool search_init(struct search *search, const char *root)
{
	int bytes;

	*search = (struct search){.root = root};
	if (*root)
		bytes = asprintf(
			&search->debug_path, ":.debug:%s/usr/lib/debug:/usr/lib/debug", root);
	else
		bytes = asprintf(&search->debug_path, ":.debug:/usr/lib/debug");
	if (bytes < 0) {
		search->debug_path = NULL;
		return false;
	}
	search->callbacks = (Dwfl_Callbacks){
		.find_elf = find_elf,
		.find_debuginfo = find_debuginfo,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = &search->debug_path,
	};
	return true;
}

void search_fini(struct search *search)
{
	free(search->debug_path);
	*search = (struct search){0};
}

struct object *object_new(const struct search *search, const char *path, const uint8_t *build_id,
	size_t build_id_bytes)
{
	struct object *object = calloc(1, sizeof(*object));

	if (!object)
		return NULL;
	object->search = search;
	object->path = strdup(path);
	if (build_id_bytes) {
		object->build_id = malloc(build_id_bytes);
		if (object->build_id)
			memcpy(object->build_id, build_id, build_id_bytes);
	}
	object->build_id_bytes = build_id_bytes;
	if (!object->path || (build_id_bytes && !object->build_id)) {
		object_free(object);
		return NULL;
	}
	return object;
}

void object_free(struct object *object)
{
	if (!object)
		return;
	callees_fini(&object->callees);
	units_fini(&object->units);
	symdata_fini(&object->symdata);
	symtab_fini(&object->symtab);
	if (object->dwfl)
		dwfl_end(object->dwfl);
	free(object->build_id);
	free(object->path);
	free(object);
}

bool object_is(const struct object *object, const char *path, const uint8_t *build_id,
	size_t build_id_bytes)
{
	return !strcmp(object->path, path) && object->build_id_bytes == build_id_bytes &&
	       (!build_id_bytes || !memcmp(object->build_id, build_id, build_id_bytes));
}

/* A program or library of a 64-bit process; objects, cores and compressed files are not. */
static bool is_loadable(int fd)
{
	struct stat st;
	Elf64_Ehdr header;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return false;
	return !memcmp(header.e_ident, ELFMAG, SELFMAG) && header.e_ident[EI_CLASS] == ELFCLASS64 &&
	       header.e_ident[EI_DATA] == ELFDATA2LSB &&
	       (header.e_type == ET_DYN || header.e_type == ET_EXEC);
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || is_loadable(fd))
		return fd;
	close(fd);
	return -1;
}

static bool has_build_id(const struct object *object)
{
	const unsigned char *bits;
	GElf_Addr vaddr;
	int bytes;

	if (!object->build_id_bytes)
		return true;
	bytes = dwfl_module_build_id(object->module, &bits, &vaddr);
	return bytes > 0 && (size_t)bytes >= object->build_id_bytes &&
	       !memcmp(bits, object->build_id, object->build_id_bytes);
}

/* Hands the file to elfutils, at the addresses it has on its own. Takes fd in any case. */
static bool load(struct object *object, const char *path, int fd)
{
	Dwarf_Addr start = 0, end = 0;
	void **userdata;
	Elf *elf;

	object->dwfl = dwfl_begin(&object->search->callbacks);
	if (object->dwfl)
		object->module = dwfl_report_elf(object->dwfl, path, path, fd, 0, true);
	if (!object->module) {
		close(fd);
		return false;
	}
	dwfl_report_end(object->dwfl, NULL, NULL);
	elf = dwfl_module_getelf(object->module, &object->bias);
	if (!elf || !has_build_id(object))
		return false;
	dwfl_module_info(object->module, &userdata, &start, &end, NULL, NULL, NULL, NULL);
	*userdata = object;
	symtab_init(&object->symtab, object->module, end);
	symdata_init(&object->symdata, object->module, end);
	units_init(&object->units, object->module, end);
	callees_init(&object->callees, elf, object->bias);
	return true;
}

/* One candidate of the places where the file may be. */
static bool try_path(struct object *object, const char *root)
{
	bool loaded;
	char *path;
	int fd;

	if (asprintf(&path, "%s%s", root, object->path) < 0)
		return false;
	fd = open_file(path);
	loaded = fd >= 0 && load(object, path, fd);
	free(path);
	if (!loaded && object->dwfl) {
		dwfl_end(object->dwfl);
		object->dwfl = NULL;
		object->module = NULL;
	}
	return loaded;
}

bool object_open(struct object *object)
{
	const char *root = object->search->root;

	if (object->state == OBJECT_NEW) {
		bool found = object->path[0] == '/' &&
			     ((*root && try_path(object, root)) || try_path(object, ""));

		object->state = found ? OBJECT_OPEN : OBJECT_UNKNOWN;
	}
	return object->state == OBJECT_OPEN;
}
