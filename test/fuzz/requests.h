/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests that make sense: what a fuzzer begins with before it changes a few bytes.
 */
#ifndef REQUESTS_H
#define REQUESTS_H

#include "inside.h"

/**
 * Fill a request with values that an honest client would send: objects that it has, addresses of
 * the wire. Requests that this knows nothing of stay zero.
 *
 * @param which  chooses among objects and kinds
 */
void
request_fill(const struct client *client, uint32_t op, uint32_t which, union rcd_ctrl_body *body);

/** Make the extents of a region sum up to its length again. */
void
request_mend(uint32_t op, union rcd_ctrl_body *body);

#endif /* REQUESTS_H */
