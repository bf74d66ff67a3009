/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the impairment driver is to do, as text and as numbers. No EAL is needed.
 */
#ifndef IMPAIR_ARGS_H
#define IMPAIR_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_sequence.h"

#define IMPAIR_NAME_LEN 64

/** What happens to packets; each has a probability of its own. */
enum impair_kind {
	IMPAIR_DROP,
	IMPAIR_CORRUPT,   /**< one bit is turned, behind the Ethernet header */
	IMPAIR_ECN,       /**< Congestion Experienced, on packets that are ECN-capable (RFC 3168) */
	IMPAIR_DUPLICATE, /**< the copy follows at once */
	IMPAIR_REORDER,   /**< held back until others passed it */
	IMPAIR_DELAY,     /**< held back for a time */
	IMPAIR_KINDS,
};

extern const char *const impair_kind_names[IMPAIR_KINDS];

/** Settings. */
struct impair_args {
	char port[IMPAIR_NAME_LEN];       /**< name of the ethdev that is wrapped; "": not given */
	uint64_t threshold[IMPAIR_KINDS]; /**< probability times 2^32 */
	uint32_t gap;                     /**< packets that pass a reordered one */
	uint32_t delay_us;                /**< how long a delayed one waits */
	uint64_t seed;
	uint32_t burst;  /**< packets that it takes, and gives, in one call; 0: any */
	uint32_t ring;   /**< places in a queue at most, as it says; 0: as wrapped */
	bool busy;       /**< it has to be stopped before its MTU can change */
	uint32_t reset;  /**< it was reset: nothing goes until it was tried so often to set it up */
	uint32_t queues; /**< of its own, before a port that has one; 0: those of the port */
	uint32_t flow;   /**< 1: those know flow rules; 2: such that choose their hash */
	uint32_t fewer;  /**< queues that a reset leaves it without */
	bool rx;         /**< received packets are impaired */
	bool tx;         /**< sent ones are */
};

/** No impairment, sending side, gap 3, delay 100 us, seed 1; flow rules, where it has queues. */
void
impair_args_init(struct impair_args *args);

/**
 * Take settings from text over those that are there: drop=1%,duplicate=0.01,reorder=1%,gap=5,
 * delay=100%,delay_us=50,corrupt=1e-3,ecn=0.5,seed=7,side=tx|rx|both,port=NAME; and what other
 * drivers do: burst=4,ring=64,busy=1,reset=1,queues=3,flow=0,fewer=1.
 *
 * @param error  set to a sentence on failure, when args is left as it was
 * @return 0 or -EINVAL
 */
int
impair_args_parse(struct impair_args *args, const char *text, char *error, size_t error_len);

/**
 * Decide for one packet.
 *
 * @param sequence  goes on
 * @return a set of bits, 1 << enum impair_kind; dropped ones have no other, and a packet is either
 *     reordered or delayed
 */
uint32_t
impair_decide(const struct impair_args *args, struct rcd_sequence *sequence);

#endif /* IMPAIR_ARGS_H */
