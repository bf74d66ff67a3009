/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A program's options, from its one list: what getopt_long() wants, and what --help says. The list
 * is the file options.def beside the program, which the manual page is made from too:
 *
 *   OPTION(letter, name, argument, what)
 *     letter    what getopt_long() returns; above 255: there is none
 *     argument  its name, or NULL
 *     what      a line for readers, wrapped where it is shown
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** Most options of a program, and its letters. */
#define OPTIONS_MAX 48

/** One of them. */
struct option_info {
	int letter;
	const char *name;
	const char *argument; /**< NULL: it has none */
	const char *what;
};

/** A list of them as getopt_long() wants it. */
struct option_table {
	char letters[2 * OPTIONS_MAX + 1];
	struct option longs[OPTIONS_MAX + 1];
};

/** Fill in the table. @param count  up to OPTIONS_MAX */
void
options_table(const struct option_info *infos, size_t count, struct option_table *table);

/** A line or more for each. */
void
options_print(FILE *out, const struct option_info *infos, size_t count);

/** Whether a word of the command line is the option of this name, with or without "=VALUE". */
bool
options_is(const char *word, const char *name);

#endif /* OPTIONS_H */
