/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A table of neighbours for tests: with a clock, a link, and two users' accounts.
 */
#ifndef NEIGH_LINK_H
#define NEIGH_LINK_H

#include "rcd_hop.h"
#include "rcd_neigh.h"
#include "rcd_quota.h"
#include "rcd_waiter.h"

#define SECOND     UINT64_C(1000000000)
#define LINK_PEER  1   /**< who may answer by himself */
#define LINK_QUOTA 512 /**< of an account */

/** Who asks for neighbours. */
struct guest {
	struct rcd_waiter waiter;
	struct rcd_quota_entry quota;
	uint32_t told;
};

extern struct guest alice, bob; /**< of two users */

extern uint64_t link_now_ns;
extern uint64_t link_round_ns; /**< between two ticks */
extern uint32_t link_asked;    /**< questions to the link */
extern bool link_answering;    /**< the peer answers them */
extern bool link_at_once;      /**< ...before the question is done, as a kernel does */
extern struct rcd_hops *link_hops;
extern struct rcd_neighs *link_neighs;
extern struct rcd_quota_book link_book;

extern const uint8_t link_peer_mac[RCD_MAC_LEN], link_new_mac[RCD_MAC_LEN];

/** Begin. @param by_v6  over IPv6 @param by_us  the link is asked by ourselves */
void
link_open(bool by_v6, bool by_us);

/** End: nothing is left, in the books either. */
void
link_close(void);

/** One more account of a user, and its end. */
void
link_join(struct guest *guest, uid_t uid);
void
link_leave(struct guest *guest);

/** An address of the link. */
struct rcd_hop_key
link_addr(uint32_t number);

/** Somebody has this MAC. */
void
link_learn(uint32_t number, const uint8_t *mac);

/** Ask for a neighbour, and wait for it. @param guest  NULL: on nobody's account */
int
link_ask_for(struct guest *guest, uint32_t number, uint32_t *hop);

/** The same on nobody's account, who does not wait. */
int
link_ask(uint32_t number);

/** Whether a place shows this MAC. */
bool
link_shows(uint32_t hop, const uint8_t *mac);

/** How many of some neighbours have an entry that shows their MAC. */
uint32_t
link_known(uint32_t first, uint32_t count);

/** Give back a user of each of some places. */
void
link_put(uint32_t first, uint32_t count);

/** One round of the control thread. A peer that answers does so at once. */
void
link_tick(void);

/** As many rounds as these seconds have. */
void
link_pass(uint32_t seconds);

#endif /* NEIGH_LINK_H */
