/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Turns of those that want to send.
 */
#include "rcd_turn.h"

static void
turn_move(struct rcd_turn *turn, struct rcd_turn_list *list)
{
	if (turn->list != NULL)
		TAILQ_REMOVE(turn->list, turn, link);
	turn->list = list;
	if (list != NULL)
		TAILQ_INSERT_TAIL(list, turn, link);
}

void
rcd_turns_init(struct rcd_turns *turns)
{
	TAILQ_INIT(&turns->fresh);
	TAILQ_INIT(&turns->old);
	turns->new_bytes = RCD_TURN_NEW_BYTES;
	turns->urgent_count = 0;
}

void
rcd_turn_enter(struct rcd_turns *turns, struct rcd_turn *turn)
{
	turn->until = turn->sent + RCD_TURN_QUANTUM;
	turn_move(turn, &turns->fresh);
}

/* And not for a port, or a copy. */
static bool
turn_waits_for_turn(const struct rcd_turns *turns, const struct rcd_turn *turn)
{
	return turn->list == &turns->fresh || turn->list == &turns->old;
}

void
rcd_turn_urge(struct rcd_turns *turns, struct rcd_turn *turn)
{
	if (!turn_waits_for_turn(turns, turn) || rcd_turn_is_urgent(turns, turn))
		return;
	if (turns->urgent_count < RCD_TURN_URGENT)
		turns->urgent[turns->urgent_count++] = turn;
}

struct rcd_turn *
rcd_turn_next_urgent(struct rcd_turns *turns)
{
	while (turns->urgent_count > 0) {
		struct rcd_turn *turn = turns->urgent[--turns->urgent_count];

		/* What another sent may have filled the port. */
		if (turn_waits_for_turn(turns, turn))
			return turn;
	}
	return NULL;
}

void
rcd_turn_end(struct rcd_turn *turn)
{
	turn_move(turn, NULL);
}

void
rcd_turn_block(struct rcd_turn *turn, struct rcd_turn_list *blocked)
{
	turn_move(turn, blocked);
}

void
rcd_turn_unblock(struct rcd_turns *turns, struct rcd_turn_list *blocked, uint32_t most)
{
	struct rcd_turn *turn;

	for (uint32_t i = 0; i < most && (turn = TAILQ_FIRST(blocked)) != NULL; i++)
		turn_move(turn, &turns->old);
}

struct rcd_turn *
rcd_turn_next(struct rcd_turns *turns)
{
	for (;;) {
		struct rcd_turn *old = TAILQ_FIRST(&turns->old);
		struct rcd_turn *turn = TAILQ_FIRST(&turns->fresh);

		if (turn == NULL || (old != NULL && turns->new_bytes <= 0))
			turn = old;
		if (turn == NULL)
			return NULL;
		if ((int64_t)(turn->until - turn->sent) > 0)
			return turn;
		turn->until += RCD_TURN_QUANTUM;
		turn_move(turn, &turns->old);
	}
}
