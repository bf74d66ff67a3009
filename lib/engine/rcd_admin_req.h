/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A request of the command line: one JSON object whose members are texts, {"op": "link_set",
 * "name": "r0", "mtu": "1500"}. It is parsed within bounds, whoever wrote it; what it asks for is
 * its reader's business.
 *
 * Threads: any.
 */
#ifndef RCD_ADMIN_REQ_H
#define RCD_ADMIN_REQ_H

#include <stddef.h>
#include <stdint.h>

#define RCD_ADMIN_REQ_MEMBERS_MAX 24

struct json_t;
struct rcd_away;

/** A request. Its texts are its own, without control characters. */
struct rcd_admin_req {
	struct json_t *json;
	const char *op;
	struct rcd_away *away; /**< sockets that came with it; who takes them sets NULL */
	uint32_t count;
	/** The members but "op", in the order that they were written in. */
	struct {
		const char *key;
		const char *val;
	} members[RCD_ADMIN_REQ_MEMBERS_MAX];
};

/**
 * Parse a request. Any thread.
 *
 * @param text   terminated; as long as its message lets it be
 * @param error  set to a sentence, unless 0 is returned
 * @return 0, -EINVAL, -ENOMEM; only with 0 there is something to free
 */
int
rcd_admin_req_parse(struct rcd_admin_req *req, const char *text, char *error, size_t error_len);

/** A member's text. @return NULL: it has no such member */
const char *
rcd_admin_req_get(const struct rcd_admin_req *req, const char *key);

void
rcd_admin_req_free(struct rcd_admin_req *req);

#endif /* RCD_ADMIN_REQ_H */
