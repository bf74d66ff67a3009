/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the parts of rocade-dump share: a judged packet, the totals, and the two ways of printing
 * them. One thread.
 */
#ifndef DUMP_H
#define DUMP_H

#include <jansson.h>
#include <stdio.h>

#include "rcd_pkt.h"

/** One packet of the capture, judged. */
struct dump_packet {
	uint64_t number;          /**< from 1 */
	uint64_t time_ns;         /**< since the epoch */
	uint64_t offset_ns;       /**< since the first packet */
	uint32_t frame_len;       /**< bytes on the wire */
	uint32_t cap_len;         /**< bytes that the capture holds */
	const uint8_t *l3;        /**< what follows the link header, for verdicts ARP and ICMP* */
	size_t l3_len;            /**< bytes of the capture from there on */
	enum rcd_verdict verdict; /**< RCD_VERDICT_ICRC included */
	struct rcd_pkt pkt;
	uint32_t icrc_stored; /**< both with verdict OK and ICRC only */
	uint32_t icrc_computed;
};

/** Totals over the capture. */
struct dump_totals {
	uint64_t packets;
	uint64_t roce; /**< icrc_ok + icrc_bad */
	uint64_t icrc_ok;
	uint64_t icrc_bad;
	uint64_t malformed;
	uint64_t other;
	struct rcd_counters counters; /**< by verdict */
};

/** Whether the transport headers of the packet were parsed and judged good. */
static inline bool
dump_is_roce(const struct dump_packet *packet)
{
	return packet->verdict == RCD_VERDICT_OK || packet->verdict == RCD_VERDICT_ICRC;
}

/** Whether its payload is a MAD: a datagram to QP1. */
static inline bool
dump_is_mad(const struct dump_packet *packet)
{
	return dump_is_roce(packet) &&
		rcd_opcode_info(packet->pkt.roce.bth.opcode)->service == RCD_SERVICE_UD &&
		packet->pkt.roce.bth.dest_qpn.val == RCD_QPN_GSI;
}

/** Room for an address in text. */
#define DUMP_ADDR_SIZE 46

/** Write a GID as an IPv4 or IPv6 address. @param buf DUMP_ADDR_SIZE bytes */
void
dump_addr_text(const struct rcd_gid *gid, char *buf);

/**
 * Judge one packet of a capture.
 *
 * @param dlt   link type that dump_link_known() accepts
 * @param data  packet->cap_len bytes
 * @param packet  number, times and lengths are set; the rest is filled
 */
void
dump_link_parse(int dlt, const uint8_t *data, struct dump_packet *packet);

/** Whether captures of this link type (DLT_*) can be read. */
bool
dump_link_known(int dlt);

/** Print every field of a CM message that is not 0. @param body behind the MAD header */
void
dump_cm_text(FILE *out, const uint8_t *body, uint16_t attr_id);

/** All fields of a CM message. @return new reference; NULL when memory is short */
json_t *
dump_cm_json(const uint8_t *body, uint16_t attr_id);

/** Print one packet as a line of text. */
void
dump_text_packet(FILE *out, const struct dump_packet *packet);

/** Print the closing line of text. */
void
dump_text_totals(FILE *out, const struct dump_totals *totals);

/** Print one packet as a JSON object on a line. @return 0, or -ENOMEM */
int
dump_json_packet(FILE *out, const struct dump_packet *packet);

/** Print the totals as a JSON object on a line. @return 0, or -ENOMEM */
int
dump_json_totals(FILE *out, const struct dump_totals *totals);

#endif /* DUMP_H */
