/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A buffer of the kernel's random bytes.
 */
#include "rcd_random.h"

#include <string.h>
#include <unistd.h>

#include "rcd_check.h"

uint32_t
rcd_random_u32(struct rcd_random *random)
{
	uint8_t *at;
	uint32_t val;

	if (random->left < sizeof(val)) {
		/* Up to 256 bytes come whole, without a signal in between (getrandom(2)). */
		RCD_CHECK(getentropy(random->bytes, sizeof(random->bytes)) == 0);
		random->left = sizeof(random->bytes);
	}
	random->left -= (uint32_t)sizeof(val);
	at = random->bytes + random->left;
	memcpy(&val, at, sizeof(val));
	/* Who reads this memory later learns nothing of it. */
	memset(at, 0, sizeof(val));
	return val;
}
