/* SPDX-License-Identifier: MIT */
/* inspect.c - a minimal reader of ELF files and scripts for the launcher; see inspect.h. */
#include "preload/launch/inspect.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	MAX_SEGMENTS = 512,
	MAX_DYNAMIC = 4096,	    /* entries */
	MAX_NAMES_BYTES = 64 << 20, /* .dynstr; beyond it no sanitizer is looked for */
};

static const char *const why_not[] = {
	[LW_INSPECT_STATIC] = "cannot see into '%s': it is linked statically; running it unwatched",
	[LW_INSPECT_PRIVILEGED] = "cannot see into '%s': it is setuid, setgid or has file capabilities; "
			  "running it unwatched",
	[LW_INSPECT_FOREIGN] =
		"cannot see into '%s': it is built for another processor; running it unwatched",
	[LW_INSPECT_ASAN] =
		"steps aside: '%s' is built with AddressSanitizer, which looks for leaks itself",
};

const char *lw_inspect_why_not(enum lw_inspect_sight sight)
{
	return why_not[sight];
}

static bool read_at(int fd, void *out, size_t nr_bytes, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, out, nr_bytes, (off_t)offset) == (ssize_t)nr_bytes;
}

static bool read_ident(const char *path, Elf64_Ehdr *header)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is_elf;

	if (fd < 0)
		return false;
	memset(header, 0, sizeof(*header));
	/* up to e_machine a header is the same in all classes; shorter files are no programs */
	is_elf = read_at(fd, header, offsetof(Elf64_Ehdr, e_version), 0) &&
		 !memcmp(header->e_ident, ELFMAG, SELFMAG);
	close(fd);
	return is_elf;
}

/* Built for what this launcher is built for, and so the library beside it. */
static bool is_our_kind(const Elf64_Ehdr *header)
{
	Elf64_Ehdr own;

	return !read_ident("/proc/self/exe", &own) ||
	       (header->e_machine == own.e_machine &&
		       !memcmp(header->e_ident, own.e_ident, EI_VERSION));
}

/* File offset of an address, by the loadable segments; false if it lies in none. */
static bool find_offset(const Elf64_Phdr *segments, unsigned nr, uint64_t address, uint64_t *offset)
{
	for (unsigned i = 0; i < nr; i++) {
		if (segments[i].p_type != PT_LOAD ||
			address - segments[i].p_vaddr >= segments[i].p_filesz)
			continue;
		*offset = segments[i].p_offset + (address - segments[i].p_vaddr);
		return true;
	}
	return false;
}

/*
 * The names of needed libraries and of imported and exported symbols all lie in .dynstr, each
 * between two NULs. So one search there finds a linked libasan and a static one alike.
 */
static bool names_asan(int fd, uint64_t offset, size_t nr_bytes)
{
	static const char init[] = "\0__asan_init", gcc[] = "\0libasan.so",
			  clang[] = "\0libclang_rt.asan";
	char *names = nr_bytes && nr_bytes <= MAX_NAMES_BYTES ? malloc(nr_bytes) : NULL;
	bool is_found = false;

	if (names && read_at(fd, names, nr_bytes, offset))
		is_found = memmem(names, nr_bytes, init, sizeof(init)) ||
			   memmem(names, nr_bytes, gcc, sizeof(gcc) - 1) ||
			   memmem(names, nr_bytes, clang, sizeof(clang) - 1);
	free(names);
	return is_found;
}

static bool has_asan(int fd, const Elf64_Phdr *segments, unsigned nr, const Elf64_Phdr *dynamic)
{
	uint64_t nr_entries = dynamic->p_filesz / sizeof(Elf64_Dyn), names = 0, nr_bytes = 0,
		 offset;
	Elf64_Dyn entry;

	if (nr_entries > MAX_DYNAMIC)
		nr_entries = MAX_DYNAMIC;
	for (uint64_t i = 0; i < nr_entries; i++) {
		if (!read_at(fd, &entry, sizeof(entry), dynamic->p_offset + i * sizeof(entry)) ||
			entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_STRTAB)
			names = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRSZ)
			nr_bytes = entry.d_un.d_val;
	}
	return find_offset(segments, nr, names, &offset) && names_asan(fd, offset, nr_bytes);
}

