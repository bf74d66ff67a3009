/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What happens when an RCD_CHECK does not hold: one line on stderr, then abort().
 */
#include "rcd_check.h"

#include <stdio.h>
#include <stdlib.h>

void
rcd_check_fail(const char *file, int line, const char *func, const char *cond)
{
	fprintf(stderr, "rocade: %s:%d: %s: invariant broken: %s\n", file, line, func, cond);
	abort();
}
