/* SPDX-License-Identifier: MIT */
/* own_frame.c - the one frame that says where a block is from; see report.h. */
#include "snapshot/report/report.h"

#include <string.h>

/* "std::vector<int>::push_back(...)", also behind a return type: nobody's leak is there. */
static bool is_of_standard_library(const char *function)
{
	size_t name_bytes = function ? strcspn(function, "(<") : 0;

	for (size_t i = 0; i < name_bytes; i++)
		if ((!i || function[i - 1] == ' ') && (!strncmp(function + i, "std::", 5) ||
							      !strncmp(function + i, "__gnu_cxx::", 11)))
			return true;
	return false;
}

const struct report_frame *report_own_frame(const struct report_stack *stack)
{
	for (size_t i = stack->first_user; i < stack->end_user; i++)
		if (!is_of_standard_library(stack->frames[i].symbol->function))
			return &stack->frames[i];
	return stack->first_user < stack->nr_frames ? &stack->frames[stack->first_user] : NULL;
}
