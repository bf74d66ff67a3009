/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Packets and totals as JSON, one object a line. Values that may not fit a JSON number exactly
 * (64 bits) are strings in hexadecimal.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>

#include "dump.h"
#include "rcd_aeth.h"
#include "rcd_mad.h"

/* Jansson passes NULL through: a failed allocation anywhere ends in a NULL at dump_json_print(). */

static json_t *
dump_json_hex64(uint64_t val)
{
	return json_sprintf("0x%016" PRIx64, val);
}

static json_t *
dump_json_xrceth(const struct rcd_xrceth *xrceth)
{
	return json_pack("{s:I}", "srqn", (json_int_t)xrceth->srqn);
}

static json_t *
dump_json_deth(const struct rcd_deth *deth)
{
	return json_pack("{s:I,s:I}", "qkey", (json_int_t)deth->qkey.val, "src_qp",
		(json_int_t)deth->src_qpn.val);
}

static json_t *
dump_json_feth(const struct rcd_feth *feth)
{
	return json_pack(
		"{s:i,s:i}", "placement", feth->placement, "selectivity", feth->selectivity);
}

static json_t *
dump_json_reth(const struct rcd_reth *reth)
{
	return json_pack("{s:o,s:I,s:I}", "va", dump_json_hex64(reth->va), "rkey",
		(json_int_t)reth->rkey.val, "dma_len", (json_int_t)reth->dma_len);
}

static json_t *
dump_json_atomiceth(const struct rcd_atomiceth *atomiceth)
{
	return json_pack("{s:o,s:I,s:o,s:o}", "va", dump_json_hex64(atomiceth->va), "rkey",
		(json_int_t)atomiceth->rkey.val, "swap_or_add",
		dump_json_hex64(atomiceth->swap_or_add), "compare",
		dump_json_hex64(atomiceth->compare));
}

static json_t *
dump_json_aeth(const struct rcd_aeth *aeth)
{
	char words[RCD_AETH_TEXT_SIZE];

	rcd_aeth_text(aeth->syndrome, words, sizeof(words));
	return json_pack("{s:i,s:s,s:I}", "syndrome", aeth->syndrome, "text", words, "msn",
		(json_int_t)aeth->msn.val);
}

static json_t *
dump_json_atomicacketh(const struct rcd_atomicacketh *atomicacketh)
{
	return json_pack("{s:o}", "original", dump_json_hex64(atomicacketh->original));
}

static json_t *
dump_json_immdt(const struct rcd_immdt *immdt)
{
	return json_pack("{s:I}", "data", (json_int_t)immdt->data);
}

static json_t *
dump_json_ieth(const struct rcd_ieth *ieth)
{
	return json_pack("{s:I}", "rkey", (json_int_t)ieth->rkey.val);
}

static json_t *
dump_json_cnp(const struct rcd_cnp *cnp)
{
	(void)cnp; /* reserved bytes only */
	return json_object();
}

static json_t *
dump_json_sacketh(const struct rcd_sacketh *sacketh)
{
	return json_pack("{s:I,s:I}", "seen", (json_int_t)sacketh->seen.val, "delay_ns",
		(json_int_t)sacketh->delay_ns);
}

static json_t *
dump_json_helloeth(const struct rcd_helloeth *helloeth)
{
	return json_pack(
		"{s:i,s:o}", "offers", helloeth->offers, "nonce", dump_json_hex64(helloeth->nonce));
}

static json_t *
dump_json_bth(const struct rcd_bth *bth)
{
	return json_pack("{s:i,s:s,s:b,s:b,s:i,s:i,s:i,s:b,s:b,s:i,s:I,s:b,s:I}", "opcode",
		bth->opcode, "name", rcd_opcode_name(bth->opcode), "solicited", bth->solicited,
		"mig_req", bth->mig_req, "pad", bth->pad_count, "tver", bth->tver, "pkey",
		bth->pkey.val, "fecn", bth->fecn, "becn", bth->becn, "mark", bth->mark, "dest_qp",
		(json_int_t)bth->dest_qpn.val, "ack_req", bth->ack_req, "psn",
		(json_int_t)bth->psn.val);
}

static json_t *
dump_json_mad(const struct rcd_pkt *pkt)
{
	struct rcd_mad mad;
	enum rcd_verdict verdict = rcd_mad_parse(pkt->payload, pkt->payload_len, &mad);
	const char *name;
	json_t *obj;

	if (verdict != RCD_VERDICT_OK)
		return json_pack("{s:s}", "verdict", rcd_verdict_name(verdict));
	name = mad.mgmt_class == RCD_MAD_CLASS_CM ? rcd_cm_attr_name(mad.attr_id) : NULL;
	obj = json_pack("{s:i,s:i,s:i,s:s?,s:o}", "class", mad.mgmt_class, "method", mad.method,
		"attr_id", mad.attr_id, "cm", name, "tid", dump_json_hex64(mad.tid));
	if (name != NULL)
		json_object_set_new(
			obj, "fields", dump_cm_json(pkt->payload + RCD_MAD_HDR_LEN, mad.attr_id));
	return obj;
}

