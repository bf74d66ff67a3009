/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: our responder answers the kernel's requester as the kernel's responder did.
 *
 * Method: every capture is read twice. First, who talks to whom, with which keys and addresses, and
 * which answers the kernel gave. Then the requests go, in their order, to queue pairs of ours that
 * have that number, that first PSN, regions for those keys and receive requests for those messages,
 * and what they answer is compared: the same NAKs, responses and atomic acknowledges for the same
 * PSNs, and in the end the same PSN acknowledged. doc/transport.md justifies what may differ:
 *
 *   - one ACK of ours may stand for several of the kernel's, which acknowledges each that is asked;
 *   - behind an RNR NAK the kernel sends a PSN sequence NAK for the rest of the message, we don't;
 *   - a SEND longer than the buffer gets NAK 3 from the kernel and NAK 1 from us;
 *   - where answers were lost before they reached the capture, ours are not in it.
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>

#include "rcd_aeth.h"
#include "rcd_bring_up.h"
#include "rcd_captures.h"
#include "sim.h"

enum {
	FLOWS_MAX = 16,
	ANSWERS_MAX = 4096,
	REGIONS_MAX = 64,
	PACKETS_MAX = 1000,
	PD = 9,
	RECV_LEN = 1 << 20,
};

/** An answer: what, for which PSN. */
struct answer {
	uint32_t psn;
	uint8_t opcode;
	uint8_t syndrome; /**< of an acknowledge; 0 otherwise */
	uint32_t after;   /**< the kernel's: number of the packet in the capture */
};

/** Addresses that a key is used with. */
struct region {
	uint32_t rkey; /**< the kernel's */
	uint64_t low, high;
	uint8_t *memory;
	struct rcd_key key; /**< ours */
};

/** Requests to one queue pair, and all that belongs to it. */
struct flow {
	struct rcd_gid sgid, dgid;
	uint32_t qpn;
	uint16_t sport;
	enum rcd_service service;
	uint32_t first_psn;
	uint16_t mtu;
	uint32_t qkey;
	struct answer theirs[ANSWERS_MAX];
	uint32_t their_count;
	struct answer ours[ANSWERS_MAX];
	uint32_t our_count;
	struct region regions[REGIONS_MAX];
	uint32_t region_count;
	uint32_t rx_messages; /**< that need a receive request, all of them seen */
	uint32_t completions;
	struct rcd_qp *qp;
	void *mem;
	uint32_t recvs_posted;
	uint32_t recv_len;
};

static struct flow flows[FLOWS_MAX];
static uint32_t flow_count;
static struct rcd_mr_table *mrs;
static uint8_t *recv_memory;
static struct rcd_key recv_key;
static struct rcd_counters counters;
static uint32_t made_up;

static int
fetch_send(void *arg, uint32_t number, struct rcd_send_wr *wr)
{
	(void)arg;
	(void)number;
	(void)wr;
	return -EAGAIN;
}

static int
fetch_recv(void *arg, uint32_t number, struct rcd_recv_wr *wr)
{
	struct flow *flow = arg;

	if (number >= flow->recvs_posted)
		return -EAGAIN;
	wr->wr_id = number;
	wr->sge_count = 1;
	wr->sges[0] = (struct rcd_sge){ 0, flow->recv_len, recv_key };
	return 0;
}

static void
complete(void *arg, const struct rcd_cqe *cqe)
{
	struct flow *flow = arg;

	flow->completions += cqe->recv && cqe->status == RCD_WC_SUCCESS;
}

static void
event(void *arg, enum rcd_event what)
{
	(void)arg;
	(void)what;
}

static const struct rcd_qp_ops ops = {
	.fetch_send = fetch_send,
	.fetch_recv = fetch_recv,
	.complete = complete,
	.event = event,
};

