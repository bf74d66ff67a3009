/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: net_udp carries frames as they are, alone and in runs, with an ICRC that is right for what
 * the kernel writes, and loses no buffer; and it knows by which netdevs to send runs to strangers.
 * Method: two ports on the loopback interface; one on netdevs of several kinds.
 */
#include <netinet/in.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_pmd_udp.h"
#include "udp_rig.h"

static void
all_sizes(void)
{
	static const uint32_t sizes[] = { 0, 4, 20, 64, 256, 1024, 2048, 4096, 4240 };

	rig_open_two("");
	for (int v6 = 0; v6 < rig_families; v6++) {
		for (size_t i = 0; i < RTE_DIM(sizes); i++) {
			struct rig_frame frame = {
				.v6 = v6, .number = (uint32_t)i * 1000, .size = sizes[i]
			};

			/* Before the peer is known one by one, and behind that in runs. */
			CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, frame, 1));
			CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, frame, 40));
			rig_meet();
			CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, frame, 150));
		}
	}
	rig_close_two();
}

/* ECN and hop limit, each value of the byte. */
static void
headers_go_along(void)
{
	rig_open_two("");
	for (int v6 = 0; v6 < rig_families; v6++)
		for (int i = 0; i < 256; i += 5)
			CU_ASSERT_TRUE(rig_pass(rig_a, rig_b,
				(struct rig_frame){ .v6 = v6,
					.tclass = (uint8_t)i,
					.hop_limit = (uint8_t)(i % 255 + 1),
					.size = 64 },
				3));
	rig_close_two();
}

static void
meet6(void)
{
	struct rig_frame there = { .v6 = true, .size = 4 };
	struct rig_frame back = { .v6 = true, .dport = RIG_A, .size = 4 };

	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, there, 1));
	CU_ASSERT_TRUE(rig_pass(rig_b, rig_a, back, 1));
}

static void
runs_are_few_calls(void)
{
	uint64_t calls;

	rig_open_two("");
	/* A stranger may be one that minds the identification. */
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 1024 }, 32));
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_calls"), 32);
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_runs"), 0);
	/* Over IPv6 there is none; but one that has no socket would get it whole. */
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .v6 = true, .size = 1024 }, 32));
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_runs"), 0);
	meet6();
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .v6 = true, .size = 1024 }, 32));
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_runs"), 1);
	rig_meet();
	calls = rig_count(rig_a, "tx_udp_calls");
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 1024 }, 32));
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_calls"), calls + 1);
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_runs"), 2);
	CU_ASSERT_TRUE(rig_count(rig_b, "rx_udp_runs") >= 2);
	/* As many bytes as a datagram may have: 15. */
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 4096 }, 32));
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_calls"), calls + 4);
	rig_close_two();
	rig_open_two(",runs=none");
	rig_meet();
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 1024 }, 32));
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_runs"), 0);
	rig_close_two();
	rig_open_two(",gro=0");
	meet6();
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .v6 = true, .size = 1024 }, 32));
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_runs"), 1);
	CU_ASSERT_EQUAL(rig_count(rig_b, "rx_udp_runs"), 0);
	rig_close_two();
}

/* What the kernel is to have said of a netdev. NULL: what it says itself. */
static const struct ethtool_drvinfo *said;

int
__real_ioctl(int fd, unsigned long request, void *arg);
int
__wrap_ioctl(int fd, unsigned long request, void *arg);

int
__wrap_ioctl(int fd, unsigned long request, void *arg)
{
	if (request == SIOCETHTOOL && said != NULL)
		memcpy(((struct ifreq *)arg)->ifr_data, said, sizeof(*said));
	return request == SIOCETHTOOL && said != NULL ? 0 : __real_ioctl(fd, request, arg);
}

