/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Ends of a socket's life, and who is woken by them and by all else that changes.
 */
#include "rcd_rs.h"

#include <sys/eventfd.h>

void
rcd_rs_fail(struct rcd_rs *rs, int error)
{
	if (rs->state >= RCD_RS_DISCONNECTED)
		return;
	rs->state = RCD_RS_FAILED;
	rs->readable = rs->writable = false;
	rs->error = error;
}

void
rcd_rs_disconnected(struct rcd_rs *rs)
{
	if (rs->state >= RCD_RS_DISCONNECTED)
		return;
	rs->state = RCD_RS_DISCONNECTED;
	rs->readable = rs->writable = false;
}

void
rcd_rs_ring(struct rcd_rs *rs, const struct rcd_rs_watch *self)
{
	struct rcd_rs_watch *watch;

	LIST_FOREACH(watch, &rs->watches, link)
		if (watch != self)
			eventfd_write(watch->bell, 1);
}