/* The flow whose responder gets this request, or got the request that this answers. */
static struct flow *
find_flow(const struct rcd_pkt *pkt, bool answer)
{
	for (uint32_t i = 0; i < flow_count; i++) {
		struct flow *flow = &flows[i];

		if (answer ? rcd_gid_eq(&flow->sgid, &pkt->dgid) &&
					rcd_gid_eq(&flow->dgid, &pkt->sgid) &&
					flow->sport == pkt->sport && flow->service == RCD_SERVICE_RC
			   : rcd_gid_eq(&flow->sgid, &pkt->sgid) &&
					rcd_gid_eq(&flow->dgid, &pkt->dgid) &&
					flow->qpn == pkt->roce.bth.dest_qpn.val)
			return flow;
	}
	return NULL;
}

static struct flow *
new_flow(const struct rcd_pkt *pkt)
{
	struct flow *flow = &flows[flow_count++];

	CU_ASSERT_TRUE_FATAL(flow_count < FLOWS_MAX);
	memset(flow, 0, sizeof(*flow));
	flow->sgid = pkt->sgid;
	flow->dgid = pkt->dgid;
	flow->qpn = pkt->roce.bth.dest_qpn.val;
	flow->sport = pkt->sport;
	flow->service = (enum rcd_service)rcd_opcode_info(pkt->roce.bth.opcode)->service;
	flow->first_psn = pkt->roce.bth.psn.val;
	flow->mtu = 1024;
	flow->qkey = pkt->roce.deth.qkey.val;
	flow->recv_len = RECV_LEN;
	return flow;
}

static void
add_answer(struct answer *answers, uint32_t *count, const struct rcd_roce *roce, uint32_t after)
{
	bool ack = roce->bth.opcode == RCD_OPCODE_RC_ACKNOWLEDGE;

	CU_ASSERT_TRUE_FATAL(*count < ANSWERS_MAX);
	answers[(*count)++] = (struct answer){
		.psn = roce->bth.psn.val,
		.opcode = roce->bth.opcode,
		.syndrome = ack ? roce->aeth.syndrome : 0,
		.after = after,
	};
}

static bool
was_refused(const struct flow *flow, uint32_t psn, uint8_t syndrome)
{
	for (uint32_t i = 0; i < flow->their_count; i++) {
		if (flow->theirs[i].psn == psn && flow->theirs[i].syndrome == syndrome &&
			flow->theirs[i].opcode == RCD_OPCODE_RC_ACKNOWLEDGE)
			return true;
	}
	return false;
}

/* Whether the kernel refused this packet, met for the time being, with an RNR NAK. */
static bool
met_rnr(const struct flow *flow, uint32_t psn, uint32_t number, uint32_t next_same)
{
	for (uint32_t i = 0; i < flow->their_count; i++) {
		const struct answer *answer = &flow->theirs[i];

		if (answer->psn == psn && answer->after > number && answer->after < next_same &&
			rcd_aeth_kind(answer->syndrome) == RCD_AETH_RNR_NAK &&
			answer->opcode == RCD_OPCODE_RC_ACKNOWLEDGE)
			return true;
	}
	return false;
}

static void
note_region(struct flow *flow, uint32_t rkey, uint64_t va, uint64_t len)
{
	for (uint32_t i = 0; i < flow->region_count; i++) {
		struct region *region = &flow->regions[i];

		if (region->rkey != rkey)
			continue;
		if (va < region->low)
			region->low = va;
		if (va + len > region->high)
			region->high = va + len;
		return;
	}
	CU_ASSERT_TRUE_FATAL(flow->region_count < REGIONS_MAX);
	flow->regions[flow->region_count++] =
		(struct region){ .rkey = rkey, .low = va, .high = va + len };
}

/* One packet of a capture. */
struct captured {
	uint8_t *frame;
	struct rcd_pkt pkt;
};

static struct captured packets[PACKETS_MAX];
static uint32_t packet_count;

