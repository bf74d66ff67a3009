/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What clients of an engine can use up, and limits of it by name. Who has how much is counted
 * elsewhere (rcd_quota.h).
 *
 * Threads: any.
 */
#ifndef RCD_RESOURCE_H
#define RCD_RESOURCE_H

#include <stdint.h>

#include "rcd_api.h"

RCD_API_BEGIN

/** What can be used up, by rcd_resource.def. Values are dense from 0. */
enum rcd_resource {
#define RCD_RESOURCE(symbol, name, client, most, error, what) RCD_RESOURCE_##symbol,
#include "rcd_resource.def"
	RCD_RESOURCE_COUNT /**< how many there are */
};

/** Limits by name, in units of rcd_resource.def; 0: none of its own. */
struct rcd_quota {
#define RCD_RESOURCE(symbol, name, client, most, error, what) uint64_t name;
#include "rcd_resource.def"
};

/* rcd_quota.c */

/** Set all limits to the defaults of a client. */
void
rcd_quota_init(struct rcd_quota *quota);

/** One limit by number. @return where it is within @p quota */
uint64_t *
rcd_quota_at(struct rcd_quota *quota, enum rcd_resource resource);

/** Name of a resource, as in the configuration. @return static string, never NULL */
const char *
rcd_resource_name(enum rcd_resource resource);

/** The largest limit that may be set. */
uint64_t
rcd_resource_most(enum rcd_resource resource);

RCD_API_END

#endif /* RCD_RESOURCE_H */
