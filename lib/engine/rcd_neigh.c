/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Neighbours: from an address to the MAC of the next hop. A device that owns its addresses asks
 * the link itself; for a kernel's netdev the kernel is asked.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <rte_hash.h>
#include <rte_jhash.h>
#include <stdlib.h>

#define NEIGHS_MAX   4096
#define ASK_EVERY_NS 100000000u  /**< while nobody answers */
#define ASK_TIMES    25          /**< then nobody is there */
#define FAILED_NS    1000000000u /**< before it is asked again */

struct key {
	uint32_t dev;
	struct rcd_gid gid;
};

enum state {
	STATE_ASKING,
	STATE_KNOWN,
	STATE_FAILED,
};

struct neigh {
	struct key key;
	uint8_t mac[RCD_MAC_LEN];
	uint8_t state; /**< enum state */
	uint8_t asked;
	int sgid_index;
	uint64_t due_ns; /**< asking: ask again; failed: forget */
};

struct rcd_neigh_table {
	struct rte_hash *hash;
	uint32_t asking; /**< entries that are not known */
};

struct rcd_neigh_table *
rcd_neigh_create(struct rcd_engine *engine)
{
	struct rte_hash_parameters params = {
		.name = "rocade_neigh",
		.entries = NEIGHS_MAX,
		.key_len = sizeof(struct key),
		.hash_func = rte_jhash,
		.hash_func_init_val = (uint32_t)engine->secret[0],
		.socket_id = SOCKET_ID_ANY,
	};
	struct rcd_neigh_table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		return NULL;
	table->hash = rte_hash_create(&params);
	if (table->hash == NULL) {
		free(table);
		return NULL;
	}
	return table;
}

static void
drop(struct rcd_neigh_table *table, struct neigh *neigh)
{
	rte_hash_del_key(table->hash, &neigh->key);
	free(neigh);
}

void
rcd_neigh_destroy(struct rcd_neigh_table *table)
{
	const void *key;
	void *data;
	uint32_t next = 0;

	if (table == NULL)
		return;
	while (rte_hash_iterate(table->hash, &key, &data, &next) >= 0)
		free(data);
	rte_hash_free(table->hash);
	free(table);
}

static struct neigh *
find(struct rcd_dev *dev, const struct rcd_gid *gid)
{
	struct key key = { .dev = dev->index, .gid = *gid };
	void *data;

	return rte_hash_lookup_data(dev->engine->neighs->hash, &key, &data) >= 0 ? data : NULL;
}

static struct neigh *
add(struct rcd_dev *dev, const struct rcd_gid *gid)
{
	struct neigh *neigh = calloc(1, sizeof(*neigh));

	if (neigh == NULL)
		return NULL;
	neigh->key = (struct key){ .dev = dev->index, .gid = *gid };
	if (rte_hash_add_key_data(dev->engine->neighs->hash, &neigh->key, neigh) != 0) {
		free(neigh);
		return NULL;
	}
	return neigh;
}

struct question {
	struct rcd_dev *dev;
	struct rcd_gid source;
	struct rcd_gid target;
	uint16_t vlan_id;
};

static void
ask_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct question *question = arg;

	rcd_link_solicit(
		lcore, question->dev, &question->source, &question->target, question->vlan_id);
}

static void
ask(struct rcd_dev *dev, struct neigh *neigh, uint64_t now_ns)
{
	const struct rcd_gid_table *gids = dev->gids;

	neigh->asked++;
	neigh->due_ns = now_ns + ASK_EVERY_NS;
	if (dev->answers) {
		struct question question = { .dev = dev, .target = neigh->key.gid };

		if ((uint32_t)neigh->sgid_index >= gids->count)
			return;
		question.source = gids->entries[neigh->sgid_index].gid;
		question.vlan_id = gids->entries[neigh->sgid_index].vlan_id;
		rcd_lcore_call(dev->engine->lcores[0], ask_on_lcore, &question);
	} else {
		rcd_netlink_probe(dev, &neigh->key.gid);
	}
}

