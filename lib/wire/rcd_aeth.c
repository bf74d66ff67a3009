/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Syndromes in words, and the credit code.
 */
#include "rcd_aeth.h"

#include <stdio.h>

#include "rcd_bytes.h"
#include "rcd_timer.h"

uint32_t
rcd_aeth_credits(uint8_t code)
{
	return code == 0 ? 0 : rcd_code_scale(code & 0x1f);
}

static const char *
aeth_nak_text(uint8_t code)
{
	static const char *const texts[] = {
		[RCD_NAK_PSN_SEQUENCE] = "PSN sequence error",
		[RCD_NAK_INVALID_REQUEST] = "invalid request",
		[RCD_NAK_REMOTE_ACCESS] = "remote access error",
		[RCD_NAK_REMOTE_OPERATION] = "remote operational error",
		[RCD_NAK_INVALID_RD_REQUEST] = "invalid RD request",
	};

	return code < RCD_ARRAY_COUNT(texts) ? texts[code] : NULL;
}

void
rcd_aeth_text(uint8_t syndrome, char *buf, size_t size)
{
	uint8_t value = rcd_aeth_value(syndrome);

	switch (rcd_aeth_kind(syndrome)) {
	case RCD_AETH_ACK:
		if (value == RCD_AETH_CREDITS_INVALID)
			snprintf(buf, size, "ACK, no credits used");
		else
			snprintf(buf, size, "ACK, credits %u", rcd_aeth_credits(value));
		return;
	case RCD_AETH_RNR_NAK:
		snprintf(buf, size, "RNR NAK, wait %.2f ms", (double)rcd_rnr_timer_ns(value) / 1e6);
		return;
	case RCD_AETH_NAK:
		if (aeth_nak_text(value) != NULL)
			snprintf(buf, size, "NAK, %s", aeth_nak_text(value));
		else
			snprintf(buf, size, "NAK, reserved code %u", value);
		return;
	case RCD_AETH_RESERVED:
		snprintf(buf, size, "reserved syndrome 0x%02x", syndrome);
		return;
	}
}
