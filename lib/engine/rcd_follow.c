/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queue pairs and address handles follow their neighbours: each has the MAC of its next hop, and
 * the control thread goes through all of them, some at a time, to see whether it is the right one
 * still. So it also knows which neighbours are in use.
 */
#include "rcd_engine_priv.h"

#define SLOTS_AT_ONCE 8192 /**< looked at in a step */
#define MOVES_AT_ONCE 32   /**< told to an lcore in one command */

/* Those of one session that have moved. */
struct moves {
	struct rcd_session *session;
	uint32_t count;
	struct {
		struct rcd_hqp *hqp; /**< NULL: an address handle */
		uint32_t handle;
		const uint8_t *mac;
	} of[MOVES_AT_ONCE];
};

static void
move_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct moves *moves = arg;

	(void)lcore;
	for (uint32_t i = 0; i < moves->count; i++) {
		if (moves->of[i].hqp == NULL)
			rcd_ah_move(moves->session->ahs, moves->of[i].handle, moves->of[i].mac);
		else if (moves->of[i].hqp->path_valid)
			/* The header begins with the destination. */
			memcpy(moves->of[i].hqp->hdr.bytes, moves->of[i].mac, RCD_MAC_LEN);
	}
}

static void
carry_out(struct moves *moves)
{
	if (moves->count > 0)
		rcd_lcore_call(moves->session->lcore, move_on_lcore, moves);
	moves->count = 0;
}

static void
look(struct moves *moves, struct rcd_hqp *hqp, uint32_t handle, struct rcd_next *next,
	uint64_t now_ns)
{
	if (!next->neighbour || !rcd_neigh_moved(moves->session->dev, next, now_ns))
		return;
	moves->of[moves->count].hqp = hqp;
	moves->of[moves->count].handle = handle;
	moves->of[moves->count++].mac = next->mac;
	if (moves->count == MOVES_AT_ONCE)
		carry_out(moves);
}

/* Queue pairs first, then address handles. @return places left; the session is done when > 0 */
static uint32_t
go_through(struct rcd_session *session, uint32_t *place, uint32_t left, uint64_t now_ns)
{
	struct moves moves = { .session = session };
	uint32_t qps = session->hqps.capacity;
	uint32_t all = qps + session->ah_places;

	for (; *place < all && left > 0; (*place)++, left--) {
		if (*place >= qps) {
			uint32_t handle = *place - qps;

			if (session->ah_count == 0)
				*place = all - 1;
			else
				look(&moves, NULL, handle, &session->ah_next[handle], now_ns);
		} else if (*place >= session->hqps.fresh) {
			*place = qps - 1;
		} else {
			struct rcd_hqp *hqp = session->hqps.slots[*place];

			if (hqp != NULL)
				look(&moves, hqp, 0, &hqp->next, now_ns);
		}
	}
	carry_out(&moves);
	return left;
}

void
rcd_follow_all(struct rcd_engine *engine)
{
	engine->follow_serial = 0;
	engine->follow_place = 0;
	engine->follow_soon = true;
	rcd_engine_wake(engine);
}

void
rcd_follow(struct rcd_engine *engine, uint64_t now_ns)
{
	/* Where it was; who was there may have gone: then from the beginning. */
	struct rcd_session *session = rcd_session_find(engine, engine->follow_serial);
	uint32_t left = SLOTS_AT_ONCE;

	if (session == NULL) {
		session = LIST_FIRST(&engine->sessions);
		engine->follow_place = 0;
	}
	for (; session != NULL && left > 0; session = LIST_NEXT(session, link)) {
		if (session->dev != NULL)
			left = go_through(session, &engine->follow_place, left, now_ns);
		engine->follow_serial = session->serial;
		if (left == 0)
			break;
		engine->follow_place = 0;
		left--;
	}
	if (session != NULL) {
		if (engine->follow_soon)
			rcd_engine_wake(engine);
		return;
	}
	/* Once through. */
	engine->follow_serial = 0;
	engine->follow_soon = false;
}