/* By rig2, which has a neighbour that was never heard: eight datagrams. @return in how many runs */
static uint64_t
runs_by_rig2(void)
{
	struct rte_mbuf *mbufs[8];
	int port = rig_open("iface=rig2", 1);
	uint64_t runs;

	CU_ASSERT_FATAL(port >= 0);
	for (uint32_t i = 0; i < RTE_DIM(mbufs); i++) {
		uint8_t *ip;

		mbufs[i] = rig_make(&(struct rig_frame){ .v6 = true, .number = i, .size = 64 });
		CU_ASSERT_PTR_NOT_NULL_FATAL(mbufs[i]);
		ip = rte_pktmbuf_mtod_offset(mbufs[i], uint8_t *, RCD_ETH_LEN);
		for (int k = 0; k < 2; k++) {
			memset(ip + 8 + 16 * k, 0, 16);
			memcpy(ip + 8 + 16 * k, "\375\11", 2);
			ip[23 + 16 * k] = (uint8_t)(1 + k);
		}
	}
	CU_ASSERT_TRUE(rig_send(port, mbufs, RTE_DIM(mbufs)));
	runs = rig_count(port, "tx_udp_runs");
	CU_ASSERT_EQUAL(rig_count(port, "tx_udp_calls"), runs > 0 ? runs : RTE_DIM(mbufs));
	rig_close(port);
	return runs;
}

/* @param add  what is said to ip(8) to have it. @return whether there is such a netdev now */
static bool
make_rig2(const char *add)
{
	static const char set_up[] = "ip addr add fd09::1/64 dev rig2 nodad && "
				     "ip link set rig2 mtu 9000 up && "
				     "ip neigh replace fd09::2 lladdr 02:00:00:00:00:09 dev rig2";
	char line[64];

	snprintf(line, sizeof(line), "ip %s 2>/dev/null", add);
	if (rig_families < 2 || system(line) != 0)
		return false;
	CU_ASSERT_EQUAL_FATAL(system(set_up), 0);
	return true;
}

static void
no_runs_over_ipv6_by_netdevs_of_no_device(void)
{
	static const char *const kinds[] = { "link add rig2 type bridge",
		"link add rig2 type veth peer name rig3", "link add rig2 type bond",
		"link add rig2 type dummy", "tuntap add rig2 mode tap" };
	int count = 0;

	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		if (!make_rig2(kinds[i]))
			continue;
		count++;
		CU_ASSERT_EQUAL(runs_by_rig2(), 0);
		CU_ASSERT_EQUAL(system("ip link del rig2"), 0);
	}
	if (count == 0)
		rcd_tap_skip("no IPv6, or none of these netdevs");
}

/* There is no NIC here: what the kernel says of one is put in the place of what it says of rig2. */
static void
runs_over_ipv6_by_what_the_kernel_says(void)
{
	static const struct {
		struct ethtool_drvinfo info;
		uint64_t runs;
	} cases[] = {
		{ { .driver = "mlx5_core", .bus_info = "0000:01:00.0" }, 1 },
		{ { .driver = "mlx5_core", .bus_info = "10000:e1:1f.7" }, 1 },
		{ { .driver = "r8152", .bus_info = "usb-0000:00:14.0-1" }, 1 },
		{ { .driver = "virtio_net", .bus_info = "0000:01:00.0" }, 0 },
		{ { .driver = "vmxnet3", .bus_info = "0000:03:00.0" }, 0 },
		{ { .driver = "vif", .bus_info = "vif-0" }, 0 },
		{ { .driver = "hv_netvsc", .bus_info = "000d3a3e-a2e7-000d-3a3e-a2e7000" }, 0 },
		{ { .driver = "bridge", .bus_info = "N/A" }, 0 },
		{ { .driver = "tun", .bus_info = "tap" }, 0 },
		{ { .driver = "other", .bus_info = "0000:01:00" }, 0 },
		{ { .driver = "other", .bus_info = "0000:01:00.0 or so" }, 0 },
		{ { .driver = "other", .bus_info = "" }, 0 },
	};

	if (!make_rig2("link add rig2 type bridge")) {
		rcd_tap_skip("no IPv6, or no bridge");
		return;
	}
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		said = &cases[i].info;
		CU_ASSERT_EQUAL(runs_by_rig2(), cases[i].runs);
	}
	said = NULL;
	CU_ASSERT_EQUAL(system("ip link del rig2"), 0);
}

static void
hear(int fd, int count)
{
	struct rte_mbuf *mbuf;

	for (int i = 0; i < count; i++) {
		CU_ASSERT_TRUE(rig_say(fd, RIG_A, "somebody else here", 18));
		CU_ASSERT_EQUAL_FATAL(rig_receive(rig_a, &mbuf, 1), 1);
		rte_pktmbuf_free(mbuf);
	}
}

