/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: net_udp drops and counts what it can't carry, goes on with the next, waits where the kernel
 * has no room, and takes any argument or datagram. Method: frames and sockets of strangers who send
 * what no peer would.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "udp_rig.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

/* A frame that is none of UDP's, in some way. */
static struct rte_mbuf *
make_bad(int how, uint32_t number)
{
	struct rte_mbuf *mbuf =
		rig_make(&(struct rig_frame){ .v6 = how >= 8, .number = number, .size = 256 });
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);

	switch (how) {
	case 0: /* ARP */
		frame[13] = 6;
		break;
	case 1: /* a fragment */
		frame[20] = 0x20;
		break;
	case 2:
		frame[21] = 1;
		break;
	case 3: /* options */
		frame[14] = 0x46;
		break;
	case 4: /* TCP */
		frame[23] = 6;
		break;
	case 5: /* longer than it is */
		frame[16] += 4;
		break;
	case 6: /* UDP and IP differ */
		frame[39] ^= 4;
		break;
	case 7: /* cut within its headers */
		rte_pktmbuf_trim(mbuf, (uint16_t)(rte_pktmbuf_data_len(mbuf) - 41));
		break;
	case 8: /* no version of IP */
		frame[14] = 0x40;
		break;
	case 9: /* an extension header */
		frame[20] = 44;
		break;
	case 10:
		rte_pktmbuf_trim(mbuf, (uint16_t)(rte_pktmbuf_data_len(mbuf) - 13));
		break;
	}
	return mbuf;
}

static void
what_is_no_udp_is_dropped(void)
{
	struct rte_mbuf *mbufs[22], *got[22];

	rig_open_two(",runs=all");
	for (uint32_t i = 0; i < 11; i++) {
		mbufs[2 * i] = rig_make(&(struct rig_frame){ .number = i, .size = 256 });
		mbufs[2 * i + 1] = make_bad((int)i, i);
	}
	CU_ASSERT_TRUE(rig_send(rig_a, mbufs, 22));
	CU_ASSERT_EQUAL(rig_receive(rig_b, got, 11), 11);
	for (uint32_t i = 0; i < 11; i++)
		CU_ASSERT_TRUE(rig_is(got[i], &(struct rig_frame){ .number = i, .size = 256 }));
	rte_pktmbuf_free_bulk(got, 11);
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_invalid"), 11);
	rig_close_two();
}

static void
too_long_for_the_path(void)
{
	rig_mtu(1500);
	rig_open_two(",runs=all");
	for (int v6 = 0; v6 < rig_families; v6++) {
		struct rig_frame fits = { .v6 = v6, .size = 1024 };
		struct rte_mbuf *mbufs[8];

		for (int i = 0; i < 8; i++)
			mbufs[i] = rig_make(&(struct rig_frame){ .v6 = v6, .size = 2048 });
		CU_ASSERT_TRUE(rig_send(rig_a, mbufs, 8));
		CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_too_long"), v6 != 0 ? 16 : 8);
		CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, fits, 40));
	}
	rig_close_two();
	rig_mtu(65536);
}

/* An answer to one datagram is not the end of the next. */
static void
icmp_is_counted(void)
{
	struct rte_mbuf *mbuf;

	rig_open_two("");
	for (int i = 0; i < 5; i++) {
		mbuf = rig_make(&(struct rig_frame){ .dport = 4999, .size = 64 });
		CU_ASSERT_TRUE(rig_send(rig_a, &mbuf, 1));
		CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 64 }, 1));
		CU_ASSERT_TRUE(rig_pass(
			rig_b, rig_a, (struct rig_frame){ .dport = RIG_A, .size = 64 }, 1));
	}
	CU_ASSERT_TRUE(rig_count(rig_a, "tx_udp_icmp") + rig_count(rig_a, "rx_udp_icmp") > 0);
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_refused"), 0);
	rig_close_two();
}

/* Of an address that is not ours, or to where no way leads. */
static void
what_the_kernel_refuses(void)
{
	struct rte_mbuf *mbufs[4];

	rig_open_two(",runs=all");
	for (int i = 0; i < 4; i++) {
		mbufs[i] = rig_make(&(struct rig_frame){ .size = 64 });
		rte_pktmbuf_mtod(mbufs[i], uint8_t *)[26] = 9;
	}
	CU_ASSERT_TRUE(rig_send(rig_a, mbufs, 4));
	CU_ASSERT_EQUAL(rig_count(rig_a, "tx_udp_refused"), 4);
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .v6 = true, .size = 64 }, 4));
	rig_close_two();
}

/* Of a run, as a stranger sends it. */
static void
say_run(int fd, uint16_t port, void *bytes, size_t len, uint16_t size)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(size))] = { 0 };
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct iovec iov = { bytes, len };
	struct msghdr msg = { .msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = IPPROTO_UDP;
	cmsg->cmsg_type = UDP_SEGMENT;
	cmsg->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(cmsg), &size, sizeof(size));
	CU_ASSERT_EQUAL(sendmsg(fd, &msg, 0), (ssize_t)len);
}

