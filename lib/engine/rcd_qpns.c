/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Numbers of queue pairs, slot by slot from a random one on.
 */
#include "rcd_qpns.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_id.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_random.h"
#include "rcd_thread.h"

int
rcd_qpns_init(struct rcd_qpns *qpns, struct rcd_lcores *lcores, struct rcd_random *random)
{
	RCD_ON_CONTROL();
	*qpns = (struct rcd_qpns){ .lcores = lcores, .random = random };
	qpns->high = calloc(RCD_QP_SLOTS, sizeof(qpns->high[0]));
	return qpns->high != NULL ? 0 : -ENOMEM;
}

void
rcd_qpns_fini(struct rcd_qpns *qpns)
{
	RCD_ON_CONTROL();
	free(qpns->high);
	qpns->high = NULL;
}

int
rcd_qpns_take(struct rcd_qpns *qpns, uint32_t lcore_index, uint32_t *qpn)
{
	uint8_t *owner = qpns->lcores->qp_owner;
	uint32_t random;

	RCD_ON_CONTROL();
	random = rcd_random_u32(qpns->random);
	for (uint32_t i = 0; i < RCD_QP_SLOTS; i++) {
		uint32_t slot = (random + i) % RCD_QP_SLOTS;
		uint8_t high = (uint8_t)(qpns->high[slot] + 1 + (random >> 16) % 255);
		uint32_t number = high * RCD_QP_SLOTS + slot;

		/* The lowest numbers and the one of multicast have meanings of their own. */
		if (number < RCD_QPNS_RESERVED || number == RCD_QPN_MULTICAST || owner[slot] != 0)
			continue;
		__atomic_store_n(&owner[slot], (uint8_t)(lcore_index + 1), __ATOMIC_RELAXED);
		qpns->high[slot] = high;
		qpns->used++;
		*qpn = number;
		return 0;
	}
	return -ENOMEM;
}

void
rcd_qpns_move(struct rcd_qpns *qpns, uint32_t qpn, uint32_t lcore_index)
{
	RCD_ON_CONTROL();
	__atomic_store_n(&qpns->lcores->qp_owner[qpn % RCD_QP_SLOTS], (uint8_t)(lcore_index + 1),
		__ATOMIC_RELAXED);
}

void
rcd_qpns_give(struct rcd_qpns *qpns, uint32_t qpn)
{
	RCD_ON_CONTROL();
	if (qpn == 0)
		return;
	__atomic_store_n(&qpns->lcores->qp_owner[qpn % RCD_QP_SLOTS], 0, __ATOMIC_RELAXED);
	qpns->used--;
}
