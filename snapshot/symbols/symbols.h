/* SPDX-License-Identifier: MIT */
/*
 * symbols.h - names for addresses of a watched program: function, file and line.
 *
 * The one door to symbolisation. A module is told once (id, path, build id); afterwards any offset
 * in it can be asked for, in any order, and is answered from a cache the second time. An offset is
 * the pc minus the load bias, i.e. the virtual address in the ELF file; for a program that is not
 * position independent it is the address itself.
 *
 * Files are opened on the first question about them, never before, and each file once, however
 * many modules name it. What cannot be read or is not the file that was running (another build id)
 * is unknown; nothing here fails in another way. No network, unless LEAKWATCH_DEBUGINFOD=1 is in
 * the environment: otherwise symbols_new() takes DEBUGINFOD_URLS out of it.
 *
 * Every string and array returned lives until symbols_free(). One thread at a time.
 */
#ifndef LW_SNAPSHOT_SYMBOLS_H
#define LW_SNAPSHOT_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbol_frame {
	const char *function; /* demangled; NULL: unknown */
	const char *file;     /* as the debug information has it; NULL: unknown */
	unsigned line;	      /* 0: unknown */
	unsigned column;      /* 0: unknown */
	bool inlined;	      /* into the frame that follows */
};

struct symbols;

/*
 * root_prefix ("" or e.g. "/proc/PID/root") is put before the paths of modules and of debug files;
 * where that finds nothing the bare path is tried. NULL when there is no memory.
 */
struct symbols *symbols_new(const char *root_prefix);
void symbols_free(struct symbols *symbols);

/*
 * Files for which is_known(path) is true are named by their own symbols; no separate debug file is
 * looked for. Reading libc's, which is compressed, takes longer than all the rest of a small report.
 */
void symbols_skip_debug(struct symbols *symbols, bool (*is_known)(const char *path));

/*
 * Told again, an id means the new file from then on. No build id: any file at that path is taken.
 * A build id may be cut: what is given must be the beginning of the file's.
 */
void symbols_module(struct symbols *symbols, unsigned id, const char *path, const uint8_t *build_id,
	size_t build_id_bytes);

/*
 * The frames at an offset, innermost first: the last is the function that stands in the file, those
 * before it were inlined, and each but the first has the line where the one before it was inlined.
 * Unless exact_pc the offset is a return address and what counts is the call before it. Never NULL
 * and never empty: one frame with nothing in it says unknown.
 */
const struct symbol_frame *symbols_resolve(struct symbols *symbols, unsigned module,
	uint64_t offset, bool exact_pc, size_t *nr_frames);

/*
 * The function that the call before this return address names, demangled: the target of a direct
 * call, or what a PLT or GOT entry is bound to. NULL where the instruction does not tell.
 */
const char *symbols_callee(struct symbols *symbols, unsigned module, uint64_t offset);

/* The variable an offset is inside of, demangled ("vtable for X" too), and how far; NULL: none. */
const char *symbols_variable(struct symbols *symbols, unsigned module, uint64_t offset, uint64_t *into);

#endif
