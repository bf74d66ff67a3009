/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Port spaces, which all clients of a network namespace share: who has which port, who may take it
 * too, who listens.
 */
#include "rcd_cma_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "rcd_bytes.h"
#include "rcd_cma.h"
#include "rcd_cma_client.h"
#include "rcd_cma_route.h"
#include "rcd_thread.h"

#define PORTS             65536u
#define WORD_BITS         64u
#define UNPRIVILEGED_FILE "/proc/sys/net/ipv4/ip_unprivileged_port_start"

static const uint16_t spaces[RCD_CMA_SPACES] = {
	RCD_CMA_SPACE_TCP,
	RCD_CMA_SPACE_UDP,
	RCD_CMA_SPACE_IB,
	RCD_CMA_SPACE_IPOIB,
};

/* @return the last one for what is none */
static uint32_t
cma_port_space_index(uint32_t space)
{
	uint32_t i = 0;

	while (i + 1 < RCD_CMA_SPACES && spaces[i] != space)
		i++;
	return i;
}

bool
rcd_cma_space_valid(uint32_t space)
{
	RCD_ON_CONTROL();
	return spaces[cma_port_space_index(space)] == space;
}

int
rcd_cma_ports_init(struct rcd_cma *cma)
{
	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < RCD_CMA_SPACES; i++) {
		struct rcd_cma_space_ports *ports = &cma->spaces[i];

		ports->ports = calloc(PORTS, sizeof(ports->ports[0]));
		if (ports->ports == NULL)
			return -ENOMEM;
		/* The last word goes beyond the last port. */
		for (uint32_t k = RCD_CMA_EPHEMERAL_COUNT; k % WORD_BITS != 0; k++)
			ports->taken[k / WORD_BITS] |= UINT64_C(1) << k % WORD_BITS;
	}
	return 0;
}

void
rcd_cma_ports_fini(struct rcd_cma *cma)
{
	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < RCD_CMA_SPACES; i++)
		free(cma->spaces[i].ports);
}

static struct rcd_cma_port *
cma_port_of(const struct rcd_cma *cma, uint32_t space, uint16_t port)
{
	return &cma->spaces[cma_port_space_index(space)].ports[port];
}

/* @return NULL: nobody there has it */
static struct rcd_cma_port_part *
cma_port_part(const struct rcd_cma *cma, uint32_t space, uint16_t port, uint64_t netns)
{
	struct rcd_cma_port_part *part;

	LIST_FOREACH(part, &cma_port_of(cma, space, port)->parts, link)
		if (part->netns == netns)
			return part;
	return NULL;
}

/* The first of those who have a port in a namespace. @return NULL: nobody does */
static struct rcd_cmid *
cma_port_first(const struct rcd_cma *cma, uint32_t space, uint16_t port, uint64_t netns)
{
	const struct rcd_cma_port_part *part = cma_port_part(cma, space, port, netns);

	return part != NULL ? LIST_FIRST(&part->ids) : NULL;
}

/* A port has its first identifier, or has lost its last. */
static void
cma_port_mark(struct rcd_cma *cma, uint32_t space, uint16_t port, bool taken)
{
	uint64_t *words = cma->spaces[cma_port_space_index(space)].taken;
	uint32_t at = port - RCD_CMA_EPHEMERAL_FIRST;
	uint64_t bit = UINT64_C(1) << at % WORD_BITS;

	if (at >= RCD_CMA_EPHEMERAL_COUNT)
		return;
	if (taken)
		words[at / WORD_BITS] |= bit;
	else
		words[at / WORD_BITS] &= ~bit;
}

/* Whether one packet could be for both, of one network namespace. */
static bool
cma_port_overlap(const struct rcd_cmid *a, const struct rcd_cmid *b)
{
	bool any_a = rcd_cma_addr_any(&a->src);
	bool any_b = rcd_cma_addr_any(&b->src);
	struct rcd_gid gid_a = rcd_cma_gid(&a->src);
	struct rcd_gid gid_b = rcd_cma_gid(&b->src);

	if (a->src.family == b->src.family)
		return any_a || any_b ||
			(rcd_gid_eq(&gid_a, &gid_b) &&
				(a->src.scope_id == 0 || b->src.scope_id == 0 ||
					a->src.scope_id == b->src.scope_id));
	/* The wildcard of IPv6 is one of IPv4 too, unless it says otherwise. */
	return (a->src.family == 6 && any_a && !a->afonly) ||
		(b->src.family == 6 && any_b && !b->afonly);
}

static bool
cma_port_is_free(const struct rcd_cmid *id, uint16_t port)
{
	const struct rcd_cmid *other = cma_port_first(id->client->cma, id->space, port, id->netns);
	uint32_t count = 0;

	for (; other != NULL; other = LIST_NEXT(other, port_link)) {
		if (++count >= RCD_CMA_PORT_SHARE)
			return false;
		if (cma_port_overlap(id, other) &&
			!(id->reuse && other->reuse && other->state != RCD_CMA_LISTEN))
			return false;
	}
	return true;
}

static uint32_t
cma_port_unprivileged_start(void)
{
	FILE *file = fopen(UNPRIVILEGED_FILE, "re");
	char line[16] = "1024";

	if (file != NULL) {
		if (fgets(line, sizeof(line), file) == NULL)
			line[0] = '\0';
		fclose(file);
	}
	return (uint32_t)strtoul(line, NULL, 10);
}

