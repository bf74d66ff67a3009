/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Packets and totals as lines of text.
 */
#include <arpa/inet.h>
#include <inttypes.h>

#include "dump.h"
#include "rcd_aeth.h"
#include "rcd_arp.h"
#include "rcd_icmp.h"
#include "rcd_mad.h"

static void
dump_text_xrceth(FILE *out, const struct rcd_xrceth *xrceth)
{
	fprintf(out, " xrceth srq 0x%06x", xrceth->srqn);
}

static void
dump_text_deth(FILE *out, const struct rcd_deth *deth)
{
	fprintf(out, " deth qkey 0x%08x srcqp 0x%06x", deth->qkey.val, deth->src_qpn.val);
}

static void
dump_text_feth(FILE *out, const struct rcd_feth *feth)
{
	fprintf(out, " feth placement 0x%x selectivity %u", feth->placement, feth->selectivity);
}

static void
dump_text_reth(FILE *out, const struct rcd_reth *reth)
{
	fprintf(out, " reth va 0x%016" PRIx64 " rkey 0x%08x dmalen %u", reth->va, reth->rkey.val,
		reth->dma_len);
}

static void
dump_text_atomiceth(FILE *out, const struct rcd_atomiceth *atomiceth)
{
	fprintf(out,
		" atomiceth va 0x%016" PRIx64 " rkey 0x%08x swap/add 0x%016" PRIx64
		" compare 0x%016" PRIx64,
		atomiceth->va, atomiceth->rkey.val, atomiceth->swap_or_add, atomiceth->compare);
}

static void
dump_text_aeth(FILE *out, const struct rcd_aeth *aeth)
{
	char words[RCD_AETH_TEXT_SIZE];

	rcd_aeth_text(aeth->syndrome, words, sizeof(words));
	fprintf(out, " aeth 0x%02x (%s) msn 0x%06x", aeth->syndrome, words, aeth->msn.val);
}

static void
dump_text_atomicacketh(FILE *out, const struct rcd_atomicacketh *atomicacketh)
{
	fprintf(out, " atomicacketh original 0x%016" PRIx64, atomicacketh->original);
}

static void
dump_text_immdt(FILE *out, const struct rcd_immdt *immdt)
{
	fprintf(out, " immdt 0x%08x", immdt->data);
}

static void
dump_text_ieth(FILE *out, const struct rcd_ieth *ieth)
{
	fprintf(out, " ieth rkey 0x%08x", ieth->rkey.val);
}

static void
dump_text_cnp(FILE *out, const struct rcd_cnp *cnp)
{
	(void)cnp; /* reserved bytes only */
	fprintf(out, " cnp");
}

static void
dump_text_sacketh(FILE *out, const struct rcd_sacketh *sacketh)
{
	fprintf(out, " sacketh seen %u delay %u ns", sacketh->seen.val, sacketh->delay_ns);
}

static void
dump_text_helloeth(FILE *out, const struct rcd_helloeth *helloeth)
{
	fprintf(out, " helloeth offers 0x%02x nonce 0x%016" PRIx64, helloeth->offers,
		helloeth->nonce);
}

