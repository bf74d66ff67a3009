/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Streams of events to clients.
 *
 * Threads: the control thread.
 */
#ifndef RCD_STREAM_H
#define RCD_STREAM_H

#include "rcd_quota.h"

/**
 * A stream for events: the client reads the first end, and we send to the second without ever
 * blocking. A socket and no pipe: who reads a pipe holds its lock while the page that he reads into
 * comes, and who writes waits for that lock however it was opened.
 *
 * @param quota  charged for our end
 * @param type   SOCK_STREAM, a small one; SOCK_SEQPACKET
 * @return 0; -errno, of the quota too
 */
int
rcd_stream_open(struct rcd_quota_entry *quota, int type, int ends[2]);

/** Close our end of one. @param quota  as when it was opened */
void
rcd_stream_close(struct rcd_quota_entry *quota, int sock);

#endif /* RCD_STREAM_H */
