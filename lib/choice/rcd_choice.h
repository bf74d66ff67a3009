/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What choice.py writes for each library: the symbols that it exports, and where they lead.
 */
#ifndef RCD_CHOICE_H
#define RCD_CHOICE_H

#include <stddef.h>

/** One exported symbol. */
struct rcd_choice_symbol {
	const char *name;
	const char *version;
	/** An object's place here, and its size; NULL of a function. */
	void *object;
	size_t size;
};

/** Name of the library's file, "libibverbs.so.1". */
extern const char rcd_choice_file[];

/** The system's own, with its folder. */
extern const char rcd_choice_system[];

/** All symbols, in the order of rcd_choice_target[]. */
extern const struct rcd_choice_symbol rcd_choice_symbol[];

/** How many there are. */
extern const size_t rcd_choice_count;

/** Where the function of the same index jumps to. Written once, before anybody can call. */
extern void *rcd_choice_target[];

#endif /* RCD_CHOICE_H */
