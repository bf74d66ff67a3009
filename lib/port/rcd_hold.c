/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sockets that are bound and never read.
 */
#include "rcd_hold.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_dev.h"
#include "rcd_dev_conf.h"
#include "rcd_thread.h"
#include "rcd_udp.h"

int
rcd_hold_port(struct rcd_dev *dev, char *error, size_t error_len)
{
	const char *netdev = rcd_dev_conf_netdev(&dev->conf);
	static const int families[] = { AF_INET, AF_INET6 };
	struct sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &drop_all };
	int on = 1;

	RCD_ON_CONTROL();
	for (int i = 0; i < 2; i++) {
		struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
			.sin6_port = htons(RCD_UDP_PORT_ROCE) };
		struct sockaddr_in v4 = { .sin_family = AF_INET,
			.sin_port = htons(RCD_UDP_PORT_ROCE) };
		int fd = socket(families[i], SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			continue; /* this family is not there: nothing to hold */
		if (i == 1)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, netdev, (socklen_t)strlen(netdev));
		setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
		if ((i == 0 ? bind(fd, (struct sockaddr *)&v4, sizeof(v4))
			    : bind(fd, (struct sockaddr *)&v6, sizeof(v6))) != 0) {
			int err = errno;

			close(fd);
			if (err == EADDRNOTAVAIL)
				continue;
			snprintf(error, error_len, "%s: UDP port 4791 of %s is taken: %s",
				dev->conf.name, netdev, strerror(err));
			return -EADDRINUSE;
		}
		dev->hold[i] = fd;
	}
	return 0;
}

void
rcd_hold_release(struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	for (int i = 0; i < 2; i++) {
		if (dev->hold[i] >= 0)
			close(dev->hold[i]);
		dev->hold[i] = -1;
	}
}