/* One packet from another port is anybody's; a peer that sends from there alone has no socket. */
static void
peers_are_forgotten(void)
{
	int fd = rig_socket(0);
	uint64_t runs;

	rig_open_two("");
	rig_meet();
	hear(fd, 1);
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 1024 }, 32));
	runs = rig_count(rig_a, "tx_udp_runs");
	CU_ASSERT_TRUE(runs > 0);
	hear(fd, 100);
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 1024 }, 32));
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_runs"), runs);
	rig_meet();
	close(fd);
	rig_close_two();
}

/* The size that is expected is wrong, each time; and the last of a run is shorter. */
static void
sizes_change(void)
{
	static const uint32_t sizes[] = { 4096, 1024, 2048, 128, 4096, 4, 1024, 4240 };

	rig_open_two(",runs=all");
	for (uint32_t round = 0; round < 6; round++) {
		struct rte_mbuf *mbufs[160];
		struct rig_frame frames[160];
		uint16_t count = 0, right = 0;

		for (size_t i = 0; i < RTE_DIM(sizes); i++)
			for (uint32_t k = 0; k < 20; k++, count++)
				frames[count] = (struct rig_frame){ .v6 = (round & 1) != 0,
					.number = round * 1000 + count,
					.size = k % (7 + round) == 6 ? sizes[i] / 2 & ~3u
								     : sizes[i] };
		for (uint16_t i = 0; i < count; i++)
			mbufs[i] = rig_make(&frames[i]);
		CU_ASSERT_TRUE(rig_send(rig_a, mbufs, count));
		CU_ASSERT_EQUAL(rig_receive(rig_b, mbufs, count), count);
		for (uint16_t i = 0; i < count; i++)
			right += rig_is(mbufs[i], &frames[i]);
		CU_ASSERT_EQUAL(right, count);
		rte_pktmbuf_free_bulk(mbufs, count);
	}
	CU_ASSERT_TRUE(rig_count(rig_b, "rx_udp_copied") > 0);
	CU_ASSERT_TRUE(rig_count(rig_b, "rx_udp_copied") < 6 * 160);
	rig_close_two();
}

/* As responses to READs: the first and the last of a message are longer, and neighbours. */
static void
most_are_expected(void)
{
	rig_open_two(",runs=all");
	for (uint32_t round = 0; round < 40; round++) {
		struct rte_mbuf *mbufs[16];

		for (uint32_t i = 0; i < 16; i++)
			mbufs[i] = rig_make(&(struct rig_frame){
				.number = round * 16 + i, .size = (i + 1) % 16 < 2 ? 4116 : 4112 });
		CU_ASSERT_TRUE(rig_send(rig_a, mbufs, 16));
		CU_ASSERT_EQUAL(rig_receive(rig_b, mbufs, 16), 16);
		rte_pktmbuf_free_bulk(mbufs, 16);
	}
	/* The longer ones, and until it is known. */
	CU_ASSERT_TRUE(rig_count(rig_b, "rx_udp_copied") < 40 * 16 / 4);
	rig_close_two();
}

/* What a datagram is on the wire: a raw socket sees headers as the kernel wrote them. */
static void
icrc_is_right_on_the_wire(void)
{
	static uint8_t packet[65536];
	uint32_t seen = 0, right = 0, whole = 0;
	int big = 8 << 20, raw;

	rig_open_two(",runs=none");
	rig_meet();
	raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_UDP);
	CU_ASSERT_FATAL(raw >= 0);
	setsockopt(raw, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 1024 }, 32));
	for (ssize_t len; (len = recv(raw, packet, sizeof(packet), MSG_DONTWAIT)) > 0; seen++) {
		struct ip ip;
		struct udphdr udp;

		memcpy(&ip, packet, sizeof(ip));
		memcpy(&udp, packet + sizeof(ip), sizeof(udp));
		CU_ASSERT_EQUAL(ntohs(ip.ip_id), 0);
		CU_ASSERT_EQUAL(ntohs(udp.source), RIG_A);
		whole += (ntohs(ip.ip_off) & IP_DF) != 0;
		right += rcd_get_le32(packet + len - RCD_ICRC_LEN) ==
			rcd_icrc(RCD_L3_IPV4, packet, (size_t)len - RCD_ICRC_LEN);
	}
	CU_ASSERT_EQUAL(seen, 32);
	CU_ASSERT_EQUAL(whole, 32);
	CU_ASSERT_EQUAL(right, 32);
	close(raw);
	rig_close_two();
}