static void
what_strangers_send(void)
{
	static const uint8_t no_operations[4] = { 1, 1, 1, 0 };
	static uint8_t bytes[65000];
	struct rte_mbuf *mbufs[512];
	int fd = rig_socket(0), off = IP_PMTUDISC_DONT;
	uint16_t got;

	rig_open_two("");
	/* Nothing; one byte; runs of one byte and of all sizes. */
	CU_ASSERT_TRUE(rig_say(fd, RIG_B, bytes, 0));
	CU_ASSERT_TRUE(rig_say(fd, RIG_B, bytes, 1));
	say_run(fd, RIG_B, bytes, 64, 1);
	say_run(fd, RIG_B, bytes, 63, 2);
	say_run(fd, RIG_B, bytes, 60000, 1000);
	got = rig_receive(rig_b, mbufs, 1 + 1 + 64 + 32 + 60);
	CU_ASSERT_EQUAL(got, 158);
	for (uint16_t i = 0; i < got; i++)
		CU_ASSERT_EQUAL(rte_pktmbuf_data_len(mbufs[i]),
			42 +
				(i < 2                    ? i
						: i < 66  ? 1
						: i < 97  ? 2
						: i == 97 ? 1
							  : 1000));
	rte_pktmbuf_free_bulk(mbufs, got);
	/* Longer than a buffer, alone and in a run. */
	CU_ASSERT_TRUE(rig_say(fd, RIG_B, bytes, 60000));
	say_run(fd, RIG_B, bytes, 60000, 5000);
	/* With options; in fragments. */
	setsockopt(fd, IPPROTO_IP, IP_OPTIONS, no_operations, sizeof(no_operations));
	CU_ASSERT_TRUE(rig_say(fd, RIG_B, bytes, 100));
	setsockopt(fd, IPPROTO_IP, IP_OPTIONS, NULL, 0);
	rig_mtu(1500);
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &off, sizeof(off));
	CU_ASSERT_TRUE(rig_say(fd, RIG_B, bytes, 4000));
	rig_mtu(65536);
	/* And then one of ours. */
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 64 }, 1));
	CU_ASSERT_EQUAL(rig_count(rig_b, "rx_udp_too_long"), 1 + 12);
	CU_ASSERT_EQUAL(rig_count(rig_b, "rx_udp_options"), 1);
	CU_ASSERT_EQUAL(rig_count(rig_b, "rx_udp_fragments"), 1);
	close(fd);
	rig_close_two();
}

/* Where the next datagram of a stream of bytes begins, and how long it is. */
struct stream {
	uint32_t at;
	uint16_t lens[64];
	uint32_t first, count;
};

static uint8_t
stream_byte(uint32_t at)
{
	return (uint8_t)(at * 2654435761u >> 11);
}

/* A run of any size and length, or a datagram alone; the kernel takes 64 of them in one. */
static void
say_some(int fd, struct stream *stream, uint32_t said)
{
	static uint8_t bytes[65000];
	uint16_t size = (uint16_t)(1 + (uint32_t)rand() % (rand() % 2 == 0 ? 100 : 4300));
	uint32_t most = RTE_MIN(64u * size, (uint32_t)sizeof(bytes));
	uint32_t len = 1 + (uint32_t)rand() % most;

	for (uint32_t i = 0; i < len; i++)
		bytes[i] = stream_byte(said + i);
	for (uint32_t i = 0; i < len; i += size)
		stream->lens[stream->count++] = (uint16_t)RTE_MIN(size, len - i);
	say_run(fd, RIG_B, bytes, len, size);
}

/* Whatever a peer puts into a call, and however long: each datagram is what was sent. */
static void
mixed_runs(void)
{
	static struct stream stream;
	int fd = rig_socket(0);
	const char *again = getenv("RIG_SEED");
	unsigned int seed =
		again != NULL ? (unsigned int)strtoul(again, NULL, 10) : (unsigned int)time(NULL);
	uint32_t wrong = 0;

	printf("# seed %u\n", seed);
	srand(seed);
	rig_open_two("");
	for (int i = 0; i < 3000 && wrong == 0; i++) {
		struct rte_mbuf *mbufs[64];
		uint16_t got;

		stream.first = stream.count = 0;
		say_some(fd, &stream, stream.at);
		while (stream.first < stream.count) {
			got = rig_receive(rig_b, mbufs, RTE_MIN(64u, stream.count - stream.first));
			CU_ASSERT_TRUE_FATAL(got > 0);
			for (uint16_t k = 0; k < got; k++) {
				const uint8_t *data = rte_pktmbuf_mtod(mbufs[k], uint8_t *) + 42;
				uint16_t len = stream.lens[stream.first++];

				wrong += rte_pktmbuf_data_len(mbufs[k]) != 42 + len;
				for (uint32_t byte = 0; byte < len; byte++)
					wrong += data[byte] != stream_byte(stream.at++);
			}
			rte_pktmbuf_free_bulk(mbufs, got);
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
	close(fd);
	rig_close_two();
}

/* Without buffers a run is lost in part, and counted; the next one comes. */
static void
no_buffers(void)
{
	static struct rte_mbuf *held[4096];
	struct rte_eth_stats stats;
	struct rte_mbuf *mbufs[32];
	uint32_t count = 0;

	rig_open_two(",runs=all");
	for (uint32_t i = 0; i < 32; i++)
		mbufs[i] = rig_make(&(struct rig_frame){ .number = i, .size = 1024 });
	while ((held[count] = rte_pktmbuf_alloc(rig_pool)) != NULL)
		count++;
	/* What they were in is free again, and taken. */
	CU_ASSERT_TRUE(rig_send(rig_a, mbufs, 32));
	while (count < RTE_DIM(held) && (held[count] = rte_pktmbuf_alloc(rig_pool)) != NULL)
		count++;
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(rte_eth_rx_burst((uint16_t)rig_b, 0, mbufs, 32), 0);
	CU_ASSERT_EQUAL(rte_eth_stats_get((uint16_t)rig_b, &stats), 0);
	CU_ASSERT_EQUAL(stats.rx_nombuf, 32);
	rte_pktmbuf_free_bulk(held, count);
	CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 1024 }, 32));
	rig_close_two();
}