static bool
same_subnet(const struct rcd_gid *a, const struct rcd_gid *b, uint8_t prefix_len)
{
	uint32_t bits = prefix_len;
	uint32_t i = 0;

	if (rcd_gid_is_ipv4(a) != rcd_gid_is_ipv4(b))
		return false;
	if (rcd_gid_is_ipv4(a))
		bits += 96;
	for (; bits >= 8; bits -= 8, i++)
		if (a->raw[i] != b->raw[i])
			return false;
	return bits == 0 || (a->raw[i] ^ b->raw[i]) >> (8 - bits) == 0;
}

int
rcd_neigh_on_link(const struct rcd_dev *dev, const struct rcd_gid *gid)
{
	const struct rcd_gid_table *gids = dev->gids;
	int best = -1;

	for (uint32_t i = 0; i < gids->count; i++)
		if (gids->entries[i].used &&
			same_subnet(&gids->entries[i].gid, gid, gids->entries[i].prefix_len) &&
			(best < 0 || gids->entries[i].prefix_len > gids->entries[best].prefix_len))
			best = (int)i;
	return best;
}

/* The address on the link that packets have to go to. */
static int
next_hop(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *dgid, struct rcd_gid *hop)
{
	static const struct rcd_gid none;
	const struct rcd_gid_table *gids = dev->gids;
	const struct rcd_gid *gateway;

	*hop = *dgid;
	if (!dev->answers)
		return rcd_netlink_route(dev, dgid, hop);
	for (uint32_t i = 0; i < gids->count; i++)
		if (gids->entries[i].used &&
			gids->entries[i].vlan_id == gids->entries[sgid_index].vlan_id &&
			same_subnet(&gids->entries[i].gid, dgid, gids->entries[i].prefix_len))
			return 0;
	gateway = rcd_gid_is_ipv4(dgid) ? &dev->conf.gateway4 : &dev->conf.gateway6;
	if (rcd_gid_eq(gateway, &none))
		return -ENETUNREACH;
	*hop = *gateway;
	return 0;
}

bool
rcd_neigh_reachable(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *dgid)
{
	struct rcd_gid hop;

	return next_hop(dev, sgid_index, dgid, &hop) == 0;
}

void
rcd_neigh_multicast_mac(const struct rcd_gid *gid, uint8_t *mac)
{
	if (rcd_gid_is_ipv4(gid)) {
		/* RFC 1112, 6.4: the low 23 bits. */
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		mac[3] = gid->raw[13] & 0x7f;
		mac[4] = gid->raw[14];
		mac[5] = gid->raw[15];
	} else {
		/* RFC 2464, 7. */
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, gid->raw + 12, 4);
	}
}

/* An address of this engine that packets reach without a port. */
static struct rcd_dev *
local_dev(struct rcd_dev *dev, const struct rcd_gid *dgid)
{
	if (rcd_dev_gid_find(dev, dgid) >= 0)
		return dev;
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		struct rcd_dev *other = dev->engine->devs[i];

		if (other != NULL && !dev->wire && !other->wire &&
			rcd_dev_gid_find(other, dgid) >= 0)
			return other;
	}
	return NULL;
}

int
rcd_neigh_resolve(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *dgid, uint8_t *mac)
{
	struct rcd_dev *local = local_dev(dev, dgid);
	struct neigh *neigh;
	struct rcd_gid hop;
	int err;

	if (local != NULL) {
		memcpy(mac, local->mac, RCD_MAC_LEN);
		return 0;
	}
	if (rcd_gid_is_multicast(dgid)) {
		rcd_neigh_multicast_mac(dgid, mac);
		return 0;
	}
	err = next_hop(dev, sgid_index, dgid, &hop);
	if (err != 0)
		return err;
	neigh = find(dev, &hop);
	if (neigh == NULL) {
		neigh = add(dev, &hop);
		if (neigh == NULL)
			return -ENOMEM;
		neigh->sgid_index = sgid_index;
		dev->engine->neighs->asking++;
		/* A kernel that knows it tells at once. */
		ask(dev, neigh, rcd_clock_ns());
	}
	switch ((enum state)neigh->state) {
	case STATE_ASKING:
		return -EAGAIN;
	case STATE_FAILED:
		return -ETIMEDOUT;
	case STATE_KNOWN:
		break;
	}
	memcpy(mac, neigh->mac, RCD_MAC_LEN);
	return 0;
}

