/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Amounts, with what they overflow by.
 */
#include "rcd_amount.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool
rcd_amount_parse(const char *text, uint64_t most, uint64_t *val)
{
	static const char suffixes[] = "KMGT";
	unsigned long long number;
	char *end;

	/* strtoull() would take a sign, and white space before it. */
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 0);
	if (errno != 0)
		return false;
	if (*end != '\0') {
		const char *suffix = strchr(suffixes, *end);
		unsigned int shift;

		if (suffix == NULL || end[1] != '\0')
			return false;
		shift = 10 * (unsigned int)(suffix - suffixes + 1);
		if (number > UINT64_MAX >> shift)
			return false;
		number <<= shift;
	}
	if (number > most)
		return false;
	*val = number;
	return true;
}
