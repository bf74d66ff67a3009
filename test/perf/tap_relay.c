/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A plain TAP, to measure others by: frames go from a netdev to a TAP of the kernel's and back, by
 * two threads that read and write one frame after another and do nothing else.
 *
 *   tap_relay NETDEV TAP
 */
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <pthread.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FRAME_MAX 65536

struct way {
	int from;
	int to;
};

static void
need(int result, const char *what)
{
	if (result >= 0)
		return;
	perror(what);
	exit(1);
}

/* What does not get through is lost, as on a wire. */
static void *
carry(void *arg)
{
	const struct way *way = arg;
	static _Thread_local uint8_t frame[FRAME_MAX];

	for (;;) {
		ssize_t len = read(way->from, frame, sizeof(frame));

		if (len > 0 && write(way->to, frame, (size_t)len) < 0)
			continue;
	}
	return NULL;
}

static int
open_tap(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	need(fd, "/dev/net/tun");
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	need(ioctl(fd, TUNSETIFF, &request), name);
	return fd;
}

static int
open_netdev(const char *name)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = __builtin_bswap16(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(name),
	};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	int one = 1;

	need(fd, "a packet socket");
	need(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)), name);
	need(bind(fd, (struct sockaddr *)&address, sizeof(address)), name);
	return fd;
}

int
main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 3) {
		fprintf(stderr, "usage: tap_relay NETDEV TAP\n");
		return 2;
	}

	int tap = open_tap(argv[2]);
	int netdev = open_netdev(argv[1]);
	struct way in = { .from = netdev, .to = tap }, out = { .from = tap, .to = netdev };

	if (pthread_create(&thread, NULL, carry, &in) != 0)
		return 1;
	carry(&out);
	return 0;
}
