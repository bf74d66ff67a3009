/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a packet that is missing of one that sends many is told of in the poll that finds it out,
 * before anybody sends more. A sender of the same lcore so hears of it in that poll, and repairs
 * before it goes on: what has to be kept behind the hole is what was on its way, and not a burst
 * more. Holes of many queue pairs, of which each sends few, are all told of in one burst, and
 * repaired.
 *
 * Method: queue pairs at both ends of an embedded wire, and callbacks in the ports that lose a
 * packet and note what came in which poll. Lcores have a clock of the test's own, so that however
 * slow the machine is, what is sent in a poll, and when, is the same.
 */
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <string.h>

#include "local_rig.h"
#include "rcd_aeth.h"
#include "rcd_bth.h"
#include "rcd_bytes.h"
#include "rcd_clock.h"
#include "rcd_dev.h"
#include "rcd_engine_priv.h"
#include "rcd_eth.h"
#include "rcd_ip.h"
#include "rcd_limits.h"
#include "rcd_opcode.h"
#include "rcd_poll.h"
#include "rcd_tap.h"
#include "rcd_udp.h"

#define SEED  20261128
#define LEN   200000
#define SHORT 2000

#define POLL_NS   2000                /**< that a poll takes */
#define SOON      500                 /**< polls: far less than any timeout */
#define PER_POLL  (RCD_BURST_MAX / 2) /**< packets that a poll sends */
#define PAIRS     (PER_POLL / 2)      /**< of two packets each */
#define FIRST_PSN 700                 /**< of side_attr() */

#define UDP_AT  (RCD_ETH_LEN + RCD_IPV4_LEN)
#define BTH_AT  (UDP_AT + RCD_UDP_LEN)
#define AETH_AT (BTH_AT + RCD_BTH_LEN)
#define LEAST   (AETH_AT + RCD_AETH_LEN)

static struct side a, b;
static struct side senders[PAIRS], receivers[PAIRS];
static uint32_t polls;
static uint64_t now_ns;

/* What the ports saw. Polls count from 1. */
static struct {
	uint32_t lose;      /**< of so many packets of requests the last is lost; 0: none */
	bool firsts;        /**< those of all queue pairs are lost, once */
	bool had[PAIRS];    /**< which of these were */
	uint32_t most;      /**< of these, lost in one poll */
	uint32_t psn;       /**< of the one that was */
	uint32_t lost_poll; /**< in which it was */
	uint32_t told_poll; /**< in which a NAK, or SACK, came for it */
	uint32_t told;      /**< so many came in that poll */
	uint32_t behind;    /**< packets that came behind it, before it came again */
	uint32_t again;     /**< poll in which it did */
	bool last;          /**< it was the last one of its burst: nothing came that tells */
	uint32_t lost;
} seen;

static uint32_t
psn_of(const uint8_t *frame)
{
	return rcd_get_be32(frame + BTH_AT + 8) & 0xffffff;
}

static bool
is_roce(const struct rte_mbuf *mbuf)
{
	const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);

	return rte_pktmbuf_data_len(mbuf) >= LEAST &&
		rcd_get_be16(frame + RCD_ETH_LEN - 2) == RCD_ETHERTYPE_IPV4 &&
		rcd_get_be16(frame + UDP_AT + 2) == RCD_UDP_PORT_ROCE;
}

/* The first one of a queue pair. @return whether to lose it */
static bool
look_at_first(const uint8_t *frame)
{
	uint32_t qpn = rcd_get_be32(frame + BTH_AT + 4) & 0xffffff;
	uint32_t at = 0;

	while (at < PAIRS && rcd_local_qp_num(receivers[at].qp) != qpn)
		at++;
	if (at == PAIRS || psn_of(frame) != FIRST_PSN || seen.had[at])
		return false;
	seen.most = seen.lost_poll == polls ? seen.most + 1 : 1;
	seen.lost_poll = polls;
	seen.had[at] = true;
	seen.lost++;
	return true;
}

/* Of requests, at w1. @return whether to lose it */
static bool
look_at_request(const uint8_t *frame, bool last)
{
	uint32_t psn = psn_of(frame);

	if (seen.firsts)
		return look_at_first(frame);
	if (seen.lost_poll != 0 && seen.again == 0) {
		if (psn == seen.psn)
			seen.again = polls;
		else
			seen.behind++;
	}
	if (seen.lose == 0 || --seen.lose > 0)
		return false;
	seen.psn = psn;
	seen.lost_poll = polls;
	seen.last = last;
	seen.lost++;
	return true;
}

static uint16_t
requests(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count, uint16_t max,
	void *arg)
{
	uint16_t left = 0;

	(void)port, (void)queue, (void)max, (void)arg;
	for (uint16_t i = 0; i < count; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(mbufs[i], const uint8_t *);

		if (is_roce(mbufs[i]) && frame[BTH_AT] <= RCD_OPCODE_RC_RDMA_WRITE_ONLY &&
			look_at_request(frame, i + 1 == count))
			rte_pktmbuf_free(mbufs[i]);
		else
			mbufs[left++] = mbufs[i];
	}
	return left;
}