static void
dump_text_exts(FILE *out, const struct rcd_roce *roce)
{
	uint8_t opcode = roce->bth.opcode;

#define RCD_EXT_HEADER(symbol, field, length)                                                      \
	if (rcd_opcode_has(opcode, RCD_EXT_##symbol))                                              \
		dump_text_##field(out, &roce->field);
#include "rcd_ext.def"
#undef RCD_EXT_HEADER
}

static void
dump_text_mad(FILE *out, const struct rcd_pkt *pkt)
{
	struct rcd_mad mad;
	enum rcd_verdict verdict = rcd_mad_parse(pkt->payload, pkt->payload_len, &mad);

	if (verdict != RCD_VERDICT_OK) {
		fprintf(out, " mad (%s)", rcd_verdict_text(verdict));
		return;
	}

	const char *name =
		mad.mgmt_class == RCD_MAD_CLASS_CM ? rcd_cm_attr_name(mad.attr_id) : NULL;

	if (name != NULL)
		fprintf(out, " cm %s", name);
	else
		fprintf(out, " mad class 0x%02x attr 0x%04x", mad.mgmt_class, mad.attr_id);
	fprintf(out, " method 0x%02x tid 0x%016" PRIx64, mad.method, mad.tid);
	if (name != NULL)
		dump_cm_text(out, pkt->payload + RCD_MAD_HDR_LEN, mad.attr_id);
}

static void
dump_text_addrs(FILE *out, const struct rcd_pkt *pkt)
{
	char src[DUMP_ADDR_SIZE];
	char dst[DUMP_ADDR_SIZE];

	if (pkt->ip == NULL)
		return;
	dump_addr_text(&pkt->sgid, src);
	dump_addr_text(&pkt->dgid, dst);
	if (pkt->dport == 0)
		fprintf(out, " %s > %s", src, dst);
	else if (pkt->l3 == RCD_L3_IPV4)
		fprintf(out, " %s:%u > %s:%u", src, pkt->sport, dst, pkt->dport);
	else
		fprintf(out, " [%s]:%u > [%s]:%u", src, pkt->sport, dst, pkt->dport);
}

static void
dump_text_roce(FILE *out, const struct dump_packet *packet)
{
	const struct rcd_pkt *pkt = &packet->pkt;
	const struct rcd_bth *bth = &pkt->roce.bth;

	fprintf(out, " %s qp 0x%06x psn 0x%06x%s%s pkey 0x%04x", rcd_opcode_name(bth->opcode),
		bth->dest_qpn.val, bth->psn.val, bth->ack_req ? " ackreq" : "",
		bth->solicited ? " solicited" : "", bth->pkey.val);
	if (bth->fecn || bth->becn)
		fprintf(out, "%s%s", bth->fecn ? " fecn" : "", bth->becn ? " becn" : "");
	if (bth->mark != 0)
		fprintf(out, " mark 0x%02x", bth->mark);
	dump_text_exts(out, &pkt->roce);
	if (dump_is_mad(packet))
		dump_text_mad(out, pkt);
	fprintf(out, " len %u", pkt->payload_len);
	if (packet->verdict == RCD_VERDICT_OK)
		fprintf(out, " icrc ok");
	else
		fprintf(out, " icrc BAD (0x%08x, should be 0x%08x)", packet->icrc_stored,
			packet->icrc_computed);
}

static void
dump_text_arp(FILE *out, const struct dump_packet *packet)
{
	struct rcd_arp arp;
	char sender[INET_ADDRSTRLEN];
	char target[INET_ADDRSTRLEN];
	enum rcd_verdict verdict = rcd_arp_parse(packet->l3, packet->l3_len, &arp);

	if (verdict != RCD_VERDICT_OK) {
		fprintf(out, " (%s)", rcd_verdict_text(verdict));
		return;
	}
	inet_ntop(AF_INET, arp.sender_ip, sender, sizeof(sender));
	inet_ntop(AF_INET, arp.target_ip, target, sizeof(target));
	if (arp.op == RCD_ARP_REQUEST || arp.op == RCD_ARP_REPLY)
		fprintf(out, " %s", arp.op == RCD_ARP_REQUEST ? "request" : "reply");
	else
		fprintf(out, " op %u", arp.op);
	fprintf(out, " %s > %s", sender, target);
}

static void
dump_text_icmp(FILE *out, const struct dump_packet *packet)
{
	const struct rcd_pkt *pkt = &packet->pkt;
	size_t hdr_len = pkt->l3 == RCD_L3_IPV4 ? (pkt->ip[0] & 0x0fu) * 4 : RCD_IPV6_LEN;
	size_t ip_len = packet->l3_len < pkt->ip_len ? packet->l3_len : pkt->ip_len;
	struct rcd_icmp_echo echo;

	if (ip_len < hdr_len)
		return;
	if (rcd_icmp_echo_parse((enum rcd_l3)pkt->l3, &pkt->sgid, &pkt->dgid, pkt->ip + hdr_len,
		    ip_len - hdr_len, &echo) == RCD_VERDICT_OK)
		fprintf(out, " echo %s id %u seq %u", echo.reply ? "reply" : "request", echo.id,
			echo.seq);
}

void
dump_text_packet(FILE *out, const struct dump_packet *packet)
{
	const struct rcd_pkt *pkt = &packet->pkt;

	fprintf(out, "%" PRIu64 ".%09" PRIu64, packet->offset_ns / 1000000000,
		packet->offset_ns % 1000000000);
	if (pkt->eth.tagged)
		fprintf(out, " vlan %u", pkt->eth.vlan_tci & 0xfff);
	dump_text_addrs(out, pkt);
	switch (rcd_verdict_class(packet->verdict)) {
	case RCD_VERDICT_CLASS_ROCE:
	case RCD_VERDICT_CLASS_BAD_ICRC:
		dump_text_roce(out, packet);
		break;
	case RCD_VERDICT_CLASS_MALFORMED:
		fprintf(out, " MALFORMED: %s", rcd_verdict_text(packet->verdict));
		if (packet->cap_len < packet->frame_len)
			fprintf(out, " (the capture holds %u of %u bytes)", packet->cap_len,
				packet->frame_len);
		break;
	case RCD_VERDICT_CLASS_OTHER:
		fprintf(out, " %s", rcd_verdict_text(packet->verdict));
		if (packet->verdict == RCD_VERDICT_ARP)
			dump_text_arp(out, packet);
		else if (packet->verdict == RCD_VERDICT_ICMP ||
			packet->verdict == RCD_VERDICT_ICMPV6)
			dump_text_icmp(out, packet);
		break;
	}
	fputc('\n', out);
}

void
dump_text_totals(FILE *out, const struct dump_totals *totals)
{
	fprintf(out,
		"packets %" PRIu64 " roce %" PRIu64 " icrc_ok %" PRIu64 " icrc_bad %" PRIu64
		" malformed %" PRIu64 " other %" PRIu64 "\n",
		totals->packets, totals->roce, totals->icrc_ok, totals->icrc_bad, totals->malformed,
		totals->other);
}
