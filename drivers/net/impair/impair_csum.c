/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The sums of a frame that is sent.
 */
#include "impair_csum.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_ip.h>
#include <rte_net.h>
#include <rte_tcp.h>
#include <rte_udp.h>
#include <stddef.h>

/* @return where the sum is; NULL: it asks for none, or not for one that is within it */
static rte_be16_t *
impair_csum_place(struct rte_mbuf *mbuf)
{
	uint64_t kind = mbuf->ol_flags & RTE_MBUF_F_TX_L4_MASK;
	uint32_t start = (uint32_t)mbuf->l2_len + mbuf->l3_len;

	if (kind == RTE_MBUF_F_TX_TCP_CKSUM)
		start += offsetof(struct rte_tcp_hdr, cksum);
	else if (kind == RTE_MBUF_F_TX_UDP_CKSUM)
		start += offsetof(struct rte_udp_hdr, dgram_cksum);
	else
		return NULL;
	if (mbuf->nb_segs != 1 || start + sizeof(rte_be16_t) > rte_pktmbuf_data_len(mbuf))
		return NULL;
	return rte_pktmbuf_mtod_offset(mbuf, rte_be16_t *, start);
}

uint16_t
impair_csum_prepare(struct rte_mbuf **mbufs, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++) {
		struct rte_mbuf *mbuf = mbufs[i];

		if ((mbuf->ol_flags & RTE_MBUF_F_TX_L4_MASK) == 0)
			continue;
		if (impair_csum_place(mbuf) == NULL || rte_net_intel_cksum_prepare(mbuf) != 0) {
			rte_errno = ENOTSUP;
			return i;
		}
	}
	return count;
}

void
impair_csum_finish(struct rte_mbuf *mbuf)
{
	uint32_t start = (uint32_t)mbuf->l2_len + mbuf->l3_len;
	rte_be16_t *place = impair_csum_place(mbuf);
	uint16_t sum;

	if (place == NULL)
		return;
	sum = (uint16_t)~rte_raw_cksum(rte_pktmbuf_mtod_offset(mbuf, const void *, start),
		rte_pktmbuf_data_len(mbuf) - start);
	/* To UDP 0 would be none; to TCP it is the same number. */
	*place = sum != 0 ? sum : UINT16_MAX;
	mbuf->ol_flags &= ~RTE_MBUF_F_TX_L4_MASK;
}
