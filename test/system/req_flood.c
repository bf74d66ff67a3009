/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sends requests for connections out of a netdev, each from a queue pair of its own, until SIGTERM;
 * prints how many.
 *
 *   req_flood NETDEV DEST_MAC SOURCE DESTINATION PORT RATE
 *
 * RATE is requests in a second; 0: as fast as the netdev takes them.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rcd_cm.h"
#include "rcd_pkt.h"

static volatile sig_atomic_t stopped;

static void
stop(int number)
{
	(void)number;
	stopped = 1;
}

static int
open_netdev(const char *name, uint8_t *mac)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET,
		.sll_ifindex = (int)if_nametoindex(name) };
	int sock = socket(AF_PACKET, SOCK_RAW, 0);
	struct ifreq req;

	memset(&req, 0, sizeof(req));
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	if (sock < 0 || addr.sll_ifindex == 0 || ioctl(sock, SIOCGIFHWADDR, &req) != 0 ||
		bind(sock, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		perror(name);
		exit(1);
	}
	memcpy(mac, req.ifr_hwaddr.sa_data, RCD_MAC_LEN);
	return sock;
}

static struct rcd_gid
parse_gid(const char *text)
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET, text, bytes) == 1)
		return rcd_gid_from_ipv4(bytes);
	if (inet_pton(AF_INET6, text, bytes) != 1) {
		fprintf(stderr, "%s is no address\n", text);
		exit(1);
	}
	return rcd_gid_from_ipv6(bytes);
}

static void
parse_mac(const char *text, uint8_t *mac)
{
	unsigned int bytes[RCD_MAC_LEN];

	if (sscanf(text, "%x:%x:%x:%x:%x:%x", &bytes[0], &bytes[1], &bytes[2], &bytes[3], &bytes[4],
		    &bytes[5]) != RCD_MAC_LEN) {
		fprintf(stderr, "%s is no MAC\n", text);
		exit(1);
	}
	for (int i = 0; i < RCD_MAC_LEN; i++)
		mac[i] = (uint8_t)bytes[i];
}

static size_t
build(uint8_t *frame, const struct rcd_path *path, uint32_t number, uint16_t port)
{
	struct rcd_mad hdr = {
		.base_version = RCD_MAD_BASE_VERSION,
		.mgmt_class = RCD_MAD_CLASS_CM,
		.class_version = RCD_CM_CLASS_VERSION,
		.method = RCD_CM_METHOD_SEND,
		.tid = number,
		.attr_id = RCD_CM_REQ,
	};
	struct rcd_cm msg = { .attr = RCD_CM_REQ,
		.req = { .local_comm_id = number,
			.service_id = rcd_cma_service_id(RCD_CMA_SPACE_TCP, port),
			.local_qpn = number & 0xffffff,
			.remote_cm_response_timeout = 20,
			.local_cm_response_timeout = 20,
			.pkey = RCD_PKEY_DEFAULT,
			.path_mtu = 3,
			.max_cm_retries = 15,
			.primary_local_gid = path->sgid,
			.primary_remote_gid = path->dgid } };
	struct rcd_cma_hdr cma = {
		.ip_version = rcd_gid_is_ipv4(&path->dgid) ? 4 : 6,
		.port = 40000,
		.src = path->sgid,
		.dst = path->dgid,
	};
	struct rcd_roce roce = {
		.bth = { .opcode = RCD_OPCODE_UD_SEND_ONLY,
			.pkey = { RCD_PKEY_DEFAULT },
			.dest_qpn = { RCD_QPN_GSI },
			.psn = rcd_psn(number & 0xffffff) },
		.deth = { .qkey = { RCD_QKEY_GSI }, .src_qpn = { RCD_QPN_GSI } },
	};
	size_t len = rcd_pkt_build(frame, path, &roce, RCD_MAD_LEN);

	rcd_cma_hdr_build(msg.req.private_data, &cma);
	rcd_mad_build(frame + len, &hdr);
	rcd_cm_build(frame + len + RCD_MAD_HDR_LEN, &msg);
	return rcd_pkt_seal(frame, path, len, RCD_MAD_LEN);
}

/* Until this much later than the last time. */
static void
wait_until(struct timespec *next, long ns)
{
	next->tv_nsec += ns;
	if (next->tv_nsec >= 1000000000) {
		next->tv_nsec -= 1000000000;
		next->tv_sec++;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

int
main(int argc, char **argv)
{
	struct rcd_path path = { .hop_limit = 64, .sport = 0xc000 };
	uint8_t frame[512];
	uint32_t rate, sent = 0;
	struct timespec next;
	uint16_t port;
	int sock;

	if (argc != 7)
		return 2;
	sock = open_netdev(argv[1], path.smac);
	parse_mac(argv[2], path.dmac);
	path.sgid = parse_gid(argv[3]);
	path.dgid = parse_gid(argv[4]);
	path.l3 = rcd_gid_is_ipv4(&path.dgid) ? RCD_L3_IPV4 : RCD_L3_IPV6;
	port = (uint16_t)strtoul(argv[5], NULL, 10);
	rate = (uint32_t)strtoul(argv[6], NULL, 10);
	signal(SIGTERM, stop);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (uint32_t i = 1; !stopped; i++) {
		sent += send(sock, frame, build(frame, &path, i, port), 0) > 0;
		if (rate != 0 && i % (rate / 1000 + 1) == 0)
			wait_until(&next, 1000000);
	}
	printf("%u\n", sent);
	close(sock);
	return 0;
}
