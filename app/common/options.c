/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Lists of options for getopt_long() and for people.
 */
#include "options.h"

#include <string.h>

#define COLUMN 26 /* where the words begin */
#define WIDTH  80

void
options_table(const struct option_info *infos, size_t count, struct option_table *table)
{
	size_t len = 0;

	memset(table, 0, sizeof(*table));
	for (size_t i = 0; i < count && i < OPTIONS_MAX; i++) {
		const struct option_info *info = &infos[i];

		table->longs[i] = (struct option){
			.name = info->name,
			.has_arg = info->argument != NULL ? required_argument : no_argument,
			.val = info->letter,
		};
		if (info->letter > 255)
			continue;
		table->letters[len++] = (char)info->letter;
		if (info->argument != NULL)
			table->letters[len++] = ':';
	}
}

/* Words from the given column on. @param at  the column that the line is at */
static void
options_print_wrapped(FILE *out, const char *text, int at)
{
	/* What stands alone in the column before begins a line of its own. */
	if (at >= COLUMN) {
		fputc('\n', out);
		at = 0;
	}
	fprintf(out, "%*s", COLUMN - at, "");
	at = COLUMN;
	while (*text != '\0') {
		int len = (int)strcspn(text, " ");

		if (at > COLUMN && at + 1 + len >= WIDTH) {
			fprintf(out, "\n%*s", COLUMN, "");
			at = COLUMN;
		} else if (at > COLUMN) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", len, text);
		at += len;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

void
options_print(FILE *out, const struct option_info *infos, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct option_info *info = &infos[i];
		int at = info->letter > 255 ? fprintf(out, "      --%s", info->name)
					    : fprintf(out, "  -%c, --%s", info->letter, info->name);

		if (info->argument != NULL)
			at += fprintf(out, " %s", info->argument);
		options_print_wrapped(out, info->what, at);
	}
}

bool
options_is(const char *word, const char *name)
{
	size_t len = strlen(name);

	return strncmp(word, name, len) == 0 && (word[len] == '\0' || word[len] == '=');
}
