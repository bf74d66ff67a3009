/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: of a burst that a program feeds the engine takes what is its, and nothing else; all the
 * rest stays, in order, untouched; what lies in pieces, or is somebody else's too, is taken all the
 * same; a device that goes takes nothing any more. Method: an engine that the test polls itself,
 * with one fed device; frames made of a table.
 */
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "rcd_arp.h"
#include "rcd_bytes.h"
#include "rcd_clock.h"
#include "rcd_counter.h"
#include "rcd_dev_conf.h"
#include "rcd_engine.h"
#include "rcd_eth.h"
#include "rcd_inline.h"
#include "rcd_ip.h"
#include "rcd_pkt.h"
#include "rcd_poll.h"
#include "rcd_tap.h"

#define BUFFERS   4095
#define FRAME_LEN 128
#define BURST     64

static struct rte_mempool *pool; /* the program's own */
static struct rcd_engine *engine;
static struct rcd_lcore *lcore;
static struct rcd_inline *dev;

static const uint8_t our_mac[] = { 2, 0, 0, 0, 0, 1 }, other_mac[] = { 2, 0, 0, 0, 0, 9 };
static const uint8_t all_macs[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
static const uint8_t group_mac[] = { 1, 0, 0x5e, 1, 2, 3 };
static const uint8_t ip_ours[] = { 10, 9, 0, 1 }, ip_other[] = { 10, 9, 0, 2 };
static const uint8_t ip_vlan[] = { 10, 9, 5, 1 }, ip_group[] = { 239, 1, 2, 3 };
static const char *const ip6_ours = "\xfd\x09\0\0\0\0\0\0\0\0\0\0\0\0\0\1";
static const char *const ip6_other = "\xfd\x09\0\0\0\0\0\0\0\0\0\0\0\0\0\2";
static const char *const ip6_nodes = "\xff\2\0\0\0\0\0\0\0\0\0\0\0\0\0\1";

/** What a frame is to be. */
struct look {
	const char *name;
	const uint8_t *mac;
	uint16_t vlan;      /**< 0: no tag */
	bool stripped;      /**< the tag is beside the frame */
	uint16_t type;      /**< EtherType */
	const void *dst;    /**< address of IP, or target of ARP */
	uint8_t protocol;   /**< of IP; of ARP whether it is of the target itself */
	uint16_t word;      /**< port of UDP; type of ICMP and ICMPv6 */
	const void *target; /**< of neighbour discovery */
	uint16_t fragment;
	uint8_t options; /**< words of IPv4 */
	bool taken;
	bool within; /**< another VLAN, whose tag is beside the frame, too */
};

#define ARP  RCD_ETHERTYPE_ARP
#define IP4  RCD_ETHERTYPE_IPV4
#define IP6  RCD_ETHERTYPE_IPV6
#define UDP  RCD_IP_PROTO_UDP
#define ICMP RCD_IP_PROTO_ICMP
#define ND   RCD_IP_PROTO_ICMPV6
#define TCP  6

static const struct look looks[] = {
	{ "roce", our_mac, 0, false, IP4, ip_ours, UDP, 4791, NULL, 0, 0, true },
	{ "roce6", our_mac, 0, false, IP6, NULL, UDP, 4791, NULL, 0, 0, true },
	{ "roce_options", our_mac, 0, false, IP4, ip_ours, UDP, 4791, NULL, 0, 2, true },
	{ "roce_vlan", our_mac, 5, false, IP4, ip_vlan, UDP, 4791, NULL, 0, 0, true },
	{ "roce_vlan_beside", our_mac, 5, true, IP4, ip_vlan, UDP, 4791, NULL, 0, 0, true },
	{ "roce_vlan_within", our_mac, 5, true, IP4, ip_vlan, UDP, 4791, NULL, 0, 0, false, true },
	{ "roce_other_vlan", our_mac, 6, false, IP4, ip_vlan, UDP, 4791, NULL, 0, 0, false },
	{ "roce_no_vlan", our_mac, 0, false, IP4, ip_vlan, UDP, 4791, NULL, 0, 0, false },
	{ "roce_tag_of_none", our_mac, 5, false, IP4, ip_ours, UDP, 4791, NULL, 0, 0, false },
	{ "roce_other_address", our_mac, 0, false, IP4, ip_other, UDP, 4791, NULL, 0, 0, false },
	{ "roce6_other_address", our_mac, 0, false, IP6, "", UDP, 4791, NULL, 0, 0, false },
	{ "roce_other_mac", other_mac, 0, false, IP4, ip_ours, UDP, 4791, NULL, 0, 0, false },
	{ "roce_group", group_mac, 0, false, IP4, ip_group, UDP, 4791, NULL, 0, 0, false },
	{ "other_port", our_mac, 0, false, IP4, ip_ours, UDP, 4792, NULL, 0, 0, false },
	{ "other_port6", our_mac, 0, false, IP6, NULL, UDP, 53, NULL, 0, 0, false },
	{ "fragment_first", our_mac, 0, false, IP4, ip_ours, UDP, 4791, NULL, 0x2000, 0, false },
	{ "fragment_last", our_mac, 0, false, IP4, ip_ours, UDP, 4791, NULL, 0x0007, 0, false },
	{ "tcp", our_mac, 0, false, IP4, ip_ours, TCP, 4791, NULL, 0, 0, false },
	{ "tcp_options", our_mac, 0, false, IP4, ip_ours, TCP, 4791, NULL, 0, 3, false },
	{ "tcp6", our_mac, 0, false, IP6, NULL, TCP, 4791, NULL, 0, 0, false },
	{ "icmp", our_mac, 0, false, IP4, ip_ours, ICMP, 8, NULL, 0, 0, true },
	{ "icmp_other", our_mac, 0, false, IP4, ip_other, ICMP, 8, NULL, 0, 0, false },
	{ "igmp", group_mac, 0, false, IP4, ip_group, 2, 0x11, NULL, 0, 0, false },
	{ "arp", all_macs, 0, false, ARP, ip_ours, 0, 0, NULL, 0, 0, true },
	{ "arp_vlan", all_macs, 5, false, ARP, ip_vlan, 0, 0, NULL, 0, 0, true },
	{ "arp_other", all_macs, 0, false, ARP, ip_other, 0, 0, NULL, 0, 0, false },
	{ "arp_of_all", all_macs, 0, false, ARP, ip_other, 1, 0, NULL, 0, 0, false },
	{ "solicit", all_macs, 0, false, IP6, NULL, ND, 135, NULL, 0, 0, true },
	{ "solicit_other", all_macs, 0, false, IP6, NULL, ND, 135, "", 0, 0, false },
	{ "advertise", our_mac, 0, false, IP6, NULL, ND, 136, "", 0, 0, true },
	{ "advertise_other", our_mac, 0, false, IP6, "", ND, 136, "", 0, 0, false },
	{ "echo6", our_mac, 0, false, IP6, NULL, ND, 128, "", 0, 0, true },
	{ "hops6", group_mac, 0, false, IP6, "g", 0, 0, "", 0, 0, false },
	{ "other_type", our_mac, 0, false, 0x88cc, ip_ours, 0, 0, NULL, 0, 0, false },
};

static const uint8_t *
address6(const char *what)
{
	return (const uint8_t *)(what == NULL ? ip6_ours : what[0] == 'g' ? ip6_nodes : ip6_other);
}

/* Behind the Ethernet header. @return bytes */
static size_t
put_ip(uint8_t *at, const struct look *look)
{
	size_t hdr_len = RCD_IPV4_LEN + look->options * 4u;

	if (look->type == RCD_ETHERTYPE_IPV6) {
		at[0] = 0x60;
		rcd_put_be16(at + 4, 40);
		at[6] = look->protocol;
		at[7] = 255;
		memcpy(at + 8, ip6_other, 16);
		memcpy(at + 24, address6(look->dst), 16);
		return RCD_IPV6_LEN;
	}
	at[0] = (uint8_t)(0x40 | hdr_len / 4);
	rcd_put_be16(at + 2, (uint16_t)(hdr_len + 40));
	rcd_put_be16(at + 6, look->fragment);
	at[8] = 64;
	at[9] = look->protocol;
	memcpy(at + 12, ip_other, 4);
	memcpy(at + 16, look->dst, 4);
	rcd_put_be16(at + 10, rcd_csum_fold(rcd_csum_add(0, at, hdr_len)));
	return hdr_len;
}

static void
put_arp(uint8_t *at, const struct look *look)
{
	struct rcd_arp arp = { .op = RCD_ARP_REQUEST };

	memcpy(arp.sender_mac, other_mac, RCD_MAC_LEN);
	memcpy(arp.sender_ip, ip_other, 4);
	if (look->protocol != 0)
		memcpy(arp.sender_ip, look->dst, 4);
	memcpy(arp.target_ip, look->dst, 4);
	if (look->protocol == 0 && memcmp(look->dst, ip_other, 4) == 0)
		arp.target_ip[3] = 77;
	rcd_arp_build(at, &arp);
}

static struct rte_mbuf *
make(const struct look *look, uint32_t number)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	struct rcd_eth eth = { .tagged = look->vlan != 0 && !look->stripped,
		.vlan_tci = look->stripped ? 0 : look->vlan,
		.ethertype = look->type };
	uint8_t *frame, *at;

	/* Whatever the headroom. */
	mbuf->data_off = (uint16_t)(number % 7 * 8);
	mbuf->data_len = FRAME_LEN;
	mbuf->pkt_len = FRAME_LEN;
	frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	memset(frame, 0, FRAME_LEN);
	memcpy(eth.dst, look->mac, RCD_MAC_LEN);
	memcpy(eth.src, other_mac, RCD_MAC_LEN);
	rcd_eth_build(frame, &eth);
	at = frame + rcd_eth_len(&eth);
	if (look->type == RCD_ETHERTYPE_ARP) {
		put_arp(at, look);
	} else if (look->type == RCD_ETHERTYPE_IPV4 || look->type == RCD_ETHERTYPE_IPV6) {
		at += put_ip(at, look);
		if (look->protocol == UDP || look->protocol == TCP)
			rcd_put_be16(at + 2, look->word);
		else
			at[0] = (uint8_t)look->word;
		if (look->protocol == ND)
			memcpy(at + 8, address6(look->target), 16);
	}
	if (look->stripped) {
		mbuf->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
		mbuf->vlan_tci = look->vlan;
		if (look->within)
			mbuf->ol_flags |= RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED;
	}
	rcd_put_be32(frame + FRAME_LEN - 4, number);
	return mbuf;
}

