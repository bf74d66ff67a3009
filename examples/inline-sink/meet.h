/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How the sink meets its collector, and is connected to it.
 */
#ifndef MEET_H
#define MEET_H

struct rcd_local_qp;
struct ring_end;

/**
 * Tell the collector of the sink, and hear of it, by TCP. It sees the connection end with the sink.
 *
 * @param where  IPV4:PORT
 * @return the socket, or -errno
 */
int
meet(const char *where, const struct ring_end *mine, struct ring_end *far);

/**
 * Connect a queue pair to the collector's, and hear that it is ready, too.
 *
 * @return 0; -EINPROGRESS: again after a round, as each asks for the other's MAC; -errno
 */
int
connect_qp(
	struct rcd_local_qp *qp, int fd, const struct ring_end *mine, const struct ring_end *far);

#endif /* MEET_H */