/* Received ones say that their identification is a guess; those of IPv6 have none. */
static void
guesses_are_marked(void)
{
	uint64_t flag = UINT64_C(1) << rte_mbuf_dynflag_lookup(RCD_MBUF_FLAG_ANY_ID, NULL);
	struct rte_mbuf *mbuf;

	rig_open_two("");
	for (int v6 = 0; v6 < rig_families; v6++) {
		mbuf = rig_make(&(struct rig_frame){ .v6 = v6, .size = 64 });
		CU_ASSERT_TRUE(rig_send(rig_a, &mbuf, 1));
		CU_ASSERT_EQUAL_FATAL(rig_receive(rig_b, &mbuf, 1), 1);
		CU_ASSERT_EQUAL((mbuf->ol_flags & flag) != 0, !v6);
		rte_pktmbuf_free(mbuf);
	}
	rig_close_two();
}

/* What others have, too, is not written to. */
static void
shared_buffers_stay(void)
{
	struct rig_frame frame = { .number = 5, .size = 512 };
	struct rte_mbuf *ours = rig_make(&frame);
	struct rte_mbuf *sent[2] = { ours, rte_pktmbuf_clone(ours, rig_pool) };
	struct rte_mbuf *got[2];
	uint16_t len = rte_pktmbuf_data_len(ours);
	static uint8_t before[1024];

	rig_open_two("");
	rte_mbuf_refcnt_update(ours, 1);
	memcpy(before, rte_pktmbuf_mtod(ours, void *), len);
	CU_ASSERT_TRUE(rig_send(rig_a, sent, 2));
	CU_ASSERT_EQUAL_FATAL(rig_receive(rig_b, got, 2), 2);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_TRUE(rig_is(got[i], &frame));
	rte_pktmbuf_free_bulk(got, 2);
	CU_ASSERT_EQUAL(rte_mbuf_refcnt_read(ours), 1);
	CU_ASSERT_EQUAL(memcmp(before, rte_pktmbuf_mtod(ours, void *), len), 0);
	rte_pktmbuf_free(ours);
	rig_close_two();
}

/* A frame in pieces, the ICRC among two of them. */
static void
pieces(void)
{
	struct rig_frame frame = { .number = 9, .size = 512 };
	struct rte_mbuf *parts[3], *whole;

	rig_open_two("");
	whole = rig_make(&frame);
	for (int i = 0; i < 3; i++) {
		uint16_t len = rte_pktmbuf_data_len(whole);
		uint16_t at = (uint16_t)(i == 0 ? 0 : i == 1 ? 100 : len - 2);
		uint16_t end = (uint16_t)(i == 0 ? 100 : i == 1 ? len - 2 : len);

		parts[i] = rte_pktmbuf_alloc(rig_pool);
		memcpy(rte_pktmbuf_append(parts[i], (uint16_t)(end - at)),
			rte_pktmbuf_mtod_offset(whole, uint8_t *, at), (size_t)(end - at));
	}
	rte_pktmbuf_free(whole);
	CU_ASSERT_EQUAL(rte_pktmbuf_chain(parts[1], parts[2]), 0);
	CU_ASSERT_EQUAL(rte_pktmbuf_chain(parts[0], parts[1]), 0);
	CU_ASSERT_TRUE(rig_send(rig_a, parts, 1));
	CU_ASSERT_EQUAL_FATAL(rig_receive(rig_b, &whole, 1), 1);
	CU_ASSERT_TRUE(rig_is(whole, &frame));
	rte_pktmbuf_free(whole);
	rig_close_two();
}

