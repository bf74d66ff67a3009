/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what one peer, one client or somebody on the way does is no other's loss: neighbours that
 * do not answer, forged ICMP, full queues, errors that nobody reads, runs that are refused. Method:
 * a veth pair whose other end is the test's, and a port with the buffers of an ordinary user.
 */
#include <net/ethernet.h>
#include <net/if.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_veth.h"
#include "udp_rig.h"

#define LIVE 200 /**< the last byte of the address of one that is there; others are not */

/** What a user without rights gets. */
#define ORDINARY "iface=rig0,buffer=212992"

/** Packets as they are on the link: the other end. */
static int link_fd = -1;

static void
begin(const char *args)
{
	static const char set_up[] =
		"ip link add rig0 type veth peer name rig1 && ip addr add 10.9.0.1/24 dev rig0 && "
		"ip link set rig0 mtu 9000 up && ip link set rig1 mtu 9000 up && "
		"ip neigh replace 10.9.0.200 lladdr 02:00:00:00:00:09 dev rig0";

	struct sockaddr_ll here = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	int big = 64 << 20;

	CU_ASSERT_EQUAL_FATAL(system(set_up), 0);
	CU_ASSERT_EQUAL_FATAL(rcd_veth_wait("rig0"), 0);
	CU_ASSERT_EQUAL_FATAL(rcd_veth_wait("rig1"), 0);
	here.sll_ifindex = (int)if_nametoindex("rig1");
	link_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CU_ASSERT_EQUAL_FATAL(bind(link_fd, (struct sockaddr *)&here, sizeof(here)), 0);
	setsockopt(link_fd, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big));
	rig_a = rig_open(args, 1);
	CU_ASSERT_FATAL(rig_a >= 0);
}

/* The next packet to an address. @return its bytes from the IP header on; 0: there is none */
static size_t
on_the_link(uint8_t last, uint8_t *packet, size_t room)
{
	static uint8_t frame[16384];
	ssize_t len;

	while ((len = recv(link_fd, frame, sizeof(frame), 0)) > 34) {
		size_t left = RTE_MIN((size_t)len - 14, room);

		if (frame[33] != last || frame[23] != IPPROTO_UDP)
			continue;
		memcpy(packet, frame + 14, left);
		return left;
	}
	return 0;
}

static void
end(void)
{
	rig_close(rig_a);
	close(link_fd);
	CU_ASSERT_EQUAL(system("ip link del rig0"), 0);
	CU_ASSERT_TRUE(rte_mempool_full(rig_pool));
}

static struct rte_mbuf *
make_to(uint8_t last, uint32_t number, uint32_t size)
{
	const uint8_t addrs[8] = { 10, 9, 0, 1, 10, 9, 0, last };
	struct rte_mbuf *mbuf =
		rig_make(&(struct rig_frame){ .dport = RIG_A, .number = number, .size = size });

	uint8_t *ip;
	size_t len;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mbuf);
	ip = rte_pktmbuf_mtod_offset(mbuf, uint8_t *, 14);
	len = (size_t)rte_pktmbuf_data_len(mbuf) - 14 - RCD_ICRC_LEN;
	memcpy(ip + 12, addrs, sizeof(addrs));
	rcd_put_le32(ip + len, rcd_icrc(RCD_L3_IPV4, ip, len));
	return mbuf;
}

/* An IPv4 packet that comes to rig0, with right checksums of IP. */
static void
inject(const uint8_t *payload, uint16_t len, uint8_t protocol, uint8_t from)
{
	uint8_t frame[256] = { 0 };
	struct ifreq ifr = { .ifr_name = "rig0" };
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
		.sll_ifindex = (int)if_nametoindex("rig1") };
	struct rte_ipv4_hdr ip = { .version_ihl = 0x45,
		.total_length = htons((uint16_t)(sizeof(ip) + len)),
		.time_to_live = 64,
		.next_proto_id = protocol,
		.src_addr = htonl(0x0a090000u + from),
		.dst_addr = htonl(0x0a090001u) };

	CU_ASSERT_EQUAL(ioctl(link_fd, SIOCGIFHWADDR, &ifr), 0);
	memcpy(frame, ifr.ifr_hwaddr.sa_data, 6);
	memcpy(frame + 6, "\2\0\0\0\0\11\10", 8);
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(frame + 14, &ip, sizeof(ip));
	memcpy(frame + 34, payload, len);
	CU_ASSERT_EQUAL(
		sendto(link_fd, frame, (size_t)34 + len, 0, (struct sockaddr *)&to, sizeof(to)),
		34 + len);
}