static uint32_t
number_of(const struct rte_mbuf *mbuf)
{
	uint8_t copy[4];

	return rcd_get_be32(
		rte_pktmbuf_read(mbuf, rte_pktmbuf_pkt_len(mbuf) - 4, sizeof(copy), copy));
}

static void
poll_all(void)
{
	struct rte_mbuf *mbufs[BURST];

	for (int i = 0; i < 100; i++) {
		rcd_lcore_poll(lcore, rcd_clock_ns(), 32);
		rcd_engine_step(engine, 0);
	}
	for (uint16_t count; (count = rcd_inline_tx(dev, lcore, mbufs, BURST)) > 0;)
		rte_pktmbuf_free_bulk(mbufs, count);
}

/* What the engine was given has come back by now; what we have left is in hand. */
static void
all_back(uint32_t in_hand)
{
	poll_all();
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS - in_hand);
}

static uint64_t
count_of(enum rcd_counter counter)
{
	return rcd_engine_dev_count(engine, "fed", counter);
}

/* Each kind by itself, and told of by rcd_inline_is_ours() alike. */
static void
each_kind(void)
{
	for (size_t i = 0; i < RTE_DIM(looks); i++) {
		struct rte_mbuf *mbuf = make(&looks[i], (uint32_t)i);
		bool ours = rcd_inline_is_ours(dev, lcore, mbuf);
		uint16_t left = rcd_inline_rx(dev, lcore, &mbuf, 1);

		if (left != !looks[i].taken || ours != looks[i].taken)
			fprintf(stderr, "# %s: left %u, ours %d\n", looks[i].name, left, ours);
		CU_ASSERT_EQUAL(left, !looks[i].taken);
		CU_ASSERT_EQUAL(ours, looks[i].taken);
		if (left == 1)
			rte_pktmbuf_free(mbuf);
	}
	all_back(0);
}