static void
read_capture(void)
{
	char reason[PCAP_ERRBUF_SIZE] = "";
	pcap_t *pcap = pcap_open_offline(rcd_captures_path(), reason);
	struct pcap_pkthdr *hdr;
	const uint8_t *data;

	CU_ASSERT_PTR_NOT_NULL_FATAL(pcap);
	packet_count = flow_count = 0;
	while (pcap_next_ex(pcap, &hdr, &data) == 1 && packet_count < PACKETS_MAX) {
		struct captured *captured = &packets[packet_count++];

		captured->frame = malloc(hdr->caplen);
		memcpy(captured->frame, data, hdr->caplen);
		CU_ASSERT_EQUAL_FATAL(rcd_pkt_parse(captured->frame, hdr->caplen, &captured->pkt),
			RCD_VERDICT_OK);
	}
	pcap_close(pcap);
}

/* First pass: flows, and what the kernel answered. */
static void
learn_flows(void)
{
	for (uint32_t i = 0; i < packet_count; i++) {
		const struct rcd_pkt *pkt = &packets[i].pkt;
		const struct rcd_opcode_info *info = rcd_opcode_info(pkt->roce.bth.opcode);
		struct flow *flow;

		if (rcd_opcode_is_response(pkt->roce.bth.opcode)) {
			flow = find_flow(pkt, true);
			if (flow != NULL)
				add_answer(flow->theirs, &flow->their_count, &pkt->roce, i);
			continue;
		}
		flow = find_flow(pkt, false);
		if (flow == NULL)
			flow = new_flow(pkt);
		if (info->position == RCD_POS_FIRST)
			flow->mtu = pkt->payload_len;
	}
}

/* Second look at the requests: memory for every key, unless the kernel refused the access. */
static void
learn_regions(void)
{
	for (uint32_t i = 0; i < packet_count; i++) {
		const struct rcd_roce *roce = &packets[i].pkt.roce;
		struct flow *flow = rcd_opcode_is_response(roce->bth.opcode)
			? NULL
			: find_flow(&packets[i].pkt, false);

		if (flow == NULL || was_refused(flow, roce->bth.psn.val, 0x62))
			continue;
		if (rcd_opcode_has(roce->bth.opcode, RCD_EXT_RETH))
			note_region(flow, roce->reth.rkey.val, roce->reth.va, roce->reth.dma_len);
		if (rcd_opcode_has(roce->bth.opcode, RCD_EXT_ATOMICETH))
			note_region(flow, roce->atomiceth.rkey.val, roce->atomiceth.va, 8);
	}
}

static void
make_qp(struct flow *flow)
{
	bool rc = flow->service == RCD_SERVICE_RC;
	bool ud = flow->service == RCD_SERVICE_UD;
	bool gsi = ud && flow->qpn == RCD_QPN_GSI;
	struct rcd_qp_init init = {
		.type = rc    ? RCD_QP_RC
			: gsi ? RCD_QP_GSI
			: ud  ? RCD_QP_UD
			      : RCD_QP_UC,
		.qpn = { flow->qpn },
		.pd = PD,
		.sq_depth = 1,
		.max_recv_sge = 1,
		.max_rd_atomic = 128,
		.port_mtu_bytes = 4096,
		.mrs = mrs,
		.counters = &counters,
		.ops = &ops,
		.arg = flow,
	};
	struct rcd_qp_attr attr = {
		.access = RCD_ACCESS_REMOTE,
		.port = 1,
		.qkey = { flow->qkey },
		.av = { .sgid = flow->dgid, .dgid = flow->sgid },
		.path_mtu_bytes = flow->mtu,
		.rq_psn = { flow->first_psn },
		.max_dest_rd_atomic = 128,
		.min_rnr_timer = 12,
	};

	for (uint32_t i = 0; i < flow->their_count; i++) {
		if (rcd_aeth_kind(flow->theirs[i].syndrome) == RCD_AETH_RNR_NAK &&
			flow->theirs[i].opcode == RCD_OPCODE_RC_ACKNOWLEDGE)
			attr.min_rnr_timer = rcd_aeth_value(flow->theirs[i].syndrome);
	}
	flow->mem = aligned_alloc(64, (rcd_qp_size(&init) + 63) & ~(size_t)63);
	flow->qp = rcd_qp_init(flow->mem, &init);
	CU_ASSERT_PTR_NOT_NULL_FATAL(flow->qp);
	rcd_bring_up(flow->qp, init.type, attr, RCD_QP_RTR);
	for (uint32_t i = 0; i < flow->region_count; i++) {
		struct region *region = &flow->regions[i];
		struct rcd_mr_attr mr = { .pd = PD,
			.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
			.start = region->low,
			.len = region->high - region->low };

		/* Aligned as the address, for atomics. */
		region->memory = calloc(1, mr.len + 16);
		mr.base = region->memory + region->low % 8;
		CU_ASSERT_EQUAL(rcd_mr_register(mrs, &mr, &region->key), 0);
	}
}

