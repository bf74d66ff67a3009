/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Next hops: numbered places with the MAC of a neighbour, which address vectors refer to. A MAC
 * that changes is one store, and every packet that is built behind it has the new one.
 *
 * A place belongs to the address on the link that it is made for. It stays as long as anybody uses
 * it: address vectors, which are counted, and the entry of the table of neighbours, of which there
 * is one at most. When the entry goes before the vectors do, the place keeps its MAC, and the next
 * entry for this address finds it again, with its users. Devices have places too, without entries:
 * for vectors that lead to them within the engine.
 *
 * Threads: the control thread, which alone stores MACs; any loads them (rcd_hop_word.h). A vector's
 * owner stops looking before it gives up its place.
 */
#ifndef RCD_HOP_H
#define RCD_HOP_H

#include <stdint.h>

#include "rcd_gid.h"
#include "rcd_hop_word.h"

/** What a place belongs to: an address on a link. */
struct rcd_hop_key {
	uint32_t dev;     /**< number of the device, which no other ever has */
	uint32_t vlan_id; /**< 0: untagged */
	struct rcd_gid gid;
};

struct rcd_hops;

/**
 * Make the table.
 *
 * @param capacity  places; memory is touched only for those that are used
 * @param seed      two words that nobody can guess: clients choose addresses
 * @return NULL: no memory
 */
struct rcd_hops *
rcd_hops_create(uint32_t capacity, const uint64_t *seed);

/** Free it. NULL is allowed. */
void
rcd_hops_destroy(struct rcd_hops *hops);

/** A number for an address that nobody can guess without the seed. Any thread. */
uint64_t
rcd_hop_hash(const struct rcd_hop_key *key, const uint64_t *seed);

/** The MACs by number, for rcd_hop_word(): as long as the table. */
const uint64_t *
rcd_hops_macs(const struct rcd_hops *hops);

/** Places in use, for tests: none is lost, and none kept without a user. */
uint32_t
rcd_hops_count(const struct rcd_hops *hops);

/** The place of an address. @return RCD_HOP_NONE: it has none */
uint32_t
rcd_hop_find(const struct rcd_hops *hops, const struct rcd_hop_key *key);

/**
 * A place for the entry of an address: the one that it has, or a new one, whose MAC is not known.
 *
 * @return RCD_HOP_NONE: all are in use
 */
uint32_t
rcd_hop_claim(struct rcd_hops *hops, const struct rcd_hop_key *key, void *entry);

/**
 * A place that never has an entry, with a MAC. Who makes it is its first user.
 *
 * @param key  of no neighbour
 * @return RCD_HOP_NONE: all are in use
 */
uint32_t
rcd_hop_make(struct rcd_hops *hops, const struct rcd_hop_key *key, const uint8_t *mac);

/** The entry goes. */
void
rcd_hop_disclaim(struct rcd_hops *hops, uint32_t hop);

/** The entry of a place. @return NULL: it has none, or the place is RCD_HOP_NONE */
void *
rcd_hop_entry(const struct rcd_hops *hops, uint32_t hop);

/** One more vector has this place, or one less. RCD_HOP_NONE is left alone. */
void
rcd_hop_get(struct rcd_hops *hops, uint32_t hop);
void
rcd_hop_put(struct rcd_hops *hops, uint32_t hop);

/** Vectors that have it. */
uint32_t
rcd_hop_users(const struct rcd_hops *hops, uint32_t hop);

/** The MAC from now on. */
void
rcd_hop_set(struct rcd_hops *hops, uint32_t hop, const uint8_t *mac);

#endif /* RCD_HOP_H */