/* A burst of all, over and over, from every place: what is left is what is not taken, in order. */
static void
order_is_kept(void)
{
	struct rte_mbuf *mbufs[BURST];
	uint32_t number = 0, wrong = 0;

	for (int round = 0; round < 300; round++) {
		uint32_t expected[BURST], kept = 0;
		uint16_t left;

		for (uint32_t i = 0; i < BURST; i++) {
			const struct look *look = &looks[number % RTE_DIM(looks)];

			mbufs[i] = make(look, number);
			if (!look->taken)
				expected[kept++] = number;
			number++;
		}
		left = rcd_inline_rx(dev, lcore, mbufs, BURST);
		CU_ASSERT_EQUAL_FATAL(left, kept);
		for (uint32_t i = 0; i < left; i++)
			wrong += number_of(mbufs[i]) != expected[i];
		rte_pktmbuf_free_bulk(mbufs, left);
		poll_all();
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_DROP_FED), 0);
	all_back(0);
}

/* In pieces of every length: the headers too. */
static void
pieces(void)
{
	for (uint16_t len = 1; len < FRAME_LEN; len++) {
		for (size_t i = 0; i < RTE_DIM(looks); i++) {
			struct rte_mbuf *whole = make(&looks[i], 0);
			struct rte_mbuf *first = NULL;
			uint16_t left;

			for (uint16_t at = 0; at < FRAME_LEN; at += len) {
				uint16_t piece = RTE_MIN(len, FRAME_LEN - at);
				struct rte_mbuf *next = rte_pktmbuf_alloc(pool);

				memcpy(rte_pktmbuf_append(next, piece),
					rte_pktmbuf_mtod_offset(whole, void *, at), piece);
				if (first == NULL)
					first = next;
				else
					rte_pktmbuf_chain(first, next);
			}
			first->ol_flags = whole->ol_flags;
			first->vlan_tci = whole->vlan_tci;
			rte_pktmbuf_free(whole);
			left = rcd_inline_rx(dev, lcore, &first, 1);
			CU_ASSERT_EQUAL(left, !looks[i].taken);
			if (left == 1)
				rte_pktmbuf_free(first);
		}
		poll_all();
	}
	all_back(0);
}

