/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Lines of a configuration file, one by one. Nothing is left out in silence, and nothing is cut.
 */
#include "conf_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

/* Without the comment, and without the backslash before what is none. */
static void
conf_file_uncomment(char *line)
{
	char *to = line;

	for (const char *from = line; *from != '\0' && *from != '#'; from++) {
		if (from[0] == '\\' && from[1] == '#')
			from++;
		*to++ = *from;
	}
	*to = '\0';
}

/* Without blanks at either end. */
static char *
conf_file_trim(char *text)
{
	size_t len;

	text += strspn(text, BLANKS);
	len = strlen(text);
	while (len > 0 && strchr(BLANKS, text[len - 1]) != NULL)
		len--;
	text[len] = '\0';
	return text;
}

static bool
conf_file_plain(const char *line)
{
	for (; *line != '\0'; line++)
		if (((unsigned char)*line < ' ' && strchr(BLANKS, *line) == NULL) || *line == 0x7f)
			return false;
	return true;
}

/* @param inside  whether a section has begun */
static void
conf_file_line(char *text, int line, bool *inside, const struct conf_file_ops *ops, void *arg)
{
	size_t len = strlen(text);
	char *equals;

	if (text[0] == '[') {
		*inside = true;
		if (text[len - 1] != ']') {
			ops->section(arg, line, NULL);
			return;
		}
		text[len - 1] = '\0';
		ops->section(arg, line, conf_file_trim(text + 1));
		return;
	}
	equals = strchr(text, '=');
	if (equals == NULL || equals == text) {
		ops->fault(arg, line, "not of the form [SECTION] or KEY = VALUE");
		return;
	}
	if (!*inside) {
		ops->fault(arg, line, "stands before the first section");
		return;
	}
	*equals = '\0';
	ops->entry(arg, line, conf_file_trim(text), conf_file_trim(equals + 1));
}

int
conf_file_read(const char *path, const struct conf_file_ops *ops, void *arg)
{
	FILE *file = fopen(path, "re");
	bool inside = false;
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int err;

	if (file == NULL)
		return -errno;
	errno = 0;
	for (int number = 1; (len = getline(&line, &size, file)) >= 0; number++) {
		char *text;

		if (len > CONF_LINE_MAX) {
			ops->fault(arg, number, "too long a line");
			continue;
		}
		if (strlen(line) != (size_t)len || !conf_file_plain(line)) {
			ops->fault(arg, number, "no control characters");
			continue;
		}
		conf_file_uncomment(line);
		text = conf_file_trim(line);
		if (text[0] != '\0')
			conf_file_line(text, number, &inside, ops, arg);
	}
	err = ferror(file) ? -errno : 0;
	free(line);
	fclose(file);
	return err;
}
