/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Neighbours: from an address to the MAC of the next hop. A device that owns its addresses asks
 * the link itself; for a kernel's netdev the kernel is asked.
 *
 * Clients choose whom to ask for, and the network answers what it likes, so the table has a fixed
 * size, each client a part of it, and there is room for the next one always: who goes is first who
 * did not answer, then who is not used. What is told of an address that nobody asked for is not
 * listened to.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <rte_hash.h>
#include <rte_jhash.h>
#include <stdlib.h>

#define NEIGHS_FEW       64          /**< for which others that don't answer have to go */
#define ASK_EVERY_NS     100000000u  /**< while nobody answers */
#define ASK_TIMES        25          /**< then nobody is there */
#define ASKS_AT_ONCE     64          /**< of a tick */
#define LOOKS_AT_ONCE    128         /**< at neighbours, whether they are still there and needed */
#define FAILED_NS        1000000000u /**< before it is asked again */
#define CONFIRM_TIMES    3
#define CONFIRM_EVERY_NS UINT64_C(1000000000)
#define CONFIRM_NS       UINT64_C(30000000000)  /**< then it is asked whether it is still there */
#define STALE_EVERY_NS   UINT64_C(10000000000)  /**< between questions for one that was lost */
#define UNUSED_NS        UINT64_C(120000000000) /**< then it is forgotten */
#define WANTED_CELLS     16384u

struct key {
	uint32_t dev;
	uint32_t vlan_id;
	struct rcd_gid gid;
};

enum state {
	STATE_ASKING,
	STATE_KNOWN,
	STATE_FAILED, /**< does not answer: so for a while */
	STATE_STALE,  /**< was known, and there are queue pairs that have its MAC */
	STATE_COUNT,
};

struct neigh {
	TAILQ_ENTRY(neigh) link; /**< of its state, the longest unused or next due first */
	struct key key;
	struct rcd_session *owner; /**< who asked first; NULL: the engine, or who has gone */
	uint8_t mac[RCD_MAC_LEN];
	uint8_t state; /**< enum state */
	uint8_t asked; /**< times, without an answer */
	int sgid_index;
	uint64_t due_ns;       /**< to be asked again; failed: to be forgotten */
	uint64_t asked_for_ns; /**< by a client, last */
	uint64_t in_use_ns;    /**< a queue pair or address handle had it; 0: none */
	uint64_t confirmed_ns;
};

TAILQ_HEAD(neigh_list, neigh);

struct rcd_neigh_table {
	struct rte_hash *hash;
	uint32_t seed;
	uint32_t count;
	uint32_t place; /**< where the look at all goes on */
	struct neigh_list lists[STATE_COUNT];
	uint16_t wanted[WANTED_CELLS]; /**< entries by hash; lcores look, atomic */
};

struct rcd_neigh_table *
rcd_neigh_create(struct rcd_engine *engine)
{
	struct rte_hash_parameters params = {
		.name = "rocade_neigh",
		/* More than are ever used: that one more always finds a place. */
		.entries = 2 * RCD_NEIGHS_MAX,
		.key_len = sizeof(struct key),
		.hash_func = rte_jhash,
		.hash_func_init_val = (uint32_t)engine->secret[0],
		.socket_id = SOCKET_ID_ANY,
	};
	struct rcd_neigh_table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		return NULL;
	for (int i = 0; i < STATE_COUNT; i++)
		TAILQ_INIT(&table->lists[i]);
	table->seed = (uint32_t)(engine->secret[0] >> 32);
	table->hash = rte_hash_create(&params);
	if (table->hash == NULL) {
		free(table);
		return NULL;
	}
	return table;
}

static uint16_t *
wanted_cell(struct rcd_neigh_table *table, const struct key *key)
{
	return &table->wanted[rte_jhash(key, sizeof(*key), table->seed) % WANTED_CELLS];
}

bool
rcd_neigh_wanted(const struct rcd_dev *dev, uint16_t vlan_id, const struct rcd_gid *gid)
{
	struct key key = { .dev = dev->index, .vlan_id = vlan_id, .gid = *gid };

	return __atomic_load_n(wanted_cell(dev->engine->neighs, &key), __ATOMIC_RELAXED) != 0;
}

/* To another state, as the last of those that are in it. */
static void
enter(struct rcd_neigh_table *table, struct neigh *neigh, enum state state)
{
	TAILQ_REMOVE(&table->lists[neigh->state], neigh, link);
	neigh->state = (uint8_t)state;
	TAILQ_INSERT_TAIL(&table->lists[state], neigh, link);
}

static void
uncharge(struct rcd_session *session)
{
	if (session != NULL)
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_NEIGHBOURS, 1);
}