/* Frames that end anywhere. */
static void
cut_short(void)
{
	for (uint16_t len = 0; len < FRAME_LEN; len++) {
		for (size_t i = 0; i < RTE_DIM(looks); i++) {
			struct rte_mbuf *mbuf = make(&looks[i], 0);

			rte_pktmbuf_trim(mbuf, FRAME_LEN - len);
			if (rcd_inline_rx(dev, lcore, &mbuf, 1) == 1)
				rte_pktmbuf_free(mbuf);
		}
		poll_all();
	}
	all_back(0);
}

/* A buffer that the program keeps is not written to, nor freed under it. */
static void
kept_by_the_program(void)
{
	struct rte_mbuf *mbuf = make(&looks[0], 7), *kept = mbuf, *clone;
	uint8_t before[FRAME_LEN];

	memcpy(before, rte_pktmbuf_mtod(mbuf, void *), FRAME_LEN);
	mbuf->hash.usr = 77;
	rte_mbuf_refcnt_update(mbuf, 1);
	CU_ASSERT_EQUAL(rcd_inline_rx(dev, lcore, &mbuf, 1), 0);
	poll_all();
	CU_ASSERT_EQUAL(rte_mbuf_refcnt_read(kept), 1);
	CU_ASSERT_EQUAL(kept->hash.usr, 77);
	CU_ASSERT_EQUAL(memcmp(before, rte_pktmbuf_mtod(kept, void *), FRAME_LEN), 0);
	clone = rte_pktmbuf_clone(kept, pool);
	CU_ASSERT_PTR_NOT_NULL_FATAL(clone);
	CU_ASSERT_EQUAL(rte_mbuf_refcnt_read(kept), 2);
	CU_ASSERT_EQUAL(rcd_inline_rx(dev, lcore, &clone, 1), 0);
	/* The engine has a copy already. */
	CU_ASSERT_EQUAL(rte_mbuf_refcnt_read(kept), 1);
	poll_all();
	CU_ASSERT_EQUAL(memcmp(before, rte_pktmbuf_mtod(kept, void *), FRAME_LEN), 0);
	rte_pktmbuf_free(kept);
	all_back(0);
}

/* More than the lcore takes until it has its round: the rest is dropped, and counted. */
static void
too_many(void)
{
	uint64_t before = count_of(RCD_COUNTER_RX_DROP_FED);
	uint64_t packets = count_of(RCD_COUNTER_RX_PACKETS);

	for (uint32_t i = 0; i < RCD_INLINE_RING + 100; i++) {
		struct rte_mbuf *mbuf = make(&looks[0], i);

		CU_ASSERT_EQUAL(rcd_inline_rx(dev, lcore, &mbuf, 1), 0);
	}
	CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_DROP_FED), before + 100);
	all_back(0);
	CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_PACKETS), packets + RCD_INLINE_RING);
}