/* A port is one device's, of several queues as of one; others' sockets are in the way, too. */
static void
ports_have_one_owner(void)
{
	static const uint16_t queues[] = { 1, 3 };
	int fd;

	for (size_t i = 0; i < RTE_DIM(queues); i++) {
		for (size_t k = 0; k < RTE_DIM(queues); k++) {
			rig_a = rig_open("", queues[i]);
			CU_ASSERT_TRUE(rig_a >= 0);
			CU_ASSERT_EQUAL(rig_open("", queues[k]), -EADDRINUSE);
			rig_close(rig_a);
		}
		fd = rig_socket(RIG_A);
		CU_ASSERT_EQUAL(rig_open("", queues[i]), -EADDRINUSE);
		close(fd);
	}
	CU_ASSERT_TRUE(rte_mempool_full(rig_pool));
}

/* Descriptors of the process, which a port duplicates, and closes its own. */
static int
descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Sockets of somebody else carry packets, over a stop, and keep the port for as long as it is. */
static void
given_sockets(void)
{
	static const int families[] = { AF_INET, AF_INET6, AF_INET, AF_INET6 };
	char text[128] = "sockets=";
	int fds[8], before;

	for (size_t i = 0; i < RTE_DIM(fds); i++) {
		fds[i] = socket(rig_families > 1 ? families[i % 4] : AF_INET, SOCK_DGRAM, 0);
		CU_ASSERT_TRUE_FATAL(fds[i] >= 0);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i > 0 ? "+" : "",
			fds[i]);
	}
	before = descriptors();
	CU_ASSERT_TRUE(rig_open(text, 3) < 0);
	rig_a = rig_open(text, 2);
	rig_b = rig_open("port=4792", 1);
	CU_ASSERT_TRUE_FATAL(rig_a >= 0 && rig_b >= 0);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_TRUE(rig_pass(rig_a, rig_b, (struct rig_frame){ .size = 1024 }, 32));
		CU_ASSERT_EQUAL(rte_eth_dev_stop((uint16_t)rig_a), 0);
		CU_ASSERT_EQUAL(rig_open("", 1), -EADDRINUSE);
		CU_ASSERT_EQUAL(rte_eth_dev_start((uint16_t)rig_a), 0);
	}
	rig_close_two();
	CU_ASSERT_EQUAL(descriptors(), before);
	for (size_t i = 0; i < RTE_DIM(fds); i++)
		close(fds[i]);
	/* With them goes the port. */
	rig_a = rig_open("", 1);
	CU_ASSERT_TRUE_FATAL(rig_a >= 0);
	rig_close(rig_a);
}

static void
arguments(void)
{
	static const char *const bad[] = { "port=0", "port=65536", "port=x", "runs=some", "gro=2",
		"icrc=", "buffer=-1", "iface=", "iface=a_name_of_16_char", "iface=none0", "what=1",
		"buffer=9999999999", "sockets=", "sockets=0+1+2", "sockets=0+1+2+",
		"sockets=0+1+2+x", "sockets=-1+0+1+2", "sockets=0 1 2 3", "sockets=900+901+902+903",
		"sockets=0+0+0+0", "sockets=0+1+2+99999999999" };

	for (size_t i = 0; i < RTE_DIM(bad); i++)
		CU_ASSERT_TRUE(rig_open(bad[i], 1) < 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(what_is_no_udp_is_dropped),
		RCD_TEST(too_long_for_the_path),
		RCD_TEST(icmp_is_counted),
		RCD_TEST(what_the_kernel_refuses),
		RCD_TEST(what_strangers_send),
		RCD_TEST(mixed_runs),
		RCD_TEST(no_buffers),
		RCD_TEST(ports_have_one_owner),
		RCD_TEST(given_sockets),
		RCD_TEST(arguments),
	};
	const char *reason = rig_begin();

	if (reason != NULL) {
		printf("1..0 # SKIP %s\n", reason);
		return 0;
	}
	return rcd_tap_run("udp_edges", tests, RTE_DIM(tests));
}
