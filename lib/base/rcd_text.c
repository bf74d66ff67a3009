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

bool
rcd_text_pair(const char **text, uint32_t most, uint32_t *number, char value[RCD_TEXT_VALUE_LEN])
{
	static const char apart[] = ", ";
	const char *at = *text;
	size_t len;

	*number = 0;
	for (; *at >= '0' && *at <= '9' && *number <= most; at++)
		*number = *number * 10 + (uint32_t)(*at - '0');
	if (at == *text || *at != ':' || *number > most)
		return false;
	at++;
	len = strcspn(at, apart);
	if (len == 0 || len >= RCD_TEXT_VALUE_LEN)
		return false;
	memcpy(value, at, len);
	value[len] = '\0';
	at += len;
	len = strspn(at, apart);
	*text = at + len;
	return len == 0 || **text != '\0';
}
