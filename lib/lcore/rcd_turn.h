/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Turns of those that want to send: deficit round robin with two lists (after FQ-CoDel, RFC 8290).
 * One that just became busy goes before those that have been busy for a quantum already, so a short
 * message waits for what is being sent at the moment and not for every long one in the round. The
 * new ones together get at most RCD_TURN_NEW_SHARE times the bytes of the old ones: nobody starves.
 * A few that are urgent send one packet before the round goes on; it is charged as others.
 * No allocation.
 *
 * Threads: one.
 */
#ifndef RCD_TURN_H
#define RCD_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/** Bytes that one may send before the next one's turn: a few packets of the largest size, about
 * 1.3 us at 100 Gb/s. A turn ends with the packet that uses it up. */
#define RCD_TURN_QUANTUM 16384

/** Bytes of new ones for each byte of the old ones, where both have something to send... */
#define RCD_TURN_NEW_SHARE 4

/** ...and how many of them at once. */
#define RCD_TURN_NEW_BYTES (RCD_TURN_NEW_SHARE * RCD_TURN_QUANTUM)

/** How many are urgent at once, at most: what they send together is less than a packet of data. */
#define RCD_TURN_URGENT 8

/** One of those that take turns. Zeroed: in no list. Members are private. */
struct rcd_turn {
	TAILQ_ENTRY(rcd_turn) link;
	struct rcd_turn_list *list; /**< NULL: has nothing to send */
	uint64_t sent;              /**< bytes, since ever; relaxed, any thread looks */
	uint64_t until;             /**< what that is at the end of its turn */
};

TAILQ_HEAD(rcd_turn_list, rcd_turn);

/** A round. */
struct rcd_turns {
	struct rcd_turn_list fresh;
	struct rcd_turn_list old;
	int32_t new_bytes; /**< that may go before an old one has its turn */
	/** In the round as well. */
	uint32_t urgent_count;
	struct rcd_turn *urgent[RCD_TURN_URGENT];
};

/** Begin an empty round. */
void
rcd_turns_init(struct rcd_turns *turns);

/** It has something to send, and is in no list. */
void
rcd_turn_enter(struct rcd_turns *turns, struct rcd_turn *turn);

/** It has something to send. Does nothing when it is in a list already. */
static inline void
rcd_turn_begin(struct rcd_turns *turns, struct rcd_turn *turn)
{
	if (turn->list == NULL)
		rcd_turn_enter(turns, turn);
}

/** Whether it is urgent already. */
static inline bool
rcd_turn_is_urgent(const struct rcd_turns *turns, const struct rcd_turn *turn)
{
	for (uint32_t i = 0; i < turns->urgent_count; i++)
		if (turns->urgent[i] == turn)
			return true;
	return false;
}

/**
 * It is in a list, and has something to send that is not to wait for its turn. Nothing is done when
 * it waits for something else than its turn, or too many are urgent.
 */
void
rcd_turn_urge(struct rcd_turns *turns, struct rcd_turn *turn);

/** One that is urgent, and is not any more. @return NULL: none is */
struct rcd_turn *
rcd_turn_next_urgent(struct rcd_turns *turns);

static inline bool
rcd_turn_any_urgent(const struct rcd_turns *turns)
{
	return turns->urgent_count > 0;
}

/** It has nothing to send, or is about to be freed. That is not urgent. */
void
rcd_turn_end(struct rcd_turn *turn);

/** It has to wait, for a port that takes nothing. @param blocked  a list of the caller */
void
rcd_turn_block(struct rcd_turn *turn, struct rcd_turn_list *blocked);

/** The first of a list, so many at most, go on with what was left of their turns. */
void
rcd_turn_unblock(struct rcd_turns *turns, struct rcd_turn_list *blocked, uint32_t most);

/** Who may send a packet now. @return NULL when nobody wants to */
struct rcd_turn *
rcd_turn_next(struct rcd_turns *turns);

/** What its list has had of the round. Private. */
static inline void
rcd_turn_account(struct rcd_turns *turns, const struct rcd_turn *turn, uint32_t bytes)
{
	if (turn->list == &turns->fresh) {
		/* No old one was there to wait for it: a debt of more than a round is nobody's. */
		turns->new_bytes -= (int32_t)bytes;
		if (turns->new_bytes < -RCD_TURN_NEW_BYTES)
			turns->new_bytes = -RCD_TURN_NEW_BYTES;
		return;
	}
	turns->new_bytes += (int32_t)bytes * RCD_TURN_NEW_SHARE;
	if (turns->new_bytes > RCD_TURN_NEW_BYTES)
		turns->new_bytes = RCD_TURN_NEW_BYTES;
}

/** It sent a packet. */
static inline void
rcd_turn_charge(struct rcd_turns *turns, struct rcd_turn *turn, uint32_t bytes)
{
	__atomic_store_n(&turn->sent, turn->sent + bytes, __ATOMIC_RELAXED);
	rcd_turn_account(turns, turn, bytes);
}

/** It used up a turn, and sent nothing. */
static inline void
rcd_turn_skip(struct rcd_turns *turns, struct rcd_turn *turn)
{
	turn->until -= RCD_TURN_QUANTUM;
	rcd_turn_account(turns, turn, RCD_TURN_QUANTUM);
}

/** Bytes that it was charged for, since it was zeroed. Any thread. */
static inline uint64_t
rcd_turn_bytes(const struct rcd_turn *turn)
{
	return __atomic_load_n(&turn->sent, __ATOMIC_RELAXED);
}

#endif /* RCD_TURN_H */
