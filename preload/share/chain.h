/* SPDX-License-Identifier: MIT */
/*
 * chain.h - who holds a block: what the scanner leaves in the region and a record carries as it is.
 * All of it is numbers; the reader names sites, symbols and classes.
 */
#ifndef LW_SHARE_CHAIN_H
#define LW_SHARE_CHAIN_H

#include <stdint.h>

/* An address in a loaded object, for the reader to name. */
struct lw_place {
	uint64_t offset;  /* from the load bias */
	uint16_t module;  /* LW_NO_MODULE: one that stands in no stack, of this name */
	char name[30];	  /* NUL-terminated; empty: no loaded object at all */
};

enum lw_root_kind {
	LW_ROOT_NONE,	  /* the block is lost */
	LW_ROOT_UNKNOWN,  /* pointed to, but from where was not found again */
	LW_ROOT_DATA,	  /* a variable of a loaded object: place */
	LW_ROOT_STACK,	  /* of thread tid; place is its frame's pc, if that could be told */
	LW_ROOT_REGISTER, /* of thread tid */
	LW_ROOT_MEMORY,	  /* any other mapping */
	LW_NR_ROOT_KINDS,
};

enum { LW_CHAIN_OWNERS = 12, LW_CHAIN_HEAD_OWNERS = 6, LW_FIRST_BYTES = 32, LW_MAX_CHAINS = 128 };

struct lw_owner {
	uint32_t site;	 /* LW_NO_OWNER: memory that is no block */
	uint32_t offset; /* in it, of the pointer to the next; LW_NO_OWNER: not found again */
};

#define LW_NO_OWNER UINT32_MAX

/* A block of a site as an example: how it begins, and who holds it, by the shortest way from a root. */
struct lw_chain {
	uint32_t site;
	uint32_t root;	    /* enum lw_root_kind */
	int32_t tid;
	uint32_t nr_owners; /* between the root and the block; those past LW_CHAIN_OWNERS in the middle are left out */
	uint64_t address, bytes; /* of the block */
	uint64_t root_at;	 /* where the first pointer is */
	struct lw_place place;
	struct lw_place type;	 /* what the first word of the block points to */
	uint32_t age_ms;
	uint32_t nr_first;	 /* bytes of `first` that mean something */
	struct lw_owner owners[LW_CHAIN_OWNERS]; /* outermost first */
	unsigned char first[LW_FIRST_BYTES];
};

_Static_assert(sizeof(struct lw_chain) == 256, "wire");

#endif
