/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Streams of events: two sockets that are joined, one for the client.
 */
#include "rcd_stream.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_thread.h"

/** Kernel memory for events that wait in a stream: a client may have thousands of streams. */
#define STREAM_BYTES (16 << 10)

int
rcd_stream_open(struct rcd_quota_entry *quota, int type, int ends[2])
{
	int err;

	RCD_ON_CONTROL();
	err = rcd_quota_charge(quota, RCD_RESOURCE_DESCRIPTORS, 1);
	if (err != 0)
		return err;
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) {
		err = -errno;
		rcd_quota_uncharge(quota, RCD_RESOURCE_DESCRIPTORS, 1);
		return err;
	}
	/* The client sends nothing: descriptors would be closed with our end. */
	shutdown(ends[1], SHUT_RD);
	/* Some forty events (the kernel doubles it); others wait with us, in order. */
	if (type == SOCK_STREAM)
		setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &(int){ STREAM_BYTES }, sizeof(int));
	return 0;
}

void
rcd_stream_close(struct rcd_quota_entry *quota, int sock)
{
	RCD_ON_CONTROL();
	close(sock);
	rcd_quota_uncharge(quota, RCD_RESOURCE_DESCRIPTORS, 1);
}
