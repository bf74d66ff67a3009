/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Clients that make as much work for an engine as they can.
 */
#ifndef ATTACKS_H
#define ATTACKS_H

/** One of them. */
struct attack {
	const char *name;

	/** Write a byte to `ready` when all is prepared, and go on for ever. */
	void (*run)(const char *socket, int ready);
};

/** All of them; the last has no name. */
extern const struct attack attacks[];

#endif /* ATTACKS_H */
