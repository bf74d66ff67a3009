/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Values of keys.
 */
#include "rcd_text.h"

#include <string.h>

bool
rcd_text_take(char *dst, size_t size, const char *text)
{
	size_t len = strlen(text);

	if (len >= size)
		return false;
	memcpy(dst, text, len + 1);
	return true;
}

int
rcd_text_find(const char *const *words, int count, const char *text)
{
	for (int i = 0; i < count; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	return -1;
}

bool
rcd_text_printable(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}