/* Somebody says something, from a port of any peer's. */
static void
speak(uint8_t from)
{
	struct udphdr udp = {
		.source = htons(49999), .dest = htons(RIG_A), .len = htons(sizeof(udp))
	};
	struct rte_mbuf *mbuf;

	inject((const uint8_t *)&udp, sizeof(udp), IPPROTO_UDP, from);
	CU_ASSERT_EQUAL(rig_receive(rig_a, &mbuf, 1), 1);
	rte_pktmbuf_free(mbuf);
}

/* A router, or anybody, says what became of a packet of ours. */
static void
forge(uint8_t type, uint8_t code, uint16_t mtu, uint8_t about)
{
	uint8_t packet[36] = { type, code };
	struct rte_ipv4_hdr ip = { .version_ihl = 0x45,
		.total_length = htons(1060),
		.fragment_offset = htons(0x4000),
		.time_to_live = 60,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = htonl(0x0a090001u),
		.dst_addr = htonl(0x0a090000u + about) };
	struct udphdr udp = { .source = htons(RIG_A), .dest = htons(RIG_A), .len = htons(1040) };
	uint16_t sum;

	packet[6] = (uint8_t)(mtu >> 8);
	packet[7] = (uint8_t)mtu;
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(packet + 8, &ip, sizeof(ip));
	memcpy(packet + 28, &udp, sizeof(udp));
	sum = (uint16_t)~rte_raw_cksum(packet, sizeof(packet));
	memcpy(packet + 2, &sum, sizeof(sum));
	inject(packet, sizeof(packet), IPPROTO_ICMP, 77);
}

static uint64_t
sent(void)
{
	struct rte_eth_stats stats;

	CU_ASSERT_EQUAL(rte_eth_stats_get((uint16_t)rig_a, &stats), 0);
	return stats.opackets;
}

/* So many to one, all at once. @return how many the kernel took */
static uint64_t
send_to(uint8_t last, uint16_t count, uint32_t size)
{
	struct rte_mbuf *mbufs[256];
	uint64_t before = sent();

	for (uint16_t i = 0; i < count; i++)
		mbufs[i] = make_to(last, i, size);
	CU_ASSERT_TRUE(rig_send(rig_a, mbufs, count));
	return sent() - before;
}

/*
 * The kernel keeps what is for neighbours that do not answer, in a socket's room. One that is there
 * and was heard gets its packets; in which order, on a busy machine, is the kernel's matter.
 */
static void
dead_neighbours(void)
{
	enum {
		ROUNDS = 1000
	};
	uint64_t longest = 0;
	uint32_t seq = 0, got = 0;
	static uint8_t packet[2048];
	struct rte_eth_stats stats;

	begin(ORDINARY ",runs=all");
	speak(LIVE);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct rte_mbuf *mbufs[32];
		uint64_t tsc = rte_get_timer_cycles();

		for (int i = 0; i < 31; i++, seq++)
			mbufs[i] = make_to((uint8_t)(2 + seq % 10), seq, 4096);
		mbufs[31] = make_to(LIVE, round, 1024);
		CU_ASSERT_TRUE_FATAL(rig_send(rig_a, mbufs, 32));
		longest = RTE_MAX(longest, rte_get_timer_cycles() - tsc);
		while (on_the_link(LIVE, packet, sizeof(packet)) > 0)
			got++;
	}
	/* What the kernel has taken may still be on its way. */
	for (int i = 0; i < 20000 && got < ROUNDS; i++, usleep(1000))
		while (on_the_link(LIVE, packet, sizeof(packet)) > 0)
			got++;
	printf("# %u of %d, longest wait %lu us\n", got, ROUNDS,
		(unsigned long)(longest * 1000000 / rte_get_timer_hz()));
	/* Dead ones in a socket with it leave it next to nothing; a busy kernel may lose a few. */
	CU_ASSERT(got > ROUNDS / 2);
	CU_ASSERT_TRUE(rig_count(rig_a, "tx_udp_full") > 0);
	CU_ASSERT_EQUAL(rte_eth_stats_get((uint16_t)rig_a, &stats), 0);
	CU_ASSERT_EQUAL(stats.opackets + stats.oerrors, ROUNDS * 32);
	end();
}

