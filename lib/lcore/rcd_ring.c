/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A ring and what is left in it.
 */
#include "rcd_ring.h"

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "rcd_thread.h"

void
rcd_ring_free(struct rte_ring *ring)
{
	void *mbuf;

	RCD_ON_CONTROL();
	while (ring != NULL && rte_ring_dequeue(ring, &mbuf) == 0)
		rte_pktmbuf_free(mbuf);
	rte_ring_free(ring);
}
