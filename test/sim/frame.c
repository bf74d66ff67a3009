/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Frames of simulated nodes, by lib/wire.
 */
#include "frame.h"

#include "rcd_check.h"

/* In the IPv4 header: the TOS byte, the checksum, the last two bytes of the destination. */
#define AT_TOS  (RCD_ETH_LEN + 1)
#define AT_CSUM (RCD_ETH_LEN + 10)
#define AT_DEST (RCD_ETH_LEN + 18)

#define ECN_CE 3

struct rcd_gid
frame_gid(uint32_t number)
{
	uint8_t address[4] = { 10, 77 };

	rcd_put_be16(address + 2, (uint16_t)(number + 1));
	return rcd_gid_from_ipv4(address);
}

uint32_t
frame_dest(const uint8_t *frame)
{
	return rcd_get_be16(frame + AT_DEST) - UINT32_C(1);
}

uint32_t
frame_build(uint8_t *frame, const struct rcd_tx_pkt *pkt)
{
	struct rcd_path path = {
		.l3 = RCD_L3_IPV4,
		.tclass = pkt->av->tclass | 2, /* ECN-capable */
		.hop_limit = pkt->av->hop_limit,
		.sport = 0xc000,
		.sgid = pkt->av->sgid,
		.dgid = pkt->av->dgid,
	};
	size_t hdr_len = rcd_pkt_build(frame, &path, &pkt->roce, pkt->payload_len);
	uint8_t *at = frame + hdr_len;

	for (uint32_t i = 0; i < pkt->piece_count; i++) {
		memcpy(at, pkt->pieces[i].base, pkt->pieces[i].len);
		at += pkt->pieces[i].len;
	}
	RCD_CHECK(at == frame + hdr_len + pkt->payload_len);
	return (uint32_t)rcd_pkt_seal(frame, &path, hdr_len, pkt->payload_len);
}

bool
frame_can_mark(const uint8_t *frame)
{
	return (frame[AT_TOS] & ECN_CE) != 0;
}

void
frame_mark(uint8_t *frame)
{
	frame[AT_TOS] |= ECN_CE;
	rcd_put_be16(frame + AT_CSUM, 0);
	rcd_put_be16(
		frame + AT_CSUM, rcd_csum_fold(rcd_csum_add(0, frame + RCD_ETH_LEN, RCD_IPV4_LEN)));
}