static int
dump_json_set_roce(json_t *obj, const struct dump_packet *packet)
{
	const struct rcd_pkt *pkt = &packet->pkt;
	const struct rcd_roce *roce = &pkt->roce;
	int err = json_object_set_new(obj, "bth", dump_json_bth(&roce->bth));

#define RCD_EXT_HEADER(symbol, field, length)                                                      \
	if (rcd_opcode_has(roce->bth.opcode, RCD_EXT_##symbol))                                    \
		err |= json_object_set_new(obj, #field, dump_json_##field(&roce->field));
#include "rcd_ext.def"
#undef RCD_EXT_HEADER
	if (dump_is_mad(packet))
		err |= json_object_set_new(obj, "mad", dump_json_mad(pkt));
	err |= json_object_set_new(obj, "payload_len", json_integer(pkt->payload_len));
	err |= json_object_set_new(obj, "icrc", json_sprintf("0x%08x", packet->icrc_stored));
	err |= json_object_set_new(obj, "icrc_ok", json_boolean(packet->verdict == RCD_VERDICT_OK));
	return err;
}

static int
dump_json_set_ip(json_t *obj, const struct rcd_pkt *pkt)
{
	char addr[DUMP_ADDR_SIZE];
	int err;

	dump_addr_text(&pkt->sgid, addr);
	err = json_object_set_new(obj, "src", json_string(addr));
	dump_addr_text(&pkt->dgid, addr);
	err |= json_object_set_new(obj, "dst", json_string(addr));
	err |= json_object_set_new(obj, "tclass", json_integer(pkt->tclass));
	err |= json_object_set_new(obj, "hop_limit", json_integer(pkt->hop_limit));
	err |= json_object_set_new(obj, "ip_len", json_integer(pkt->ip_len));
	if (pkt->dport != 0) {
		err |= json_object_set_new(obj, "sport", json_integer(pkt->sport));
		err |= json_object_set_new(obj, "dport", json_integer(pkt->dport));
	}
	return err;
}

/* Print and release. @param obj may be NULL @param err not 0 when building it failed */
static int
dump_json_print(FILE *out, json_t *obj, int err)
{
	if (obj == NULL || err != 0 || json_dumpf(obj, out, JSON_COMPACT) != 0)
		err = -ENOMEM;
	json_decref(obj);
	fputc('\n', out);
	return err;
}

int
dump_json_packet(FILE *out, const struct dump_packet *packet)
{
	json_t *obj =
		json_pack("{s:I,s:o,s:I,s:I,s:s}", "number", (json_int_t)packet->number, "time",
			json_sprintf("%" PRIu64 ".%09" PRIu64, packet->time_ns / 1000000000,
				packet->time_ns % 1000000000),
			"frame_len", (json_int_t)packet->frame_len, "cap_len",
			(json_int_t)packet->cap_len, "verdict", rcd_verdict_name(packet->verdict));
	int err = 0;

	if (packet->pkt.eth.tagged)
		err |= json_object_set_new(
			obj, "vlan", json_integer(packet->pkt.eth.vlan_tci & 0xfff));
	if (packet->pkt.ip != NULL)
		err |= dump_json_set_ip(obj, &packet->pkt);
	if (dump_is_roce(packet))
		err |= dump_json_set_roce(obj, packet);
	return dump_json_print(out, obj, err);
}

int
dump_json_totals(FILE *out, const struct dump_totals *totals)
{
	json_t *obj = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "packets", (json_int_t)totals->packets,
		"roce", (json_int_t)totals->roce, "icrc_ok", (json_int_t)totals->icrc_ok,
		"icrc_bad", (json_int_t)totals->icrc_bad, "malformed",
		(json_int_t)totals->malformed, "other", (json_int_t)totals->other);
	json_t *counters = json_object();
	int err = 0;

	for (int i = 0; i < RCD_COUNTER_COUNT; i++) {
		uint64_t val = rcd_counter_get(&totals->counters, (enum rcd_counter)i);

		if (val != 0)
			err |= json_object_set_new(counters, rcd_counter_name((enum rcd_counter)i),
				json_integer((json_int_t)val));
	}
	err |= json_object_set_new(obj, "counters", counters);
	return dump_json_print(out, obj == NULL ? NULL : json_pack("{s:o}", "totals", obj), err);
}
