/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * RCD_CHECK: stop at once when one of our own invariants does not hold.
 *
 * It guards what only a defect in Rocade can break, in every build type. What the wire, a client
 * or the command line sent is never checked with it: that yields a verdict, a counter and an error.
 *
 * Threads: any.
 */
#ifndef RCD_CHECK_H
#define RCD_CHECK_H

/**
 * Report a broken invariant on stderr and abort the process. Does not return.
 *
 * @param file  source file, as __FILE__ gives it
 * @param line  line in it
 * @param func  function in it
 * @param cond  text of the condition that did not hold
 */
__attribute__((noreturn, cold)) void
rcd_check_fail(const char *file, int line, const char *func, const char *cond);

/** Abort with the place and the text of @p cond unless it holds. Evaluates it exactly once. */
#define RCD_CHECK(cond)                                                                            \
	do {                                                                                       \
		if (__builtin_expect(!(cond), 0))                                                  \
			rcd_check_fail(__FILE__, __LINE__, __func__, #cond);                       \
	} while (0)

#endif /* RCD_CHECK_H */
