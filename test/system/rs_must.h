/* SPDX-License-Identifier: BSD-3-Clause */
/** @file What tests of rsockets end by, and what they were doing. */
#ifndef RS_MUST_H
#define RS_MUST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *doing = "begins";

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s: line %d: %s: %s\n", doing, __LINE__, #condition,      \
				strerror(errno));                                                  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define FAILS(call, error) MUST((call) == -1 && errno == (error))

#endif /* RS_MUST_H */
