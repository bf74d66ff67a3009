/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * One test per capture file.
 */
#include "rcd_captures.h"

#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rcd_test tests[RCD_CAPTURES_MAX];
static size_t test_count;
static size_t next_test;
static void (*test_func)(void);

static void
run_one(void)
{
	next_test++;
	test_func();
}

const char *
rcd_captures_path(void)
{
	return tests[next_test - 1].name;
}

static int
by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_path, (*b)->fts_path);
}

static void
find(char **folders)
{
	FTS *fts = folders[0] != NULL ? fts_open(folders, FTS_LOGICAL, by_name) : NULL;
	FTSENT *entry;

	while (fts != NULL && (entry = fts_read(fts)) != NULL) {
		const char *dot = strrchr(entry->fts_name, '.');

		if (entry->fts_info != FTS_F || dot == NULL || strcmp(dot, ".pcap") != 0)
			continue;
		if (test_count == RCD_CAPTURES_MAX)
			abort();
		tests[test_count++] = (struct rcd_test){ strdup(entry->fts_path), run_one };
	}
	if (fts != NULL)
		fts_close(fts);
}

int
rcd_captures_run(const char *suite, char **folders, void (*func)(void))
{
	int status;

	test_func = func;
	find(folders);
	if (test_count == 0) {
		fprintf(stderr, "%s: no capture found\n", suite);
		return 2;
	}
	status = rcd_tap_run(suite, tests, test_count);
	for (size_t i = 0; i < test_count; i++)
		free((void *)(uintptr_t)tests[i].name);
	return status;
}
