/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Both ends of what net_udp carries, within one machine.
 */
#include "udp_rig.h"

#include <net/if.h>
#include <netinet/in.h>
#include <rte_bus_vdev.h>
#include <rte_mempool.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "begin.h"

#define BUFFERS 2047
#define WAIT_MS 20000

struct rte_mempool *rig_pool;
int rig_a, rig_b;
int rig_families = 2;

static void
rig_set_lo(unsigned long what, int val)
{
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (what == SIOCSIFMTU)
		ifr.ifr_mtu = val;
	else
		ifr.ifr_flags = (short)val;
	CU_ASSERT_EQUAL(ioctl(fd, what, &ifr), 0);
	close(fd);
}

const char *
rig_begin(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	struct sockaddr_in6 here = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd;

	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return "no network namespace of its own";
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) != 0)
		return "lo can't be taken up";
	close(fd);
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof(here)) != 0)
		rig_families = 1;
	if (fd >= 0)
		close(fd);
	if (begin_eal("udp") != 0)
		return "no EAL";
	rig_pool = rte_pktmbuf_pool_create(
		"rig", BUFFERS, 0, 0, RTE_PKTMBUF_HEADROOM + RIG_ROOM, SOCKET_ID_ANY);
	return rig_pool != NULL ? NULL : "no buffers";
}

void
rig_mtu(int mtu)
{
	rig_set_lo(SIOCSIFMTU, mtu);
}

static int
rig_start(uint16_t port, uint16_t queues)
{
	struct rte_eth_conf conf = { .intr_conf.rxq = 1 };
	int err = rte_eth_dev_configure(port, queues, queues, &conf);

	for (uint16_t i = 0; err == 0 && i < queues; i++) {
		err = rte_eth_rx_queue_setup(port, i, 512, 0, NULL, rig_pool);
		if (err == 0)
			err = rte_eth_tx_queue_setup(port, i, 512, 0, NULL);
	}
	return err == 0 ? rte_eth_dev_start(port) : err;
}

int
rig_open(const char *args, uint16_t queues)
{
	static int serial;
	char name[32], text[256];
	uint16_t port;
	int err;

	snprintf(name, sizeof(name), "net_udp%d", serial++);
	snprintf(text, sizeof(text), "iface=lo%s%s", args[0] != '\0' ? "," : "", args);
	err = rte_vdev_init(name, text);
	if (err != 0)
		return err;
	CU_ASSERT_EQUAL_FATAL(rte_eth_dev_get_port_by_name(name, &port), 0);
	err = rig_start(port, queues);
	if (err == 0)
		return port;
	rig_close(port);
	return err;
}

void
rig_close(int port)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	CU_ASSERT_EQUAL(rte_eth_dev_get_name_by_port((uint16_t)port, name), 0);
	rte_eth_dev_stop((uint16_t)port);
	CU_ASSERT_EQUAL(rte_vdev_uninit(name), 0);
}

void
rig_open_two(const char *args)
{
	char text[128];

	snprintf(text, sizeof(text), "port=%d%s", RIG_A, args);
	rig_a = rig_open(text, 1);
	snprintf(text, sizeof(text), "port=%d%s", RIG_B, args);
	rig_b = rig_open(text, 1);
	CU_ASSERT_FATAL(rig_a >= 0 && rig_b >= 0);
}

void
rig_meet(void)
{
	/* Who was not heard is sent to by another socket. */
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 4 }, 1));
	CU_ASSERT_TRUE(rig_pass(rig_b, rig_a, (struct rig_frame){ .dport = RIG_A, .size = 4 }, 1));
}

void
rig_close_two(void)
{
	rig_close(rig_a);
	rig_close(rig_b);
	CU_ASSERT_TRUE(rte_mempool_full(rig_pool));
}

static struct rcd_path
rig_path(const struct rig_frame *frame)
{
	static const uint8_t v4[4] = { 127, 0, 0, 1 };
	static const uint8_t v6[16] = { [15] = 1 };
	struct rcd_path path = { .l3 = frame->v6 ? RCD_L3_IPV6 : RCD_L3_IPV4,
		.tclass = frame->tclass,
		.hop_limit = frame->hop_limit != 0 ? frame->hop_limit : 64,
		/* Neither is what the kernel will write. */
		.sport = (uint16_t)(0xc000 + frame->number % 997),
		.ipv4_id = (uint16_t)(frame->number * 40503),
		.sgid = frame->v6 ? rcd_gid_from_ipv6(v6) : rcd_gid_from_ipv4(v4) };

	path.dgid = path.sgid;
	return path;
}

static void
rig_fill(uint8_t *payload, const struct rig_frame *frame)
{
	for (uint32_t i = 0; i < frame->size; i++)
		payload[i] = (uint8_t)((frame->number * 2654435761u + i * 131) >> 7);
}

