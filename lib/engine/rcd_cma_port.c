/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Port spaces, which all clients share: who has which port, who may take it too, who listens.
 */
#include <errno.h>
#include <stdlib.h>

#include "rcd_cma.h"

#define PORTS             65536u
#define EPHEMERAL_FIRST   32768u /**< as the kernel's net.ipv4.ip_local_port_range */
#define EPHEMERAL_COUNT   28232u
#define UNPRIVILEGED_FILE "/proc/sys/net/ipv4/ip_unprivileged_port_start"

static const uint16_t spaces[RCD_CMA_SPACES] = {
	RCD_CMA_SPACE_TCP,
	RCD_CMA_SPACE_UDP,
	RCD_CMA_SPACE_IB,
	RCD_CMA_SPACE_IPOIB,
};

/* @return the last one for what is none */
static uint32_t
space_index(uint32_t space)
{
	uint32_t i = 0;

	while (i + 1 < RCD_CMA_SPACES && spaces[i] != space)
		i++;
	return i;
}

bool
rcd_cma_space_valid(uint32_t space)
{
	return spaces[space_index(space)] == space;
}

int
rcd_cma_ports_init(struct rcd_cma *cma)
{
	for (uint32_t i = 0; i < RCD_CMA_SPACES; i++) {
		cma->ports[i] = calloc(PORTS, sizeof(cma->ports[i][0]));
		if (cma->ports[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

void
rcd_cma_ports_fini(struct rcd_cma *cma)
{
	for (uint32_t i = 0; i < RCD_CMA_SPACES; i++)
		free(cma->ports[i]);
}

static struct rcd_cmid_list *
chain_of(const struct rcd_cma *cma, uint32_t space, uint16_t port)
{
	return &cma->ports[space_index(space)][port];
}

/* Whether one packet could be for both. */
static bool
overlap(const struct rcd_cmid *a, const struct rcd_cmid *b)
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
is_free(const struct rcd_cmid *id, uint16_t port)
{
	const struct rcd_cmid *other;

	LIST_FOREACH(other, chain_of(id->session->engine->cma, id->space, port), port_link)
	if (overlap(id, other) && !(id->reuse && other->reuse && other->state != RCD_CMA_LISTEN))
		return false;
	return true;
}

static uint32_t
unprivileged_start(void)
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

static int
choose(struct rcd_cmid *id)
{
	uint32_t start = rcd_cma_random(id->session->engine->cma) % EPHEMERAL_COUNT;

	for (uint32_t i = 0; i < EPHEMERAL_COUNT; i++) {
		uint16_t port = (uint16_t)(EPHEMERAL_FIRST + (start + i) % EPHEMERAL_COUNT);

		if (LIST_EMPTY(chain_of(id->session->engine->cma, id->space, port))) {
			id->src.port = port;
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

int
rcd_cma_port_take(struct rcd_cmid *id)
{
	int err = 0;

	if (id->src.port == 0)
		err = choose(id);
	else if (id->src.port < 1024 && id->src.port < unprivileged_start() &&
		!rcd_cred_may(id->session, RCD_CAP_NET_BIND_SERVICE))
		err = -EACCES;
	else if (!is_free(id, id->src.port))
		err = -EADDRINUSE;
	if (err != 0)
		return err;
	LIST_INSERT_HEAD(
		chain_of(id->session->engine->cma, id->space, id->src.port), id, port_link);
	id->on_port = true;
	return 0;
}

void
rcd_cma_port_release(struct rcd_cmid *id)
{
	if (id->on_port)
		LIST_REMOVE(id, port_link);
	id->on_port = false;
}

int
rcd_cma_port_listen(const struct rcd_cmid *id)
{
	const struct rcd_cmid *other;

	LIST_FOREACH(other, chain_of(id->session->engine->cma, id->space, id->src.port), port_link)
	if (other != id && overlap(id, other))
		return -EADDRINUSE;
	return 0;
}

struct rcd_cmid *
rcd_cma_port_find(struct rcd_cma *cma, const struct rcd_dev *dev, enum rcd_cma_space space,
	uint16_t port, const struct rcd_gid *dst)
{
	uint8_t family = rcd_gid_is_ipv4(dst) ? 4 : 6;
	struct rcd_cmid *best = NULL;
	struct rcd_cmid *id;

	LIST_FOREACH(id, chain_of(cma, space, port), port_link)
	{
		struct rcd_gid bound = rcd_cma_gid(&id->src);

		if (id->state != RCD_CMA_LISTEN)
			continue;
		if (rcd_cma_addr_any(&id->src)) {
			if (best == NULL &&
				(id->src.family == family || (family == 4 && !id->afonly)))
				best = id;
		} else if (rcd_gid_eq(&bound, dst) && id->dev == dev) {
			best = id;
		}
	}
	return best;
}