/* A program that sorts by itself: all that is the engine's is taken, and reaches it. */
static void
given(void)
{
	uint64_t packets = count_of(RCD_COUNTER_RX_PACKETS);
	uint64_t dropped = count_of(RCD_COUNTER_RX_DROP_FED);
	struct rte_mbuf *ours[RTE_DIM(looks)];
	uint16_t count = 0;

	for (size_t i = 0; i < RTE_DIM(looks); i++) {
		struct rte_mbuf *mbuf;

		if (!looks[i].taken)
			continue;
		mbuf = make(&looks[i], (uint32_t)i);
		CU_ASSERT_TRUE_FATAL(rcd_inline_is_ours(dev, lcore, mbuf));
		ours[count++] = mbuf;
	}
	CU_ASSERT_FATAL(count > 1);
	/* It was only asked. */
	poll_all();
	CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_PACKETS), packets);
	rcd_inline_give(dev, lcore, ours, 1);
	rcd_inline_give(dev, lcore, ours + 1, (uint16_t)(count - 1));
	all_back(0);
	CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_PACKETS), packets + count);
	CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_DROP_FED), dropped);
}

/* Who tells everybody of its address tells the engine too: the program keeps what it received. */
static void
heard_by_both(void)
{
	for (size_t i = 0; i < RTE_DIM(looks); i++) {
		struct rte_mbuf *mbuf, *kept;
		uint64_t heard = count_of(RCD_COUNTER_RX_ARP);
		uint8_t before[FRAME_LEN];

		if (strcmp(looks[i].name, "arp_of_all") != 0)
			continue;
		kept = mbuf = make(&looks[i], (uint32_t)i);
		memcpy(before, rte_pktmbuf_mtod(mbuf, void *), FRAME_LEN);
		CU_ASSERT_EQUAL(rcd_inline_rx(dev, lcore, &mbuf, 1), 1);
		CU_ASSERT_PTR_EQUAL(mbuf, kept);
		poll_all();
		CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_ARP), heard + 1);
		/* By whichever way it is asked. */
		CU_ASSERT_FALSE(rcd_inline_is_ours(dev, lcore, kept));
		poll_all();
		CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_ARP), heard + 2);
		CU_ASSERT_EQUAL(rte_mbuf_refcnt_read(kept), 1);
		CU_ASSERT_EQUAL(memcmp(before, rte_pktmbuf_mtod(kept, void *), FRAME_LEN), 0);
		rte_pktmbuf_free(kept);
		all_back(0);
		return;
	}
	CU_FAIL("no such look");
}

/* Take what is to be sent, of which any may be the answer. @return how many are */
static uint32_t
take_answers(enum question question)
{
	struct rte_mbuf *mbufs[BURST];
	uint32_t answers = 0;
	uint16_t count;

	while ((count = rcd_inline_tx(dev, lcore, mbufs, BURST)) > 0) {
		for (uint16_t i = 0; i < count; i++) {
			CU_ASSERT_EQUAL(mbufs[i]->nb_segs, 1);
			CU_ASSERT_EQUAL(mbufs[i]->ol_flags, 0);
			CU_ASSERT(rte_pktmbuf_headroom(mbufs[i]) >= RTE_PKTMBUF_HEADROOM);
			answers += answered_by(mbufs[i], question);
		}
		rte_pktmbuf_free_bulk(mbufs, count);
	}
	return answers;
}

/* Who asks for the device's address, or pings it, is answered once, by what is to be sent. */
static void
answers(void)
{
	poll_all();
	for (enum question question = 0; question < ASK_COUNT; question++) {
		struct rte_mbuf *mbuf = ask(pool, question);
		uint32_t count = 0;

		CU_ASSERT_EQUAL_FATAL(rcd_inline_rx(dev, lcore, &mbuf, 1), 0);
		for (int i = 0; i < 3; i++) {
			rcd_lcore_poll(lcore, rcd_clock_ns(), 32);
			count += take_answers(question);
		}
		if (count != 1)
			fprintf(stderr, "# %u answers to question %d\n", count, (int)question);
		CU_ASSERT_EQUAL(count, 1);
	}
	all_back(0);
}