/* The kernel's keys become ours. */
static void
change_keys(struct flow *flow, struct rcd_roce *roce)
{
	struct rcd_key *rkey = rcd_opcode_has(roce->bth.opcode, RCD_EXT_ATOMICETH)
		? &roce->atomiceth.rkey
		: &roce->reth.rkey;
	uint32_t theirs = rkey->val;

	if (rcd_opcode_has(roce->bth.opcode, RCD_EXT_IETH)) {
		/* A window that is there to be invalidated. */
		struct rcd_mr_attr mr = { .pd = PD,
			.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_MW_BIND,
			.len = 8,
			.base = recv_memory };
		struct rcd_mw_bind bind = { .pd = PD, .qpn = flow->qpn, .len = 8 };

		CU_ASSERT_EQUAL(rcd_mr_register(mrs, &mr, &bind.mr), 0);
		CU_ASSERT_EQUAL(rcd_mw_alloc(mrs, RCD_MR_WINDOW_2, PD, &bind.mw), 0);
		CU_ASSERT_EQUAL(rcd_mw_bind(mrs, &bind, &roce->ieth.rkey), 0);
	}
	for (uint32_t i = 0; i < flow->region_count; i++) {
		if (flow->regions[i].rkey == theirs)
			*rkey = flow->regions[i].key;
	}
}

/* Number of the next packet with the same PSN to the same queue pair. */
static uint32_t
next_same(const struct flow *flow, uint32_t number)
{
	uint32_t psn = packets[number].pkt.roce.bth.psn.val;

	for (uint32_t i = number + 1; i < packet_count; i++) {
		const struct rcd_pkt *pkt = &packets[i].pkt;

		if (!rcd_opcode_is_response(pkt->roce.bth.opcode) && pkt->roce.bth.psn.val == psn &&
			find_flow(pkt, false) == flow)
			return i;
	}
	return UINT32_MAX;
}

/*
 * A capture may lack packets that the kernel's responder got: it never asked for them. Middles of a
 * message can be made up, as their contents don't matter here.
 */
static void
fill_hole(struct flow *flow, const struct rcd_pkt *next, uint32_t number)
{
	static const uint8_t payload[RCD_PATH_MTU_MAX_BYTES];
	bool send = rcd_opcode_info(next->roce.bth.opcode)->op == RCD_OP_SEND;
	struct rcd_pkt pkt = *next;
	struct rcd_qp_attr attr;

	rcd_qp_query(flow->qp, &attr);
	if (flow->service != RCD_SERVICE_RC || rcd_opcode_begins(next->roce.bth.opcode) ||
		was_refused(flow, attr.rq_psn.val, 0x60))
		return;
	pkt.roce.bth.opcode = send ? RCD_OPCODE_RC_SEND_MIDDLE : RCD_OPCODE_RC_RDMA_WRITE_MIDDLE;
	pkt.roce.bth.ack_req = false;
	pkt.payload = payload;
	pkt.payload_len = flow->mtu;
	while (rcd_psn_before(attr.rq_psn, next->roce.bth.psn)) {
		pkt.roce.bth.psn = attr.rq_psn;
		if (rcd_qp_rx(flow->qp, &pkt, number + 1) != RCD_RX_EXECUTED)
			return;
		made_up++;
		rcd_qp_query(flow->qp, &attr);
	}
}