struct move {
	struct rcd_dev *dev;
	uint8_t from[RCD_MAC_LEN];
	uint8_t to[RCD_MAC_LEN];
};

/* The next hop has another MAC now: connected queue pairs follow at once. */
static void
move_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct move *move = arg;

	for (uint32_t i = 0; i < RCD_QP_SLOTS; i++) {
		struct rcd_hqp *hqp = lcore->qps[i];

		if (hqp != NULL && hqp->dev == move->dev && hqp->path_valid &&
			memcmp(hqp->hdr.bytes, move->from, RCD_MAC_LEN) == 0)
			memcpy(hqp->hdr.bytes, move->to, RCD_MAC_LEN);
	}
}

void
rcd_neigh_learn(struct rcd_dev *dev, const struct rcd_gid *gid, const uint8_t *mac)
{
	struct rcd_neigh_table *table = dev->engine->neighs;
	struct neigh *neigh = find(dev, gid);
	bool zero = (mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]) == 0;

	/* Only who was asked for is remembered: strangers can't fill the table. */
	if (neigh == NULL || (mac[0] & 1) || zero)
		return;
	if (neigh->state != STATE_KNOWN) {
		table->asking--;
	} else if (memcmp(neigh->mac, mac, RCD_MAC_LEN) != 0) {
		struct move move = { .dev = dev };

		memcpy(move.from, neigh->mac, RCD_MAC_LEN);
		memcpy(move.to, mac, RCD_MAC_LEN);
		rcd_lcore_call_all(dev->engine, move_on_lcore, &move);
	}
	neigh->state = STATE_KNOWN;
	memcpy(neigh->mac, mac, RCD_MAC_LEN);
}

void
rcd_neigh_forget(struct rcd_dev *dev, const struct rcd_gid *gid)
{
	struct neigh *neigh = find(dev, gid);

	if (neigh != NULL && neigh->state == STATE_KNOWN)
		drop(dev->engine->neighs, neigh);
}

void
rcd_neigh_flush(struct rcd_dev *dev)
{
	struct rcd_neigh_table *table = dev->engine->neighs;
	const void *key;
	void *data;
	uint32_t next = 0;

	while (rte_hash_iterate(table->hash, &key, &data, &next) >= 0) {
		struct neigh *neigh = data;

		if (neigh->key.dev != dev->index)
			continue;
		if (neigh->state != STATE_KNOWN)
			table->asking--;
		drop(table, neigh);
	}
}

void
rcd_neigh_tick(struct rcd_engine *engine, uint64_t now_ns)
{
	struct rcd_neigh_table *table = engine->neighs;
	const void *key;
	void *data;
	uint32_t next = 0;

	if (table->asking == 0)
		return;
	while (rte_hash_iterate(table->hash, &key, &data, &next) >= 0) {
		struct neigh *neigh = data;
		struct rcd_dev *dev = engine->devs[neigh->key.dev];

		if (neigh->state == STATE_KNOWN || now_ns < neigh->due_ns)
			continue;
		if (neigh->state == STATE_FAILED) {
			table->asking--;
			drop(table, neigh);
		} else if (neigh->asked < ASK_TIMES) {
			ask(dev, neigh, now_ns);
		} else {
			neigh->state = STATE_FAILED;
			neigh->due_ns = now_ns + FAILED_NS;
		}
	}
}