/* What comes to several queues comes once. */
static void
several_queues(void)
{
	struct rte_mbuf *mbufs[64];
	struct rte_eth_stats stats;
	int fds[16];
	uint16_t got = 0;

	rig_b = rig_open("port=4792", 4);
	CU_ASSERT_FATAL(rig_b >= 0);
	for (int i = 0; i < 16; i++) {
		fds[i] = rig_socket(0);
		for (int k = 0; k < 4; k++)
			CU_ASSERT_TRUE(rig_say(fds[i], RIG_B, "hello", 5));
		close(fds[i]);
	}
	for (int tries = 0; got < 64 && tries < 20000; tries++, usleep(1000))
		for (uint16_t i = 0; i < 4; i++)
			got += rte_eth_rx_burst(
				(uint16_t)rig_b, i, mbufs + got, (uint16_t)(64 - got));
	CU_ASSERT_EQUAL(got, 64);
	rte_pktmbuf_free_bulk(mbufs, got);
	CU_ASSERT_EQUAL(rte_eth_stats_get((uint16_t)rig_b, &stats), 0);
	CU_ASSERT_EQUAL(stats.ipackets, 64);
	rig_close(rig_b);
	CU_ASSERT_TRUE(rte_mempool_full(rig_pool));
}

/* Who sleeps is woken: the descriptor of a queue is readable while there is something. */
static void
sleepers_are_woken(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd;

	rig_open_two("");
	CU_ASSERT_EQUAL(rte_eth_dev_rx_intr_enable((uint16_t)rig_b, 0), 0);
	fd = rte_eth_dev_rx_intr_ctl_q_get_fd((uint16_t)rig_b, 0);
	CU_ASSERT_TRUE(fd >= 0);
	CU_ASSERT_EQUAL(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	for (int v6 = 0; v6 < rig_families; v6++) {
		struct rte_mbuf *mbuf = rig_make(&(struct rig_frame){ .v6 = v6, .size = 64 });

		CU_ASSERT_EQUAL(rte_eth_rx_queue_count((uint16_t)rig_b, 0), 0);
		CU_ASSERT_EQUAL(epoll_wait(epoll, &event, 1, 0), 0);
		CU_ASSERT_TRUE(rig_send(rig_a, &mbuf, 1));
		CU_ASSERT_EQUAL(epoll_wait(epoll, &event, 1, 10000), 1);
		CU_ASSERT_EQUAL(rte_eth_rx_queue_count((uint16_t)rig_b, 0), 1);
		CU_ASSERT_EQUAL(rig_receive(rig_b, &mbuf, 1), 1);
		rte_pktmbuf_free(mbuf);
	}
	close(epoll);
	rig_close_two();
}

/* Stopped and started again it is as new, with what it counted; reset, it has counted nothing. */
static void
starts_again(void)
{
	struct rte_eth_stats stats, sender;

	rig_open_two("");
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 1024 }, 10));
		CU_ASSERT_EQUAL(rte_eth_stats_get((uint16_t)rig_b, &stats), 0);
		CU_ASSERT_EQUAL(stats.ipackets, 10 * ((uint64_t)i + 1));
		CU_ASSERT_EQUAL(rte_eth_stats_get((uint16_t)rig_a, &sender), 0);
		CU_ASSERT_EQUAL(stats.ibytes, sender.obytes);
		CU_ASSERT_EQUAL(rte_eth_dev_stop((uint16_t)rig_b), 0);
		CU_ASSERT_EQUAL(rte_eth_dev_start((uint16_t)rig_b), 0);
	}
	CU_ASSERT_EQUAL(rte_eth_stats_reset((uint16_t)rig_b), 0);
	CU_ASSERT_EQUAL(rte_eth_stats_get((uint16_t)rig_b, &stats), 0);
	CU_ASSERT_EQUAL(stats.ipackets + stats.ibytes + stats.rx_nombuf + stats.ierrors, 0);
	rig_close_two();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(all_sizes),
		RCD_TEST(headers_go_along),
		RCD_TEST(runs_are_few_calls),
		RCD_TEST(no_runs_over_ipv6_by_netdevs_of_no_device),
		RCD_TEST(runs_over_ipv6_by_what_the_kernel_says),
		RCD_TEST(peers_are_forgotten),
		RCD_TEST(sizes_change),
		RCD_TEST(most_are_expected),
		RCD_TEST(icrc_is_right_on_the_wire),
		RCD_TEST(guesses_are_marked),
		RCD_TEST(shared_buffers_stay),
		RCD_TEST(pieces),
		RCD_TEST(several_queues),
		RCD_TEST(sleepers_are_woken),
		RCD_TEST(starts_again),
	};
	const char *reason = rig_begin();

	if (reason != NULL) {
		printf("1..0 # SKIP %s\n", reason);
		return 0;
	}
	return rcd_tap_run("udp", tests, RTE_DIM(tests));
}
