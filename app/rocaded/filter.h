/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Which system calls the daemon may make once it runs: a list for all of its threads, and a shorter
 * one for lcores.
 */
#ifndef FILTER_H
#define FILTER_H

/** What becomes of a call that is not on the list. */
enum filter_mode {
	FILTER_ON,   /**< it fails with ENOSYS, filter_tell() and the kernel's audit log tell */
	FILTER_KILL, /**< it ends the daemon, and the kernel's audit log tells */
	FILTER_LOG,  /**< it is made, and the kernel's audit log tells */
	FILTER_OFF,  /**< there is no list */
};

/**
 * Filter the calls of all threads that there are, and of those that they make. Main thread, once,
 * before filter_lcore().
 *
 * @return 0 or -errno
 */
int
filter_all(enum filter_mode mode);

/** Filter the calling thread's further: those of an lcore. @return 0 or -errno */
int
filter_lcore(enum filter_mode mode);

/** Say on standard error which calls have failed since, each once. Main thread. */
void
filter_tell(void);

#endif /* FILTER_H */
