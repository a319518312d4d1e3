/* SPDX-License-Identifier: MIT */
/* text_holder.h - examples of an entry's blocks in the text report: first bytes, class, and who holds them. */
#ifndef LW_SNAPSHOT_TEXT_HOLDER_H
#define LW_SNAPSHOT_TEXT_HOLDER_H

#include "snapshot/report/text_stack.h"

void text_holders(struct text_writer *w, const struct report_site *judged);

#endif