/* The kernel cuts a run where a netdev can't, and numbers it: each ICRC is right for its number. */
static void
runs_on_the_link(void)
{
	static uint8_t packet[16384];
	uint32_t got = 0, right = 0;
	uint64_t ids = 0;
	size_t len;

	begin("iface=rig0,runs=all");
	CU_ASSERT_EQUAL(system("ip link set rig0 gso_max_segs 1"), 0);
	speak(LIVE);
	CU_ASSERT_EQUAL(send_to(LIVE, 40, 1024), 40);
	CU_ASSERT_TRUE(rig_count(rig_a, "tx_udp_runs") > 0);
	for (int i = 0; i < 20000 && got < 40; i++, usleep(1000)) {
		while ((len = on_the_link(LIVE, packet, sizeof(packet))) > 0) {
			ids |= UINT64_C(1) << packet[5];
			right += packet[4] == 0 &&
				rcd_get_le32(packet + len - RCD_ICRC_LEN) ==
					rcd_icrc(RCD_L3_IPV4, packet, len - RCD_ICRC_LEN);
			got++;
		}
	}
	/* As above: a few may be lost between the two ends. Each has a number of its own. */
	CU_ASSERT(got >= 20);
	CU_ASSERT_EQUAL(ids >> 40, 0);
	CU_ASSERT_EQUAL((uint32_t)__builtin_popcountll(ids), got);
	CU_ASSERT_EQUAL(right, got);
	end();
}

/* Who was heard, and is gone: what is for it waits, but not for ever, and others after it go. */
static void
heard_and_gone(void)
{
	begin("iface=rig0,buffer=5000");
	speak(3);
	speak(LIVE);
	CU_ASSERT_TRUE(send_to(3, 100, 4096) < 100);
	CU_ASSERT_EQUAL(send_to(3, 100, 4096), 0);
	CU_ASSERT_EQUAL(system("ip neigh replace 10.9.0.3 lladdr 02:00:00:00:00:09 dev rig0"), 0);
	CU_ASSERT_EQUAL(send_to(LIVE, 50, 4096), 50);
	CU_ASSERT_EQUAL(send_to(3, 50, 4096), 50);
	end();
}

/* What is too long is not this netdev's to send; what the kernel says of it is read. */
static void
too_long_for_ever(void)
{
	begin(ORDINARY);
	CU_ASSERT_EQUAL(system("ip link set rig0 mtu 1500"), 0);
	speak(LIVE);
	for (int i = 0; i < 40; i++)
		CU_ASSERT_EQUAL(send_to(i % 2 == 0 ? LIVE : 9, 100, 4096), 0);
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_too_long"), 4000);
	CU_ASSERT_EQUAL(rte_eth_rx_queue_count((uint16_t)rig_a, 0), 0);
	for (int i = 0; i < 100; i++)
		speak(LIVE);
	CU_ASSERT_EQUAL(send_to(LIVE, 100, 1024), 100);
	end();
}

