/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The form of a configuration file: sections, and keys with values in them, each with its line.
 * What they mean is its caller's business.
 *
 *   [SECTION]
 *   KEY = VALUE     # a comment up to the end of the line; \# is no comment
 */
#ifndef CONF_FILE_H
#define CONF_FILE_H

/** Longest line, in bytes. */
#define CONF_LINE_MAX 1024

/** What is told of a file, line by line. Texts live as long as the call. */
struct conf_file_ops {
	/** What follows is of this section; NULL: its line is not of the form. */
	void (*section)(void *arg, int line, const char *name);
	void (*entry)(void *arg, int line, const char *key, const char *val);
	void (*fault)(void *arg, int line, const char *what); /**< the line was left out */
};

/** Read a file. @return 0, or -errno when it can't be read */
int
conf_file_read(const char *path, const struct conf_file_ops *ops, void *arg);

#endif /* CONF_FILE_H */