static uint16_t
answers(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count, uint16_t max,
	void *arg)
{
	(void)port, (void)queue, (void)max, (void)arg;
	for (uint16_t i = 0; i < count; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(mbufs[i], const uint8_t *);

		if (seen.lost_poll == 0 || !is_roce(mbufs[i]) ||
			(seen.told_poll != 0 && seen.told_poll != polls))
			continue;
		if (frame[BTH_AT] == RCD_OPCODE_SACK ||
			(frame[BTH_AT] == RCD_OPCODE_RC_ACKNOWLEDGE &&
				frame[AETH_AT] >> 5 == RCD_AETH_NAK)) {
			seen.told_poll = polls;
			seen.told++;
		}
	}
	return count;
}

static void
turn(void)
{
	rcd_engine_step(engine, 0);
	polls++;
	now_ns += POLL_NS;
	rcd_lcore_poll(rcd_engine_lcore(engine, 0), now_ns, RCD_BURST_MAX);
}

static void
post_write(struct side *from, const struct side *to, uint32_t len)
{
	struct rcd_sge sge;
	struct rcd_send_wr wr = side_wr(from, to, RCD_WR_RDMA_WRITE, &sge, 0, len);

	CU_ASSERT_EQUAL_FATAL(rcd_local_post_send(from->qp, &wr, NULL), 0);
	rcd_local_ring(from->qp);
}

static void
transfer(uint32_t seed)
{
	struct rcd_cq_slot slot;

	bytes_fill(a.memory, LEN, seed);
	memset(b.memory, 0, LEN);
	post_write(&a, &b, LEN);
	CU_ASSERT_EQUAL_FATAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(bytes_filled(b.memory, LEN, seed));
}

static uint16_t
port_of(const char *end)
{
	return rcd_dev_find(&engine->ports, end)->lport.port_id;
}

static void
begun(void)
{
	now_ns = rcd_clock_ns();
	local_begin(NULL);
	CU_ASSERT_EQUAL_FATAL(rcd_engine_lcore_count(engine), 1);
	local_polls = false;
	local_also = turn;
	side_pair(&a, &b, RCD_QP_RC);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rte_eth_add_rx_callback(port_of("w0"), 0, answers, NULL));
	CU_ASSERT_PTR_NOT_NULL_FATAL(rte_eth_add_rx_callback(port_of("w1"), 0, requests, NULL));
	/* Until both know the way, and each other. */
	for (uint32_t i = 0; i < 20; i++)
		transfer(SEED + i);
}

/* Wherever in a burst it is lost: a message is several. */
static void
repaired_before_more_is_sent(void)
{
	uint32_t tried = 0;

	for (uint32_t lose = 1; lose < 3 * PER_POLL; lose++) {
		memset(&seen, 0, sizeof(seen));
		seen.lose = lose;
		transfer(SEED + lose);
		CU_ASSERT_EQUAL(seen.lost, 1);
		/* The next burst tells. */
		if (seen.last)
			seen.lost_poll++;
		CU_ASSERT_EQUAL(seen.told_poll, seen.lost_poll);
		CU_ASSERT_EQUAL(seen.again, seen.lost_poll + 1);
		CU_ASSERT(seen.behind <= (seen.last ? PER_POLL : PER_POLL - 1));
		if (seen.again != seen.lost_poll + 1)
			printf("# %u lost in poll %u, told in %u, again in %u, %u behind it\n",
				lose, seen.lost_poll, seen.told_poll, seen.again, seen.behind);
		tried += !seen.last;
	}
	CU_ASSERT(tried > 2 * PER_POLL);
	memset(&seen, 0, sizeof(seen));
}

/* Of each the first of two packets, all in one burst. */
static void
many_at_once(void)
{
	struct rcd_cq_slot slot;
	uint32_t began;

	for (uint32_t i = 0; i < PAIRS; i++) {
		side_pair(&senders[i], &receivers[i], RCD_QP_RC);
		bytes_fill(senders[i].memory, SHORT, SEED + i);
	}
	seen.firsts = true;
	began = polls;
	for (uint32_t i = 0; i < PAIRS; i++)
		post_write(&senders[i], &receivers[i], SHORT);
	for (uint32_t i = 0; i < PAIRS; i++) {
		CU_ASSERT_EQUAL_FATAL(side_wait(&senders[i], &slot), RCD_WC_SUCCESS);
		CU_ASSERT(bytes_filled(receivers[i].memory, SHORT, SEED + i));
	}
	CU_ASSERT_EQUAL(seen.lost, PAIRS);
	CU_ASSERT_EQUAL(seen.most, PAIRS);
	CU_ASSERT_EQUAL(seen.told_poll, seen.lost_poll + 1);
	CU_ASSERT_EQUAL(seen.told, PAIRS);
	CU_ASSERT(polls - began < SOON);
	for (uint32_t i = 0; i < PAIRS; i++) {
		side_close(&senders[i]);
		side_close(&receivers[i]);
	}
	memset(&seen, 0, sizeof(seen));
}

static void
goes(void)
{
	side_close(&a);
	side_close(&b);
	local_end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(begun),
		RCD_TEST(repaired_before_more_is_sent),
		RCD_TEST(many_at_once),
		RCD_TEST(goes),
	};

	printf("# seed %d\n", SEED);
	local_eal("0");
	return rcd_tap_run("local_hole", tests, RTE_DIM(tests));
}
