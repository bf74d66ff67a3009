/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Frames that stay where they are while a queue pair keeps them out of order, as an lcore's buffers
 * do. Each lies in memory of its own, so that a checker of addresses sees what is used too late or
 * never freed. Every other one, so that copies are tried as well.
 */
#include <stdlib.h>

#include "sim.h"

static void *
hold(void *arg, const struct rcd_pkt *pkt)
{
	struct sim *sim = ((struct sim_node *)arg)->sim;
	uint8_t *frame;

	(void)pkt;
	/* A test may hand over a packet of its own. */
	if (sim->arriving == NULL || sim->delivered % 2 == 0)
		return NULL;
	frame = *sim->arriving;
	*sim->arriving = NULL;
	return frame;
}

static void
release(void *arg, void *held)
{
	(void)arg;
	free(held);
}

void
sim_hold_frames(struct sim_node *node)
{
	struct rcd_reorder_host host = { .hold = hold, .release = release, .arg = node };

	rcd_reorder_pool_set_host(node->reorder, &host);
}
