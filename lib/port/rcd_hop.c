/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Next hops: a fixed table with chains by hash. The MACs are apart from all else, so that those in
 * use are in few cache lines, which only a change writes.
 */
#include "rcd_hop.h"

#include <stdlib.h>
#include <string.h>

#include "rcd_bits.h"
#include "rcd_check.h"
#include "rcd_thread.h"

#define BUCKETS 65536u

struct slot {
	struct rcd_hop_key key;
	void *entry;
	uint32_t users;
	uint32_t next; /**< of its chain, or of those that are free */
};

struct rcd_hops {
	uint64_t seed[2];
	uint32_t capacity;
	uint32_t count;
	uint32_t fresh; /**< at and above it none was ever used */
	uint32_t first_free;
	struct slot *slots; /**< capacity + 1: the first is none */
	uint64_t *macs;     /**< as many */
	uint32_t *buckets;
};

struct rcd_hops *
rcd_hops_create(uint32_t capacity, const uint64_t *seed)
{
	struct rcd_hops *hops = calloc(1, sizeof(*hops));

	RCD_ON_CONTROL();
	if (hops == NULL)
		return NULL;
	memcpy(hops->seed, seed, sizeof(hops->seed));
	hops->capacity = capacity;
	hops->fresh = 1;
	hops->slots = calloc((size_t)capacity + 1, sizeof(hops->slots[0]));
	hops->macs = calloc((size_t)capacity + 1, sizeof(hops->macs[0]));
	hops->buckets = calloc(BUCKETS, sizeof(hops->buckets[0]));
	if (hops->slots == NULL || hops->macs == NULL || hops->buckets == NULL) {
		rcd_hops_destroy(hops);
		return NULL;
	}
	return hops;
}

void
rcd_hops_destroy(struct rcd_hops *hops)
{
	RCD_ON_CONTROL();
	if (hops == NULL)
		return;
	free(hops->slots);
	free(hops->macs);
	free(hops->buckets);
	free(hops);
}

uint64_t
rcd_hop_hash(const struct rcd_hop_key *key, const uint64_t *seed)
{
	uint64_t link = (uint64_t)key->dev << 32 | key->vlan_id;
	uint64_t halves[2];

	memcpy(halves, key->gid.raw, sizeof(halves));
	link = rcd_mix(link ^ seed[0], halves[0] ^ seed[1]);
	link = rcd_mix(link ^ seed[1], halves[1] ^ seed[0]);
	/* Addresses in a row are still a row here: once more, by what is not linear in them. */
	return rcd_mix(link ^ seed[0], link >> 32 ^ seed[1]);
}

static uint32_t *
hop_bucket(const struct rcd_hops *hops, const struct rcd_hop_key *key)
{
	return &hops->buckets[rcd_hop_hash(key, hops->seed) % BUCKETS];
}

const uint64_t *
rcd_hops_macs(const struct rcd_hops *hops)
{
	RCD_ON_CONTROL();
	return hops->macs;
}

uint32_t
rcd_hops_count(const struct rcd_hops *hops)
{
	RCD_ON_CONTROL();
	return hops->count;
}

uint32_t
rcd_hop_find(const struct rcd_hops *hops, const struct rcd_hop_key *key)
{
	uint32_t hop = *hop_bucket(hops, key);

	RCD_ON_CONTROL();
	while (hop != RCD_HOP_NONE && memcmp(&hops->slots[hop].key, key, sizeof(*key)) != 0)
		hop = hops->slots[hop].next;
	return hop;
}

static uint32_t
hop_new(struct rcd_hops *hops, const struct rcd_hop_key *key)
{
	uint32_t *bucket = hop_bucket(hops, key);
	uint32_t hop = hops->first_free;

	if (hop != RCD_HOP_NONE)
		hops->first_free = hops->slots[hop].next;
	else if (hops->fresh <= hops->capacity)
		hop = hops->fresh++;
	else
		return RCD_HOP_NONE;
	hops->slots[hop] = (struct slot){ .key = *key, .next = *bucket };
	__atomic_store_n(&hops->macs[hop], 0, __ATOMIC_RELAXED);
	*bucket = hop;
	hops->count++;
	return hop;
}

/* A place that nobody needs any more is free. */
static void
hop_settle(struct rcd_hops *hops, uint32_t hop)
{
	struct slot *slot = &hops->slots[hop];
	uint32_t *link = hop_bucket(hops, &slot->key);

	if (slot->entry != NULL || slot->users > 0)
		return;
	while (*link != hop)
		link = &hops->slots[*link].next;
	*link = slot->next;
	slot->next = hops->first_free;
	hops->first_free = hop;
	hops->count--;
}

uint32_t
rcd_hop_claim(struct rcd_hops *hops, const struct rcd_hop_key *key, void *entry)
{
	uint32_t hop = rcd_hop_find(hops, key);

	RCD_ON_CONTROL();
	if (hop == RCD_HOP_NONE)
		hop = hop_new(hops, key);
	if (hop == RCD_HOP_NONE)
		return RCD_HOP_NONE;
	RCD_CHECK(hops->slots[hop].entry == NULL);
	hops->slots[hop].entry = entry;
	return hop;
}

uint32_t
rcd_hop_make(struct rcd_hops *hops, const struct rcd_hop_key *key, const uint8_t *mac)
{
	uint32_t hop;

	RCD_ON_CONTROL();
	hop = hop_new(hops, key);
	if (hop == RCD_HOP_NONE)
		return RCD_HOP_NONE;
	rcd_hop_get(hops, hop);
	rcd_hop_set(hops, hop, mac);
	return hop;
}

void
rcd_hop_disclaim(struct rcd_hops *hops, uint32_t hop)
{
	RCD_ON_CONTROL();
	RCD_CHECK(hops->slots[hop].entry != NULL);
	hops->slots[hop].entry = NULL;
	hop_settle(hops, hop);
}

void *
rcd_hop_entry(const struct rcd_hops *hops, uint32_t hop)
{
	RCD_ON_CONTROL();
	return hops->slots[hop].entry;
}

void
rcd_hop_get(struct rcd_hops *hops, uint32_t hop)
{
	RCD_ON_CONTROL();
	if (hop != RCD_HOP_NONE)
		hops->slots[hop].users++;
}

void
rcd_hop_put(struct rcd_hops *hops, uint32_t hop)
{
	RCD_ON_CONTROL();
	if (hop == RCD_HOP_NONE)
		return;
	RCD_CHECK(hops->slots[hop].users > 0);
	hops->slots[hop].users--;
	hop_settle(hops, hop);
}

uint32_t
rcd_hop_users(const struct rcd_hops *hops, uint32_t hop)
{
	RCD_ON_CONTROL();
	return hops->slots[hop].users;
}

void
rcd_hop_set(struct rcd_hops *hops, uint32_t hop, const uint8_t *mac)
{
	uint64_t word = 0;

	RCD_ON_CONTROL();
	memcpy(&word, mac, RCD_MAC_LEN);
	__atomic_store_n(&hops->macs[hop], word, __ATOMIC_RELAXED);
}