static void
feed(struct flow *flow, uint32_t number)
{
	struct rcd_pkt pkt = packets[number].pkt;
	uint8_t opcode = pkt.roce.bth.opcode;
	struct rcd_tx_pkt out;
	struct rcd_qp_attr attr;
	bool needs_recv = rcd_opcode_consumes_recv(opcode) &&
		(rcd_opcode_begins(opcode) || rcd_opcode_has(opcode, RCD_EXT_IMMDT));

	rcd_qp_query(flow->qp, &attr);
	if (needs_recv && !met_rnr(flow, pkt.roce.bth.psn.val, number, next_same(flow, number)) &&
		(flow->service != RCD_SERVICE_RC || attr.rq_psn.val == pkt.roce.bth.psn.val))
		flow->recvs_posted = flow->completions + 1;
	/* A message that was too long for the kernel's buffer is too long for ours. */
	flow->recv_len = was_refused(flow, pkt.roce.bth.psn.val, 0x63) ? 1 : RECV_LEN;
	for (uint32_t i = 0; i < 3; i++) {
		if (was_refused(flow, rcd_psn_add(pkt.roce.bth.psn, i).val, 0x63))
			flow->recv_len = i * flow->mtu + 1;
	}
	change_keys(flow, &pkt.roce);
	fill_hole(flow, &pkt, number);
	rcd_qp_rx(flow->qp, &pkt, number + 1);
	while (rcd_qp_tx_next(flow->qp, number + 1, &out))
		add_answer(flow->ours, &flow->our_count, &out.roce, number);
}

static bool
contains(const struct answer *answers, uint32_t count, const struct answer *wanted)
{
	for (uint32_t i = 0; i < count; i++) {
		if (answers[i].psn == wanted->psn && answers[i].opcode == wanted->opcode &&
			answers[i].syndrome == wanted->syndrome)
			return true;
	}
	return false;
}

static bool
is_ack(const struct answer *answer)
{
	return answer->opcode == RCD_OPCODE_RC_ACKNOWLEDGE &&
		rcd_aeth_kind(answer->syndrome) == RCD_AETH_ACK;
}

/* Differences that doc/transport.md justifies. */
static bool
justified(const struct flow *flow, const struct answer *theirs)
{
	struct answer other = *theirs;

	if (theirs->opcode != RCD_OPCODE_RC_ACKNOWLEDGE)
		return false;
	if (theirs->syndrome == 0x60) {
		for (uint32_t i = 0; i < flow->their_count; i++) {
			if (flow->theirs[i].psn == theirs->psn &&
				rcd_aeth_kind(flow->theirs[i].syndrome) == RCD_AETH_RNR_NAK)
				return true;
		}
	}
	other.syndrome = 0x61;
	return theirs->syndrome == 0x63 && contains(flow->ours, flow->our_count, &other);
}

static void
fail(const char *who, const struct answer *answer)
{
	fprintf(stderr, "# %s: only %s: opcode 0x%02x psn 0x%06x syndrome 0x%02x\n",
		rcd_captures_path(), who, answer->opcode, answer->psn, answer->syndrome);
	CU_FAIL("answers differ");
}

/* The highest PSN that the answers acknowledge. */
static uint32_t
acknowledged(const struct flow *flow, const struct answer *answers, uint32_t count)
{
	struct rcd_psn highest = rcd_psn_sub(rcd_psn(flow->first_psn), 1);

	for (uint32_t i = 0; i < count; i++) {
		struct rcd_psn psn = rcd_psn(answers[i].psn);

		if (answers[i].opcode == RCD_OPCODE_RC_ACKNOWLEDGE && !is_ack(&answers[i]))
			psn = rcd_psn_sub(psn, 1);
		if (rcd_psn_before(highest, psn))
			highest = psn;
	}
	return highest.val;
}