static void
drop(struct rcd_neigh_table *table, struct neigh *neigh)
{
	uint16_t *cell = wanted_cell(table, &neigh->key);

	__atomic_store_n(cell, (uint16_t)(*cell - 1), __ATOMIC_RELAXED);
	uncharge(neigh->owner);
	TAILQ_REMOVE(&table->lists[neigh->state], neigh, link);
	rte_hash_del_key(table->hash, &neigh->key);
	table->count--;
	free(neigh);
}

void
rcd_neigh_destroy(struct rcd_neigh_table *table)
{
	struct neigh *neigh;

	if (table == NULL)
		return;
	for (int i = 0; i < STATE_COUNT; i++)
		while ((neigh = TAILQ_FIRST(&table->lists[i])) != NULL)
			drop(table, neigh);
	rte_hash_free(table->hash);
	free(table);
}

/* What a session has asked for, and is not forgotten. */
static uint64_t
owned(const struct rcd_session *session)
{
	return session->quota.used[RCD_RESOURCE_NEIGHBOURS];
}

void
rcd_neigh_disown(struct rcd_session *session)
{
	struct rcd_neigh_table *table = session->engine->neighs;
	struct neigh *neigh;

	for (int i = 0; i < STATE_COUNT && owned(session) > 0; i++)
		TAILQ_FOREACH(neigh, &table->lists[i], link)
			if (neigh->owner == session) {
				neigh->owner = NULL;
				uncharge(session);
			}
}

uint32_t
rcd_neigh_count(const struct rcd_engine *engine)
{
	return engine->neighs->count;
}

static struct neigh *
find(const struct rcd_dev *dev, uint16_t vlan_id, const struct rcd_gid *gid)
{
	struct key key = { .dev = dev->index, .vlan_id = vlan_id, .gid = *gid };
	void *data;

	return rte_hash_lookup_data(dev->engine->neighs->hash, &key, &data) >= 0 ? data : NULL;
}

/* The oldest in a state, of an owner. @param owner  NULL: of anybody */
static struct neigh *
oldest(struct rcd_neigh_table *table, enum state state, const struct rcd_session *owner)
{
	struct neigh *neigh;

	TAILQ_FOREACH(neigh, &table->lists[state], link)
		if (owner == NULL || neigh->owner == owner)
			return neigh;
	return NULL;
}

/* Who goes first for another one: of an owner, or of all. @return NULL: they are all being asked */
static struct neigh *
first_to_go(struct rcd_neigh_table *table, const struct rcd_session *owner)
{
	struct neigh *victim = oldest(table, STATE_FAILED, owner);

	if (victim == NULL)
		victim = oldest(table, STATE_STALE, owner);
	if (victim == NULL)
		victim = oldest(table, STATE_KNOWN, owner);
	return victim;
}

/* Charge a session for one more, or for one instead of another of its own. @return whether */
static bool
charge(struct rcd_neigh_table *table, struct rcd_session *session)
{
	struct neigh *victim;

	if (session == NULL)
		return true;
	if (!rcd_quota_fits(&session->quota, RCD_RESOURCE_NEIGHBOURS, 1)) {
		victim = first_to_go(table, session);
		if (victim != NULL)
			drop(table, victim);
	}
	return rcd_quota_charge(&session->quota, RCD_RESOURCE_NEIGHBOURS, 1) == 0;
}

/* A place for one more. @return false: all are being asked, and the session has many of them */
static bool
make_room(struct rcd_neigh_table *table, const struct rcd_session *session)
{
	struct neigh *victim = NULL;

	if (table->count < RCD_NEIGHS_MAX)
		return true;
	/* Who asks for few is not kept out by those who ask for many that don't answer. */
	if (session == NULL || owned(session) <= NEIGHS_FEW)
		victim = oldest(table, STATE_ASKING, NULL);
	if (victim == NULL || !TAILQ_EMPTY(&table->lists[STATE_FAILED]))
		victim = first_to_go(table, NULL);
	if (victim == NULL)
		return false;
	drop(table, victim);
	return true;
}