/* fd is an ELF file of our kind. */
static enum lw_inspect_sight inspect_segments(int fd)
{
	static Elf64_Phdr segments[MAX_SEGMENTS];
	const Elf64_Phdr *dynamic = NULL;
	bool has_interpreter = false;
	Elf64_Ehdr header;

	if (!read_at(fd, &header, sizeof(header), 0) || header.e_phentsize != sizeof(*segments) ||
		header.e_phnum > MAX_SEGMENTS ||
		!read_at(fd, segments, header.e_phnum * sizeof(*segments), header.e_phoff))
		return LW_INSPECT_WATCHABLE;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		has_interpreter |= segments[i].p_type == PT_INTERP;
		if (segments[i].p_type == PT_DYNAMIC)
			dynamic = &segments[i];
	}
	if (!has_interpreter)
		return LW_INSPECT_STATIC;
	return dynamic && has_asan(fd, segments, header.e_phnum, dynamic) ? LW_INSPECT_ASAN : LW_INSPECT_WATCHABLE;
}

/* Does the kernel start it in secure mode for this user? Root gains nothing by setuid root. */
static bool is_privileged(const char *path)
{
	struct stat file;

	if (stat(path, &file))
		return false;
	if ((file.st_mode & S_ISUID && file.st_uid != getuid()) ||
		((file.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
			file.st_gid != getgid()))
		return true;
	return getuid() && getxattr(path, "security.capability", NULL, 0) > 0;
}

static enum lw_inspect_sight inspect_elf(const char *path, const Elf64_Ehdr *header)
{
	enum lw_inspect_sight sight;
	int fd;

	if (!is_our_kind(header))
		return LW_INSPECT_FOREIGN;
	if (is_privileged(path))
		return LW_INSPECT_PRIVILEGED;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return LW_INSPECT_WATCHABLE;
	sight = inspect_segments(fd);
	close(fd);
	return sight;
}

bool lw_inspect_first_line(const char *path, char line[LW_INSPECT_LINE_BYTES], size_t *nr_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : pread(fd, line, LW_INSPECT_LINE_BYTES - 1, 0);
	char *end = n > 0 ? memchr(line, '\n', (size_t)n) : NULL;

	if (fd >= 0)
		close(fd);
	*nr_bytes = end ? (size_t)(end - line) : n > 0 ? (size_t)n : 0;
	line[*nr_bytes] = '\0';
	return n >= 0;
}

/* A script is as visible as what runs it; one level, since that is all the checks need. */
enum lw_inspect_sight lw_inspect(const char *path)
{
	char line[LW_INSPECT_LINE_BYTES];
	Elf64_Ehdr header;
	size_t nr_bytes;
	char *name;

	if (read_ident(path, &header))
		return inspect_elf(path, &header);
	if (!lw_inspect_first_line(path, line, &nr_bytes) || strncmp(line, "#!", 2))
		return is_privileged(path) ? LW_INSPECT_PRIVILEGED : LW_INSPECT_WATCHABLE;
	name = line + 2 + strspn(line + 2, " \t");
	name[strcspn(name, " \t")] = '\0';
	return read_ident(name, &header) ? inspect_elf(name, &header) : LW_INSPECT_WATCHABLE;
}

bool lw_inspect_is_our_kind(const char *path)
{
	Elf64_Ehdr header;

	return read_ident(path, &header) && is_our_kind(&header);
}

bool lw_inspect_own_path(char path[PATH_MAX])
{
	ssize_t bytes = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (bytes <= 0) /* as it was named when it was started */
		return realpath((const char *)getauxval(AT_EXECFN), path) != NULL;
	path[bytes] = '\0';
	return true;
}
