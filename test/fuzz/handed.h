/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Descriptors that are handed over for a device in another network namespace (SOCKETS), and what
 * who kept them does to them.
 */
#ifndef HANDED_H
#define HANDED_H

#include "inside.h"

/**
 * Have a network namespace beside this process's own, once, before EAL is there. Where none can be
 * made, all sockets are of one.
 */
void
handed_begin(void);

/** Forget what an earlier input sent, and close what was kept of it. */
void
handed_forget(void);

/**
 * A step of a SOCKETS request. Its `how` has HANDED_*; a poke that is used puts a wrong
 * descriptor of kind `val` in place `at`, or one of another namespace, or, with HANDED_CHANGE, does
 * `val` to the kept one of place `at`.
 *
 * Ends the program when its sockets are taken, but are not to be.
 */
void
handed_step(struct client *client, const struct step *step);

/** As test/fuzz/make_corpus.py has them. */
enum {
	HANDED_QUEUE = 0x01,  /**< those of a queue, not the first four */
	HANDED_OTHER = 0x02,  /**< of the other namespace */
	HANDED_COUNT = 0x3c,  /**< which of the counts of descriptors */
	HANDED_ADD = 0x40,    /**< then a device that is to have them */
	HANDED_CHANGE = 0x80, /**< nothing is sent: those that were kept are changed */
};

#endif /* HANDED_H */