static struct neigh *
add(struct rcd_dev *dev, const struct rcd_next *next, struct rcd_session *session)
{
	struct rcd_neigh_table *table = dev->engine->neighs;
	struct neigh *neigh;
	uint16_t *cell;

	if (!charge(table, session))
		return NULL;
	neigh = make_room(table, session) ? calloc(1, sizeof(*neigh)) : NULL;
	if (neigh == NULL) {
		uncharge(session);
		return NULL;
	}
	neigh->key = (struct key){ .dev = dev->index, .vlan_id = next->vlan_id, .gid = next->gid };
	if (rte_hash_add_key_data(table->hash, &neigh->key, neigh) != 0) {
		uncharge(session);
		free(neigh);
		return NULL;
	}
	cell = wanted_cell(table, &neigh->key);
	__atomic_store_n(cell, (uint16_t)(*cell + 1), __ATOMIC_RELAXED);
	neigh->owner = session;
	TAILQ_INSERT_TAIL(&table->lists[STATE_ASKING], neigh, link);
	table->count++;
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
ask(struct rcd_dev *dev, struct neigh *neigh, uint64_t due_ns)
{
	const struct rcd_gid_table *gids = dev->gids;

	neigh->asked++;
	neigh->due_ns = due_ns;
	if (dev->answers) {
		struct question question = { .dev = dev, .target = neigh->key.gid };

		if ((uint32_t)neigh->sgid_index >= gids->count)
			return;
		question.source = gids->entries[neigh->sgid_index].gid;
		question.vlan_id = (uint16_t)neigh->key.vlan_id;
		rcd_lcore_call(dev->engine->lcores[0], ask_on_lcore, &question);
	} else {
		rcd_netlink_probe(dev, &neigh->key.gid);
	}
}

/* Begin to ask, or again. A kernel that knows it tells at once. */
static void
begin(struct rcd_dev *dev, struct neigh *neigh, uint64_t now_ns)
{
	enter(dev->engine->neighs, neigh, STATE_ASKING);
	neigh->asked = 0;
	ask(dev, neigh, now_ns + ASK_EVERY_NS);
}

int
rcd_neigh_look(
	struct rcd_session *session, struct rcd_dev *dev, int sgid_index, struct rcd_next *next)
{
	struct neigh *neigh = find(dev, next->vlan_id, &next->gid);
	uint64_t now_ns = rcd_clock_ns();

	if (neigh == NULL) {
		neigh = add(dev, next, session);
		if (neigh == NULL)
			return -ENOMEM;
		neigh->sgid_index = sgid_index;
		begin(dev, neigh, now_ns);
	} else if (neigh->state == STATE_STALE ||
		(neigh->state == STATE_FAILED && now_ns >= neigh->due_ns)) {
		begin(dev, neigh, now_ns);
	}
	neigh->asked_for_ns = now_ns;
	switch ((enum state)neigh->state) {
	case STATE_ASKING:
	case STATE_STALE:
	case STATE_COUNT:
		return -EAGAIN;
	case STATE_FAILED:
		return -ETIMEDOUT;
	case STATE_KNOWN:
		break;
	}
	enter(dev->engine->neighs, neigh, STATE_KNOWN);
	memcpy(next->mac, neigh->mac, RCD_MAC_LEN);
	return 0;
}

int
rcd_neigh_resolve(struct rcd_session *session, struct rcd_dev *dev, int sgid_index,
	const struct rcd_gid *dgid, struct rcd_next *next)
{
	struct rcd_dev *local = rcd_hop_local(dev, dgid);
	int err;

	memset(next, 0, sizeof(*next));
	if (local != NULL) {
		memcpy(next->mac, local->mac, RCD_MAC_LEN);
		return 0;
	}
	if (rcd_gid_is_multicast(dgid)) {
		rcd_gid_multicast_mac(dgid, next->mac);
		return 0;
	}
	err = rcd_hop_find(dev, sgid_index, dgid, &next->gid);
	if (err != 0)
		return err;
	next->vlan_id = dev->gids->entries[sgid_index].vlan_id;
	next->neighbour = true;
	return rcd_neigh_look(session, dev, sgid_index, next);
}

bool
rcd_neigh_known(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *gid, uint8_t *mac)
{
	const struct rcd_dev *local = rcd_hop_local(dev, gid);
	const struct neigh *neigh;

	if (local != NULL) {
		memcpy(mac, local->mac, RCD_MAC_LEN);
		return true;
	}
	neigh = find(dev, dev->gids->entries[sgid_index].vlan_id, gid);
	if (neigh == NULL || neigh->state != STATE_KNOWN)
		return false;
	memcpy(mac, neigh->mac, RCD_MAC_LEN);
	return true;
}

bool
rcd_neigh_moved(struct rcd_dev *dev, struct rcd_next *next, uint64_t now_ns)
{
	struct neigh *neigh = find(dev, next->vlan_id, &next->gid);

	if (neigh == NULL)
		return false;
	neigh->in_use_ns = now_ns;
	if (neigh->state != STATE_KNOWN || memcmp(neigh->mac, next->mac, RCD_MAC_LEN) == 0)
		return false;
	memcpy(next->mac, neigh->mac, RCD_MAC_LEN);
	return true;
}

bool
rcd_neigh_learn(
	struct rcd_dev *dev, uint16_t vlan_id, const struct rcd_gid *gid, const uint8_t *mac)
{
	static const uint8_t none[RCD_MAC_LEN];
	struct neigh *neigh = find(dev, vlan_id, gid);
	bool news;

	/* Only who was asked for is remembered: strangers can't fill the table. */
	if (neigh == NULL || (mac[0] & 1) || memcmp(mac, none, RCD_MAC_LEN) == 0)
		return false;
	news = neigh->state != STATE_KNOWN;
	/* Those that have the old one follow at once; the others' turn comes. */
	if (memcmp(neigh->mac, none, RCD_MAC_LEN) != 0 && memcmp(neigh->mac, mac, RCD_MAC_LEN) != 0)
		rcd_follow_all(dev->engine);
	enter(dev->engine->neighs, neigh, STATE_KNOWN);
	neigh->asked = 0;
	neigh->confirmed_ns = rcd_clock_ns();
	if (neigh->asked_for_ns == 0)
		neigh->asked_for_ns = neigh->confirmed_ns;
	memcpy(neigh->mac, mac, RCD_MAC_LEN);
	return news;
}

void
rcd_neigh_forget(struct rcd_dev *dev, const struct rcd_gid *gid)
{
	struct neigh *neigh = find(dev, 0, gid);

	/* Its old MAC is kept, to see whether it comes back with another. */
	if (neigh != NULL && neigh->state == STATE_KNOWN)
		enter(dev->engine->neighs, neigh, STATE_STALE);
}

void
rcd_neigh_flush(struct rcd_dev *dev)
{
	struct rcd_neigh_table *table = dev->engine->neighs;
	struct neigh *neigh, *next;

	for (int i = 0; i < STATE_COUNT; i++) {
		for (neigh = TAILQ_FIRST(&table->lists[i]); neigh != NULL; neigh = next) {
			next = TAILQ_NEXT(neigh, link);
			if (neigh->key.dev == dev->index)
				drop(table, neigh);
		}
	}
}

static bool
in_use(const struct neigh *neigh, uint64_t now_ns)
{
	return neigh->in_use_ns != 0 && now_ns - neigh->in_use_ns < UNUSED_NS;
}

static void
fail(struct rcd_neigh_table *table, struct neigh *neigh, uint64_t now_ns)
{
	enter(table, neigh, STATE_FAILED);
	neigh->due_ns = now_ns + FAILED_NS;
}

/* One that is known, or was: is it needed, and still there? */
static void
look_after(struct rcd_dev *dev, struct neigh *neigh, uint64_t now_ns)
{
	struct rcd_neigh_table *table = dev->engine->neighs;
	bool asked_for = now_ns - neigh->asked_for_ns < UNUSED_NS;

	if (neigh->state == STATE_STALE) {
		if (!in_use(neigh, now_ns))
			drop(table, neigh);
		else if (dev->answers && now_ns >= neigh->due_ns)
			ask(dev, neigh, now_ns + STALE_EVERY_NS);
		return;
	}
	if (neigh->state != STATE_KNOWN)
		return;
	if (!asked_for && !in_use(neigh, now_ns))
		drop(table, neigh);
	else if (!dev->answers || now_ns - neigh->confirmed_ns < CONFIRM_NS ||
		(neigh->asked > 0 && now_ns < neigh->due_ns))
		return;
	else if (neigh->asked < CONFIRM_TIMES)
		ask(dev, neigh, now_ns + CONFIRM_EVERY_NS);
	else
		fail(table, neigh, now_ns);
}

void
rcd_neigh_tick(struct rcd_engine *engine, uint64_t now_ns)
{
	struct rcd_neigh_table *table = engine->neighs;
	struct neigh *neigh;
	const void *key;
	void *data;

	for (int i = 0; i < ASKS_AT_ONCE; i++) {
		neigh = TAILQ_FIRST(&table->lists[STATE_ASKING]);
		if (neigh == NULL || now_ns < neigh->due_ns)
			break;
		enter(table, neigh, STATE_ASKING);
		if (neigh->asked < ASK_TIMES)
			ask(engine->devs[neigh->key.dev], neigh, now_ns + ASK_EVERY_NS);
		else
			fail(table, neigh, now_ns);
	}
	for (int i = 0; i < ASKS_AT_ONCE; i++) {
		neigh = TAILQ_FIRST(&table->lists[STATE_FAILED]);
		if (neigh == NULL || now_ns < neigh->due_ns)
			break;
		neigh->due_ns = now_ns + STALE_EVERY_NS;
		if (in_use(neigh, now_ns))
			enter(table, neigh, STATE_STALE);
		else
			drop(table, neigh);
	}
	for (int i = 0; i < LOOKS_AT_ONCE && table->count > 0; i++) {
		if (rte_hash_iterate(table->hash, &key, &data, &table->place) < 0) {
			table->place = 0;
			break;
		}
		neigh = data;
		look_after(engine->devs[neigh->key.dev], neigh, now_ns);
	}
}