static void
compare(const struct flow *flow, bool answers_lost)
{
	uint32_t ours = acknowledged(flow, flow->ours, flow->our_count);
	uint32_t theirs = acknowledged(flow, flow->theirs, flow->their_count);

	for (uint32_t i = 0; i < flow->their_count; i++) {
		if (!is_ack(&flow->theirs[i]) && !justified(flow, &flow->theirs[i]) &&
			!contains(flow->ours, flow->our_count, &flow->theirs[i]))
			fail("the kernel's", &flow->theirs[i]);
	}
	for (uint32_t i = 0; i < flow->our_count && !answers_lost; i++) {
		struct answer other = flow->ours[i];

		other.syndrome = 0x63;
		if (!is_ack(&flow->ours[i]) &&
			!contains(flow->theirs, flow->their_count, &flow->ours[i]) &&
			!(flow->ours[i].syndrome == 0x61 &&
				contains(flow->theirs, flow->their_count, &other)))
			fail("ours", &flow->ours[i]);
	}
	/* The capture may end before the kernel's last answer. */
	if (flow->their_count > 0 && flow->our_count > 0 &&
		flow->ours[flow->our_count - 1].after > flow->theirs[flow->their_count - 1].after)
		answers_lost = true;
	CU_ASSERT_TRUE(
		answers_lost ? rcd_psn_diff(rcd_psn(ours), rcd_psn(theirs)) >= 0 : ours == theirs);
}

static void
replay(void)
{
	const char *name = strrchr(rcd_captures_path(), '/') + 1;
	struct rcd_mr_attr mr = { .pd = PD, .access = RCD_ACCESS_LOCAL_WRITE, .len = RECV_LEN };
	uint32_t messages[FLOWS_MAX] = { 0 };

	/* One packet of each kind is no conversation. */
	if (strncmp(name, "kept-", 5) == 0) {
		rcd_tap_skip("holds single packets");
		return;
	}
	made_up = 0;
	mrs = rcd_mr_table_create(10, 1);
	recv_memory = mr.base = calloc(1, RECV_LEN);
	CU_ASSERT_EQUAL(rcd_mr_register(mrs, &mr, &recv_key), 0);
	read_capture();
	learn_flows();
	learn_regions();
	for (uint32_t i = 0; i < flow_count; i++)
		make_qp(&flows[i]);
	for (uint32_t i = 0; i < packet_count; i++) {
		const struct rcd_roce *roce = &packets[i].pkt.roce;
		struct flow *flow = rcd_opcode_is_response(roce->bth.opcode)
			? NULL
			: find_flow(&packets[i].pkt, false);

		if (flow == NULL)
			continue;
		feed(flow, i);
		if (rcd_opcode_ends(roce->bth.opcode) && rcd_opcode_consumes_recv(roce->bth.opcode))
			messages[flow - flows]++;
	}
	for (uint32_t i = 0; i < flow_count; i++) {
		struct flow *flow = &flows[i];

		if (flow->service == RCD_SERVICE_RC)
			compare(flow, strstr(name, "-responder") != NULL);
		else
			CU_ASSERT_TRUE(flow->completions == messages[i] && flow->our_count == 0);
		rcd_qp_fini(flow->qp);
		free(flow->mem);
		for (uint32_t k = 0; k < flow->region_count; k++)
			free(flow->regions[k].memory);
	}
	if (made_up > 0)
		printf("# %s lacks %u packets that the kernel received\n", name, made_up);
	for (uint32_t i = 0; i < packet_count; i++)
		free(packets[i].frame);
	free(recv_memory);
	rcd_mr_table_destroy(mrs);
}

int
main(int argc, char **argv)
{
	(void)argc;
	return rcd_captures_run("replay", argv + 1, replay);
}
