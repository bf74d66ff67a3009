/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How the sink meets its collector, and is connected to it.
 */
#include "meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rcd_local.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring.h"

int
meet(const char *where, const struct ring_end *mine, struct ring_end *far)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	unsigned int port = 0;
	char host[64];
	int fd;

	if (sscanf(where, "%63[^:]:%u", host, &port) != 2 || port > UINT16_MAX ||
		inet_pton(AF_INET, host, &to.sin_addr) != 1)
		return -EINVAL;
	to.sin_port = htons((uint16_t)port);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
		send(fd, mine, sizeof(*mine), MSG_NOSIGNAL) == sizeof(*mine) &&
		recv(fd, far, sizeof(*far), MSG_WAITALL) == sizeof(*far) &&
		far->bytes >= 4 * RING_BATCH_MOST)
		return fd;
	close(fd);
	return -ECONNREFUSED;
}

int
connect_qp(struct rcd_local_qp *qp, int fd, const struct ring_end *mine, const struct ring_end *far)
{
	struct rcd_ctrl_qp_attr attr = { .port = 1,
		.path_mtu_bytes = 1024,
		.timeout = 16, /* eight times 268 ms: a far core may be taken for half a second */
		.retry_cnt = 7,
		.rnr_retry = 6, /* a WRITE waits for no request of the collector's */
		.max_rd_atomic = 1,
		.dest_qpn = far->qpn,
		.rq_psn = far->psn,
		.sq_psn = mine->psn,
		.av = { .sgid_index = 1, .hop_limit = 64 } };
	struct rcd_ctrl_qp_attr now;

	char ready;
	ssize_t got;
	int err;

	memcpy(attr.av.dgid, far->gid, sizeof(attr.av.dgid));
	err = rcd_local_qp_query(qp, &now);
	if (err == 0 && now.state != RCD_QP_RTS)
		err = rcd_local_qp_connect(qp, &attr);
	if (err != 0)
		return err;
	got = recv(fd, &ready, 1, MSG_DONTWAIT);
	if (got < 0 && errno == EAGAIN)
		return -EINPROGRESS;
	return got == 1 ? 0 : -ECONNREFUSED;
}
