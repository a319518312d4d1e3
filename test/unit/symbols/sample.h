/* SPDX-License-Identifier: MIT */
/*
 * sample.h - what the sample objects of unit-symbols export.
 *
 * Each entry point leads, by various ways, to sample_note(), which keeps its return address. The
 * line of every call on the way is kept under the name of its place, so that the test need not be
 * told where in the source it stands.
 */
#ifndef LW_TEST_SAMPLE_H
#define LW_TEST_SAMPLE_H

enum sample_place {
	SAMPLE_NOWHERE,
	SAMPLE_INNER,
	SAMPLE_MIDDLE,
	SAMPLE_OUTER,
	SAMPLE_HIDDEN,
	SAMPLE_ALIAS,
	SAMPLE_METHOD,
	SAMPLE_CONSTRUCTOR,
	SAMPLE_BOX,
	SAMPLE_TWICE,
	SAMPLE_USER,
	NR_SAMPLE_PLACES,
};

#ifdef __cplusplus
extern "C" {
#endif

extern int sample_lines[NR_SAMPLE_PLACES];
extern const void *sample_returned_to;	      /* from sample_note() */
extern const void *sample_hidden_returned_to; /* from a function without a visible name */

void sample_note(void);

int sample_outer(int value);  /* two inlined C functions deep */
int sample_hidden(int value); /* through a static function */
int sample_alias(int value);  /* a weak alias of a name with underscores */
int sample_method(int value); /* through a C++ method, ... */
int sample_constructor(int value);
int sample_box(int value);   /* a class template in an anonymous namespace */
int sample_twice(int value); /* an inlined function template */
void sample_unsized(void);   /* assembler: four instructions of a byte, no type, no size */

#ifdef __cplusplus
}
#endif

#endif
