/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Runs CUnit tests and reports them in the Test Anything Protocol, one line a test, so that meson
 * knows each by name.
 */
#ifndef RCD_TAP_H
#define RCD_TAP_H

#include <CUnit/CUnit.h>
#include <stddef.h>

/** A test. */
struct rcd_test {
	const char *name;
	void (*func)(void);
};

/** An entry of a struct rcd_test array for a function, named after it. */
#define RCD_TEST(function)                                                                         \
	{                                                                                          \
#function, function                                                                \
	}

/**
 * Run tests and print their results on stdout.
 *
 * @param suite  name of the suite, for CUnit
 * @return exit status for main(): 0 when none failed
 */
int
rcd_tap_run(const char *suite, const struct rcd_test *tests, size_t count);

/** Say from within a test that it can't run here. @param reason a string that outlives the test */
void
rcd_tap_skip(const char *reason);

#endif /* RCD_TAP_H */