/* @param error  why not, if it returns NULL */
static struct rcd_inline *
create(const char *name, char *error, size_t error_len)
{
	struct rcd_dev_conf conf = { .mtu = 1500 };

	snprintf(conf.name, sizeof(conf.name), "%s", name);
	if (rcd_dev_conf_set(&conf, "address", "10.9.0.1/24, 10.9.5.1/24@5, fd09::1/64", error,
		    error_len) != 0 ||
		rcd_dev_conf_set(&conf, "mac", "02:00:00:00:00:01", error, error_len) != 0)
		return NULL;
	return rcd_inline_create(engine, &conf, error, error_len);
}

/* A name that is taken gives a sentence, and leaves nothing behind. */
static void
refused(void)
{
	uint16_t ports = rte_eth_dev_count_avail();
	char error[256] = "";

	CU_ASSERT_PTR_NULL(create("fed", error, sizeof(error)));
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "fed"));
	error[0] = '\0';
	CU_ASSERT_PTR_NULL(create("no name", error, sizeof(error)));
	CU_ASSERT_STRING_NOT_EQUAL(error, "");
	CU_ASSERT_EQUAL(rte_eth_dev_count_avail(), ports);
	rcd_inline_destroy(NULL);
}

/* Somebody removes it under the program: nothing is taken any more, and another may come. */
static void
goes(void)
{
	uint16_t ports = rte_eth_dev_count_avail();
	struct rte_mbuf *mbuf = make(&looks[0], 0), *more;
	const struct rcd_dev_conf other = {
		.name = "other", .attach = RCD_ATTACH_PORT, .target = "net_ring_rcdi0"
	};
	struct rcd_inline *again;
	char error[256] = "";

	CU_ASSERT_EQUAL(rcd_inline_rx(dev, lcore, &mbuf, 1), 0);
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "fed"), 0);
	/* Its port waits for the program to destroy it: nobody else gets it. */
	CU_ASSERT_EQUAL(rcd_engine_dev_add(engine, &other, error, sizeof(error)), -EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "feeds"));
	more = make(&looks[0], 1);
	CU_ASSERT_EQUAL(rcd_inline_rx(dev, lcore, &more, 1), 1);
	CU_ASSERT_FALSE(rcd_inline_is_ours(dev, lcore, more));
	rcd_inline_give(dev, lcore, &more, 1);
	again = create("fed", error, sizeof(error));
	CU_ASSERT_PTR_NOT_NULL_FATAL(again);
	/* The first one has the same name, and nothing of this one. */
	mbuf = make(&looks[0], 2);
	CU_ASSERT_EQUAL(rcd_inline_rx(dev, lcore, &mbuf, 1), 1);
	rcd_inline_destroy(dev);
	dev = again;
	CU_ASSERT_EQUAL(rcd_inline_rx(dev, lcore, &mbuf, 1), 0);
	all_back(0);
	CU_ASSERT_EQUAL(rte_eth_dev_count_avail(), ports);
}

static int
begin(void)
{
	static char args[][24] = { "test_inline", "--no-huge", "-m", "256", "--no-shconf",
		"--no-pci", "--no-telemetry", "--log-level=1", "-l", "0" };
	char *argv[RTE_DIM(args)];
	struct rcd_engine_conf conf;
	char error[256] = "";

	for (size_t i = 0; i < RTE_DIM(args); i++)
		argv[i] = args[i];
	if (rte_eal_init((int)RTE_DIM(args), argv) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create("programs", BUFFERS, 0, 0, 512, SOCKET_ID_ANY);
	rcd_engine_conf_init(&conf);
	conf.socket[0] = '\0';
	conf.mbufs = 4095;
	engine = rcd_engine_create(&conf, error, sizeof(error));
	if (engine == NULL || pool == NULL) {
		fprintf(stderr, "# %s\n", error);
		return -1;
	}
	lcore = rcd_engine_lcore(engine, 0);
	dev = create("fed", error, sizeof(error));
	if (dev == NULL)
		fprintf(stderr, "# %s\n", error);
	return dev != NULL ? 0 : -1;
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(each_kind),
		RCD_TEST(order_is_kept),
		RCD_TEST(pieces),
		RCD_TEST(cut_short),
		RCD_TEST(kept_by_the_program),
		RCD_TEST(too_many),
		RCD_TEST(given),
		RCD_TEST(heard_by_both),
		RCD_TEST(answers),
		RCD_TEST(refused),
		RCD_TEST(goes),
	};
	int status;

	if (begin() != 0)
		return 1;
	status = rcd_tap_run("inline", tests, RTE_DIM(tests));
	rcd_inline_destroy(dev);
	rcd_engine_destroy(engine);
	return status;
}