/* Nobody who answers keeps others awake or deaf, or takes a run of theirs. */
static void
floods_of_icmp(void)
{
	begin(ORDINARY ",runs=all");
	speak(LIVE);
	for (int idle = 0; idle < 2; idle++) {
		for (int i = 0; i < 1200; i++)
			forge(ICMP_DEST_UNREACH, ICMP_PORT_UNREACH, 0, (uint8_t)(90 + i % 3));
		if (idle == 1) {
			CU_ASSERT_EQUAL(rte_eth_rx_queue_count((uint16_t)rig_a, 0), 0);
			CU_ASSERT_EQUAL(rte_eth_rx_queue_count((uint16_t)rig_a, 0), 0);
		}
		CU_ASSERT_EQUAL(send_to(LIVE, 40, 1024), 40);
		for (int i = 0; i < 20; i++)
			speak(LIVE);
	}
	CU_ASSERT_TRUE(rig_count(rig_a, "tx_udp_icmp") + rig_count(rig_a, "rx_udp_icmp") > 0);
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_refused"), 0);
	/* One before each burst: it is not told of the burst. */
	for (int i = 0; i < 20; i++) {
		forge(ICMP_DEST_UNREACH, ICMP_PORT_UNREACH, 0, 99);
		CU_ASSERT_EQUAL(send_to(LIVE, 8, 1024), 8);
	}
	end();
}

/* A path that somebody says is narrow. */
static void
narrow_paths(void)
{
	begin(ORDINARY ",runs=all");
	speak(LIVE);
	for (int i = 0; i < 20; i++) {
		forge(ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, 576, i % 2 == 0 ? 99 : LIVE);
		CU_ASSERT_EQUAL(send_to(LIVE, 32, 4096), 32);
	}
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_too_long"), 0);
	end();
}

/* What a queueing discipline or a filter drops is lost on the way: nobody waits for it. */
static void
lost_on_the_way(void)
{
	begin(ORDINARY ",runs=all");
	speak(LIVE);
	if (system("tc qdisc add dev rig0 root bfifo limit 1") != 0) {
		rcd_tap_skip("no queueing disciplines");
	} else {
		CU_ASSERT_EQUAL(send_to(LIVE, 200, 1024), 0);
		CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_refused"), 200);
		CU_ASSERT_EQUAL(system("tc qdisc del dev rig0 root"), 0);
		CU_ASSERT_EQUAL(send_to(LIVE, 200, 1024), 200);
	}
	end();
}

/* Runs that are refused for another reason than that they are runs. */
static void
refused_runs(void)
{
	struct rte_mbuf *mbufs[8];
	uint64_t runs;

	if (rig_families < 2) {
		rcd_tap_skip("no IPv6");
		return;
	}
	begin(ORDINARY ",runs=all");
	speak(LIVE);
	for (uint32_t i = 0; i < 8; i++) {
		mbufs[i] = rig_make(&(struct rig_frame){ .v6 = true, .number = i, .size = 64 });
		rte_pktmbuf_mtod(mbufs[i], uint8_t *)[22] = 0xfd;
	}
	CU_ASSERT_TRUE(rig_send(rig_a, mbufs, 8));
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_refused"), 8);
	runs = rig_count(rig_a, "tx_udp_runs");
	CU_ASSERT_EQUAL(send_to(LIVE, 32, 1024), 32);
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_runs"), runs + 1);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(dead_neighbours),
		RCD_TEST(runs_on_the_link),
		RCD_TEST(heard_and_gone),
		RCD_TEST(too_long_for_ever),
		RCD_TEST(floods_of_icmp),
		RCD_TEST(narrow_paths),
		RCD_TEST(lost_on_the_way),
		RCD_TEST(refused_runs),
	};
	const char *reason = rig_begin();

	if (reason == NULL && system("ip link add rig0 type veth peer name rig1") != 0)
		reason = "no veth";
	if (reason != NULL) {
		printf("1..0 # SKIP %s\n", reason);
		return 0;
	}
	if (system("ip link del rig0") != 0)
		return 1;
	return rcd_tap_run("udp_hostile", tests, RTE_DIM(tests));
}
