/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Notes of lcores: into the ring, those that the network causes not too often, and out of it.
 */
#include "rcd_note.h"

#include <rte_ring_elem.h>

#include "rcd_counter.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_queue.h"
#include "rcd_thread.h"

#define LINK_NOTES    16 /**< of packets of the network, in this time */
#define LINK_NOTES_NS 1000000

void
rcd_note_send(struct rcd_lcore *lcore, struct rcd_note *note)
{
	struct rte_ring *ring = lcore->lcores->notes;

	RCD_ON_LCORE(lcore);
	if (rte_ring_enqueue_elem(ring, note, sizeof(*note)) != 0) {
		rcd_counter_add(&lcore->counters, RCD_COUNTER_EVENTS_LOST, 1);
		return;
	}
	rcd_lcores_told(lcore->lcores, ring);
}

bool
rcd_note_send_link(struct rcd_lcore *lcore, struct rcd_note *note)
{
	struct rte_ring *ring = lcore->lcores->notes;

	RCD_ON_LCORE(lcore);
	if (lcore->now_ns - lcore->note_ns >= LINK_NOTES_NS) {
		lcore->note_ns = lcore->now_ns;
		lcore->note_left = LINK_NOTES;
	}
	if (lcore->note_left == 0 || rte_ring_free_count(ring) < rte_ring_get_capacity(ring) / 2)
		return false;
	lcore->note_left--;
	rcd_note_send(lcore, note);
	return true;
}

bool
rcd_note_agreed(void *hqp)
{
	const struct rcd_hqp *of = hqp;
	struct rcd_note note = { .kind = RCD_NOTE_AGREED, .whom = of->qpn };

	RCD_ON_LCORE(of->lcore);
	return rcd_note_send_link(of->lcore, &note);
}

bool
rcd_note_take(const struct rcd_lcores *lcores, struct rcd_note *note)
{
	RCD_ON_CONTROL();
	return rte_ring_dequeue_elem(lcores->notes, note, sizeof(*note)) == 0;
}