struct rte_mbuf *
rig_make(const struct rig_frame *frame)
{
	struct rcd_roce roce = { .bth = { .opcode = RCD_OPCODE_RC_SEND_MIDDLE,
					 .pkey = { RCD_PKEY_DEFAULT },
					 .dest_qpn = { 77 } } };
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(rig_pool);
	struct rcd_path path = rig_path(frame);
	uint16_t dport = frame->dport != 0 ? frame->dport : RIG_B;
	uint8_t *data;
	size_t hdr_len, ip, len;
	uint32_t icrc;

	if (mbuf == NULL)
		return NULL;
	data = rte_pktmbuf_mtod(mbuf, uint8_t *);
	hdr_len = rcd_pkt_build(data, &path, &roce, frame->size);
	rig_fill(data + hdr_len, frame);
	ip = RCD_ETH_LEN;
	data[ip + (frame->v6 ? 42 : 22)] = (uint8_t)(dport >> 8);
	data[ip + (frame->v6 ? 43 : 23)] = (uint8_t)dport;
	len = rcd_pkt_seal(data, &path, hdr_len, frame->size);
	icrc = rcd_icrc((enum rcd_l3)path.l3, data + ip, len - ip - RCD_ICRC_LEN);
	rcd_put_le32(data + len - RCD_ICRC_LEN, icrc);
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = (uint32_t)len;
	return mbuf;
}

bool
rig_send(int port, struct rte_mbuf **mbufs, uint16_t count)
{
	uint16_t sent = 0;

	for (int i = 0; sent < count && i < WAIT_MS; i++) {
		sent += rte_eth_tx_burst((uint16_t)port, 0, mbufs + sent, (uint16_t)(count - sent));
		if (sent < count)
			usleep(1000);
	}
	return sent == count;
}

uint16_t
rig_receive(int port, struct rte_mbuf **mbufs, uint16_t count)
{
	uint16_t got = 0;

	for (int i = 0; got < count && i < WAIT_MS; i++) {
		got += rte_eth_rx_burst((uint16_t)port, 0, mbufs + got, (uint16_t)(count - got));
		if (got < count)
			usleep(1000);
	}
	return got;
}

bool
rig_is(const struct rte_mbuf *mbuf, const struct rig_frame *frame)
{
	static uint8_t expected[RIG_ROOM];
	const uint8_t *ip = rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, RCD_ETH_LEN);
	uint32_t len = rte_pktmbuf_data_len(mbuf) - RCD_ETH_LEN;
	uint32_t before = (frame->v6 ? 40 : 20) + RCD_UDP_LEN + RCD_BTH_LEN;
	uint8_t tclass = frame->v6 ? (uint8_t)(ip[0] << 4 | ip[1] >> 4) : ip[1];
	uint8_t hop_limit = frame->v6 ? ip[7] : ip[8];

	rig_fill(expected, frame);
	return mbuf->nb_segs == 1 && len == before + frame->size + RCD_ICRC_LEN &&
		tclass == frame->tclass &&
		hop_limit == (frame->hop_limit != 0 ? frame->hop_limit : 64) &&
		memcmp(ip + before, expected, frame->size) == 0 &&
		rcd_get_le32(ip + len - RCD_ICRC_LEN) ==
		rcd_icrc(frame->v6 ? RCD_L3_IPV6 : RCD_L3_IPV4, ip, len - RCD_ICRC_LEN);
}

bool
rig_pass(int a, int b, struct rig_frame frame, uint16_t count)
{
	struct rte_mbuf *mbufs[256];
	uint32_t first = frame.number;
	uint16_t got, right = 0;

	for (uint16_t i = 0; i < count; i++, frame.number++)
		mbufs[i] = rig_make(&frame);
	if (!rig_send(a, mbufs, count))
		return false;
	got = rig_receive(b, mbufs, count);
	frame.number = first;
	for (uint16_t i = 0; i < got; i++, frame.number++)
		right += rig_is(mbufs[i], &frame);
	rte_pktmbuf_free_bulk(mbufs, got);
	return right == count;
}

uint64_t
rig_count(int port, const char *name)
{
	uint64_t id, val = 0;

	CU_ASSERT_EQUAL(rte_eth_xstats_get_id_by_name((uint16_t)port, name, &id), 0);
	CU_ASSERT_EQUAL(rte_eth_xstats_get_by_id((uint16_t)port, &id, &val, 1), 1);
	return val;
}

int
rig_socket(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

bool
rig_say(int fd, uint16_t port, const void *data, size_t len)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return sendto(fd, data, len, 0, (struct sockaddr *)&to, sizeof(to)) == (ssize_t)len;
}
