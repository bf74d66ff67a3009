/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * GIDs as tests write them.
 */
#ifndef GID_TEXT_H
#define GID_TEXT_H

#include <arpa/inet.h>

#include "rcd_gid.h"
#include "rcd_tap.h"

/** A GID from text: an address of IPv4 or IPv6; the test ends when it is neither. */
static inline struct rcd_gid
gid_text(const char *text)
{
	struct rcd_gid gid;
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1)
		return rcd_gid_from_ipv4(v4);
	CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

#endif /* GID_TEXT_H */
