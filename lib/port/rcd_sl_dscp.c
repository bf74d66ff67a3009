/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Tables of service levels: read each time, as only who connects asks.
 */
#include "rcd_sl_dscp.h"

#include <stddef.h>

#include "rcd_amount.h"
#include "rcd_ip.h"
#include "rcd_text.h"

#define SL_MAX 15

const char *
rcd_dscp_of_sl(const char *text, uint8_t sl, uint8_t *dscp)
{
	uint32_t seen = 0, level;
	uint64_t found;

	while (*text != '\0') {
		char value[RCD_TEXT_VALUE_LEN];

		if (!rcd_text_pair(&text, SL_MAX, &level, value) ||
			!rcd_amount_parse(value, RCD_DSCP_MAX, &found))
			return "a list of SL:DSCP, 0 to 15 and 0 to 63, as 3:26,5:46";
		if (seen & (1u << level))
			return "each SL once";
		seen |= 1u << level;
		if (dscp != NULL && level == sl)
			*dscp = (uint8_t)found;
	}
	return NULL;
}
