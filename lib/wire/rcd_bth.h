/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Base Transport Header, the 12 bytes that every RoCEv2 packet begins with (IBTA Vol. 1, 9.2).
 */
#ifndef RCD_BTH_H
#define RCD_BTH_H

#include "rcd_bytes.h"
#include "rcd_id.h"
#include "rcd_psn.h"
#include "rcd_verdict.h"

#define RCD_BTH_LEN 12

/** Byte of the BTH that holds FECN, BECN and reserved bits, and that the ICRC masks. */
#define RCD_BTH_ECN_OFFSET 4

/** Of that byte the reserved bits, in which Rocades mark packets (doc/sack.md). */
#define RCD_BTH_MARK_MASK 0x3f

/** A BTH, host order. Other reserved bits are ignored by parse and written as 0 by build. */
struct rcd_bth {
	uint8_t opcode;
	uint8_t pad_count; /**< pad bytes behind the payload, 0..3 */
	uint8_t tver;      /**< transport header version, 4 bits, 0 */
	bool solicited;    /**< solicited event */
	bool mig_req;      /**< migration state; 1 for "migrated" is what adapters send */
	bool ack_req;      /**< the requester wants an acknowledge for this packet */
	bool fecn;         /**< congestion met on the way (RoCEv2 uses IP's ECN bits instead) */
	bool becn;         /**< set in a CNP */
	uint8_t mark;      /**< reserved, and not covered by the ICRC: 6 bits, else 0 */
	struct rcd_pkey pkey;
	struct rcd_qpn dest_qpn;
	struct rcd_psn psn;
};

/**
 * Parse a BTH. Values are not judged: any opcode and any version is taken as it is.
 *
 * @return RCD_VERDICT_OK or RCD_VERDICT_BTH_SHORT
 */
static inline enum rcd_verdict
rcd_bth_parse(const uint8_t *src, size_t len, struct rcd_bth *bth)
{
	if (len < RCD_BTH_LEN)
		return RCD_VERDICT_BTH_SHORT;
	bth->opcode = src[0];
	bth->solicited = src[1] & 0x80;
	bth->mig_req = src[1] & 0x40;
	bth->pad_count = src[1] >> 4 & 0x03;
	bth->tver = src[1] & 0x0f;
	bth->pkey.val = rcd_get_be16(src + 2);
	bth->fecn = src[4] & 0x80;
	bth->becn = src[4] & 0x40;
	bth->mark = src[4] & RCD_BTH_MARK_MASK;
	bth->dest_qpn.val = rcd_get_be24(src + 5);
	bth->ack_req = src[8] & 0x80;
	bth->psn = rcd_psn(rcd_get_be24(src + 9));
	return RCD_VERDICT_OK;
}

/** Write a BTH. @param dst RCD_BTH_LEN writable bytes */
static inline void
rcd_bth_build(uint8_t *dst, const struct rcd_bth *bth)
{
	dst[0] = bth->opcode;
	dst[1] = (uint8_t)(bth->solicited << 7 | bth->mig_req << 6 | (bth->pad_count & 0x03) << 4 |
		(bth->tver & 0x0f));
	rcd_put_be16(dst + 2, bth->pkey.val);
	dst[4] = (uint8_t)(bth->fecn << 7 | bth->becn << 6 | (bth->mark & RCD_BTH_MARK_MASK));
	rcd_put_be24(dst + 5, bth->dest_qpn.val);
	dst[8] = (uint8_t)(bth->ack_req << 7);
	rcd_put_be24(dst + 9, bth->psn.val);
}

#endif /* RCD_BTH_H */
