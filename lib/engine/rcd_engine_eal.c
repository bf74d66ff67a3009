/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What an engine has of EAL: its lcores, and buffers near them.
 */
#include <assert.h>
#include <errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <stdio.h>

#include "rcd_engine_priv.h"
#include "rcd_lcores.h"
#include "rcd_log.h"
#include "rcd_thread.h"

#define MBUF_ROOM  (RTE_PKTMBUF_HEADROOM + RCD_FRAME_MAX_BYTES)
#define MBUF_CACHE 256

static_assert(RCD_NODES_MAX >= RTE_MAX_NUMA_NODES, "each node has a place for buffers");

static int
engine_eal_make_pool(struct rcd_engine *engine, int socket_id)
{
	/* One whose memory is lost keeps its name. */
	static uint32_t number;
	uint32_t count = engine->conf.mbufs != 0 ? engine->conf.mbufs : 16383;
	char name[32];

	if (engine->pools[socket_id] != NULL)
		return 0;
	snprintf(name, sizeof(name), "rocade_mbufs_%u", number++);
	/* With little memory a smaller pool does too; senders wait for buffers then. */
	for (; count >= 2047 && engine->pools[socket_id] == NULL; count /= 2)
		engine->pools[socket_id] =
			rte_pktmbuf_pool_create(name, count, MBUF_CACHE, 0, MBUF_ROOM, socket_id);
	return engine->pools[socket_id] != NULL ? 0 : -ENOMEM;
}

/* An lcore with buffers near it. */
static int
engine_eal_add_lcore(struct rcd_engine *engine, unsigned int lcore_id)
{
	int socket_id = (int)rte_lcore_to_socket_id(lcore_id);
	int err = engine_eal_make_pool(engine, socket_id);

	if (err != 0)
		return err;
	return rcd_lcores_add(&engine->lcores, lcore_id, engine->pools[socket_id]);
}

int
rcd_engine_eal_begin(struct rcd_engine *engine)
{
	uint32_t most = engine->conf.lcores != 0 ? engine->conf.lcores : RCD_LCORES_MAX;
	unsigned int lcore_id;
	int err = 0;

	RCD_ON_CONTROL();
	RTE_LCORE_FOREACH_WORKER(lcore_id) {
		if (err != 0 || engine->lcores.count == RTE_MIN(most, (uint32_t)RCD_LCORES_MAX))
			break;
		err = engine_eal_add_lcore(engine, lcore_id);
	}
	if (err != 0 || engine->lcores.count > 0)
		return err;
	/* Nobody to poll but the program itself. */
	return engine_eal_add_lcore(engine, rte_get_main_lcore());
}

void
rcd_engine_eal_end(struct rcd_engine *engine)
{
	RCD_ON_CONTROL();
	/* What a program took to send it may lie in its ports yet. */
	for (uint32_t i = 0; i < RCD_NODES_MAX; i++)
		if (engine->pools[i] == NULL || rte_mempool_full(engine->pools[i]))
			rte_mempool_free(engine->pools[i]);
		else
			RCD_LOG(WARNING, "%u buffers are not back: their pool's memory is lost",
				rte_mempool_in_use_count(engine->pools[i]));
}
