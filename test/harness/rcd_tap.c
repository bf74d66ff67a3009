/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * CUnit to TAP.
 */
#include "rcd_tap.h"

#include <CUnit/TestRun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned int number;
static const char *skip_reason;

static void
on_complete(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord failures)
{
	(void)suite;
	number++;
	printf("%s %u - %s%s%s\n", failures == NULL ? "ok" : "not ok", number, test->pName,
		skip_reason != NULL ? " # SKIP " : "", skip_reason != NULL ? skip_reason : "");
	for (CU_pFailureRecord f = failures; f != NULL; f = f->pNext)
		fprintf(stderr, "# %s:%u: %s\n", f->strFileName, f->uiLineNumber, f->strCondition);
	fflush(stdout);
	skip_reason = NULL;
}

int
rcd_tap_run(const char *suite, const struct rcd_test *tests, size_t count)
{
	const char *only = getenv("TAP_ONLY");
	CU_pSuite cu_suite;
	size_t chosen = 0;

	if (CU_initialize_registry() != CUE_SUCCESS)
		abort();
	cu_suite = CU_add_suite(suite, NULL, NULL);
	for (size_t i = 0; i < count; i++) {
		if (only != NULL && strcmp(only, tests[i].name) != 0)
			continue;
		chosen++;
		if (CU_add_test(cu_suite, tests[i].name, tests[i].func) == NULL)
			abort();
	}
	printf("1..%zu\n", chosen);
	fflush(stdout);
	CU_set_test_complete_handler(on_complete);
	CU_run_all_tests();

	unsigned int failed = CU_get_number_of_failures();

	CU_cleanup_registry();
	return failed == 0 && chosen > 0 ? 0 : 1;
}

void
rcd_tap_skip(const char *reason)
{
	skip_reason = reason;
}