/* A port that nobody has, the first from anywhere on: some hundred words are looked at. */
static int
cma_port_choose(struct rcd_cmid *id)
{
	struct rcd_cma *cma = id->client->cma;
	const uint64_t *words = cma->spaces[cma_port_space_index(id->space)].taken;
	uint32_t count = RCD_ARRAY_COUNT(cma->spaces[0].taken);
	uint32_t start = rcd_cma_random(cma) % RCD_CMA_EPHEMERAL_COUNT;

	/* The first word from its middle on, and as a whole when all others are full. */
	for (uint32_t i = 0; i <= count; i++) {
		uint32_t word = (start / WORD_BITS + i) % count;
		uint64_t free_bits = ~words[word];

		if (i == 0)
			free_bits &= ~UINT64_C(0) << start % WORD_BITS;
		if (free_bits != 0) {
			id->src.port = (uint16_t)(RCD_CMA_EPHEMERAL_FIRST + word * WORD_BITS +
				(uint32_t)__builtin_ctzll(free_bits));
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

/* Who has no device there could reach nobody, and anybody can make namespaces. */
static bool
cma_port_has_dev(const struct rcd_cma *cma, uint64_t netns)
{
	struct rcd_cma_dev dev;
	uint32_t place = 0;

	return netns == 0 || rcd_cma_dev_next(cma, netns, &place, &dev);
}

static int
cma_port_put(struct rcd_cmid *id)
{
	struct rcd_cma *cma = id->client->cma;
	struct rcd_cma_port_part *part = cma_port_part(cma, id->space, id->src.port, id->netns);

	if (part == NULL) {
		part = calloc(1, sizeof(*part));
		if (part == NULL)
			return -ENOMEM;
		part->netns = id->netns;
		LIST_INSERT_HEAD(&cma_port_of(cma, id->space, id->src.port)->parts, part, link);
	}
	LIST_INSERT_HEAD(&part->ids, id, port_link);
	id->port_part = part;
	cma_port_mark(cma, id->space, id->src.port, true);
	return 0;
}

int
rcd_cma_port_take(struct rcd_cmid *id, const void *asker)
{
	struct rcd_cma *cma = id->client->cma;
	int err = 0;

	RCD_ON_CONTROL();
	id->netns = rcd_cma_client_netns(id->client);
	if (!cma_port_has_dev(cma, id->netns))
		err = -ENODEV;
	else if (id->src.port == 0)
		err = cma_port_choose(id);
	else if (id->src.port < 1024 && id->src.port < cma_port_unprivileged_start() &&
		!cma->ops->may_bind(asker))
		err = -EACCES;
	else if (!cma_port_is_free(id, id->src.port))
		err = -EADDRINUSE;
	if (err == 0)
		err = rcd_quota_charge(id->client->quota, RCD_RESOURCE_CM_PORTS, 1);
	if (err != 0)
		return err;
	err = cma_port_put(id);
	if (err != 0)
		rcd_quota_uncharge(id->client->quota, RCD_RESOURCE_CM_PORTS, 1);
	return err;
}

void
rcd_cma_port_release(struct rcd_cmid *id)
{
	struct rcd_cma *cma = id->client->cma;
	struct rcd_cma_port_part *part = id->port_part;

	RCD_ON_CONTROL();
	if (part == NULL)
		return;
	LIST_REMOVE(id, port_link);
	if (LIST_EMPTY(&part->ids)) {
		LIST_REMOVE(part, link);
		free(part);
	}
	if (LIST_EMPTY(&cma_port_of(cma, id->space, id->src.port)->parts))
		cma_port_mark(cma, id->space, id->src.port, false);
	rcd_quota_uncharge(id->client->quota, RCD_RESOURCE_CM_PORTS, 1);
	id->port_part = NULL;
}

int
rcd_cma_port_listen(const struct rcd_cmid *id)
{
	const struct rcd_cmid *other =
		cma_port_first(id->client->cma, id->space, id->src.port, id->netns);

	RCD_ON_CONTROL();
	for (; other != NULL; other = LIST_NEXT(other, port_link))
		if (other != id && cma_port_overlap(id, other))
			return -EADDRINUSE;
	return 0;
}

struct rcd_cmid *
rcd_cma_port_find(struct rcd_cma *cma, const struct rcd_cma_dev *dev, enum rcd_cma_space space,
	uint16_t port, const struct rcd_gid *dst)
{
	uint8_t family = rcd_gid_is_ipv4(dst) ? 4 : 6;
	struct rcd_cmid *best = NULL;
	struct rcd_cmid *id = cma_port_first(cma, space, port, dev->netns);

	RCD_ON_CONTROL();
	for (; id != NULL; id = LIST_NEXT(id, port_link)) {
		struct rcd_gid bound = rcd_cma_gid(&id->src);

		if (id->state != RCD_CMA_LISTEN)
			continue;
		if (rcd_cma_addr_any(&id->src)) {
			if (best == NULL &&
				(id->src.family == family || (family == 4 && !id->afonly)))
				best = id;
		} else if (rcd_gid_eq(&bound, dst) && id->dev == dev->serial) {
			best = id;
		}
	}
	return best;
}
