/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * EAL for people who say nothing about it: lcores on the last cores, hugepages when there are
 * some, no PCI device that was not named. What is said on the command line goes before.
 */
#ifndef EAL_START_H
#define EAL_START_H

#include <stdbool.h>
#include <stdint.h>

/** What a program wants, and what it got. */
struct eal_wish {
	const char *program; /**< for messages */
	uint32_t workers;    /**< lcores besides the main one */
	uint32_t memory_mb;  /**< without hugepages */
	uint32_t owner;      /**< user that the program becomes after start; 0: none */
	/** Of EAL's files, if the user gives none; set to what it is. "": one for each process. */
	char prefix[64];

	bool cores_shared; /**< set: there are not as many cores as workers */
};

/**
 * Start EAL.
 *
 * @param argc  EAL's part of the command line, with the program's name
 * @return 0, or -1 and it was said why
 */
int
eal_start(int argc, char **argv, struct eal_wish *wish);

/**
 * End EAL, of which nothing may be used any more, and remove its files, which it leaves for others
 * to look at: nobody is left. The program ends next: EAL's interrupt thread works no more.
 */
void
eal_end(const struct eal_wish *wish);

#endif /* EAL_START_H */
