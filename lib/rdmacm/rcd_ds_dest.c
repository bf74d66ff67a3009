/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Destinations of datagrams: which queue pair a peer has, and the way to it.
 */
#include "rcd_ds.h"

#include <stdlib.h>
#include <string.h>

#define HOP_LIMIT  64
#define RESOLVE_MS 2000

static uint32_t
ds_dest_bucket(const struct rcd_ds_addr *addr)
{
	uint32_t hash = addr->port;

	for (int i = 0; i < 16; i++)
		hash = hash * 31 + addr->ip[i];
	return (hash >> 8 ^ hash) % RCD_DS_BUCKETS;
}

struct rcd_ds_dest *
rcd_ds_dest_find(struct rcd_ds *ds, const struct rcd_ds_addr *addr)
{
	struct rcd_ds_dest *dest;

	LIST_FOREACH(dest, &ds->buckets[ds_dest_bucket(addr)], link)
		if (rcd_ds_addr_equal(&dest->addr, addr))
			break;
	return dest;
}

static void
ds_dest_free(struct rcd_ds *ds, struct rcd_ds_dest *dest)
{
	LIST_REMOVE(dest, link);
	TAILQ_REMOVE(&ds->uses, dest, use);
	ds->dest_count--;
	if (dest->ah != NULL)
		ibv_destroy_ah(dest->ah);
	free(dest);
}

/* Take the one that was not used for longest away. @return whether there is room now */
static bool
ds_dest_make_room(struct rcd_ds *ds)
{
	struct rcd_ds_dest *dest;

	if (ds->dest_count < RCD_DS_DESTS_MOST)
		return true;
	TAILQ_FOREACH(dest, &ds->uses, use)
		/* Requests that are on their way have its handle. */
		if (!dest->pinned && (dest->ah == NULL || dest->last_sent <= dest->qp->done)) {
			ds_dest_free(ds, dest);
			return true;
		}
	return false;
}

struct rcd_ds_dest *
rcd_ds_dest_get(struct rcd_ds *ds, const struct rcd_ds_addr *addr)
{
	struct rcd_ds_dest *dest = rcd_ds_dest_find(ds, addr);

	if (dest != NULL) {
		TAILQ_REMOVE(&ds->uses, dest, use);
	} else {
		dest = ds_dest_make_room(ds) ? calloc(1, sizeof(*dest)) : NULL;
		if (dest == NULL)
			return NULL;
		dest->addr = *addr;
		LIST_INSERT_HEAD(&ds->buckets[ds_dest_bucket(addr)], dest, link);
		ds->dest_count++;
	}
	TAILQ_INSERT_TAIL(&ds->uses, dest, use);
	return dest;
}

/* Ask the engine from which of its addresses one gets there. @return 0 or -errno */
static int
ds_dest_resolve(const struct rcd_ds_addr *to, struct rcd_ds_addr *local)
{
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;
	int err = 0;

	rcd_ds_addr_give(AF_INET6, to, &addr);
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP) != 0)
		return -errno;
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, RESOLVE_MS) != 0)
		err = -errno;
	if (err == 0) {
		struct sockaddr *own = rdma_get_local_addr(id);

		err = rcd_ds_addr_take(own->sa_family, own, sizeof(addr), local);
	}
	rdma_destroy_id(id);
	return err;
}

int
rcd_ds_dest_route(struct rcd_rs *rs, struct rcd_ds_dest *dest)
{
	struct rcd_ds_addr local = rs->ds->local;
	int err = 0;

	if (dest->qp != NULL)
		return 0;
	if (rcd_ds_addr_is_any(&local)) {
		pthread_mutex_unlock(&rs->lock);
		err = ds_dest_resolve(&dest->addr, &local);
		pthread_mutex_lock(&rs->lock);
	}
	/* It may have been heard from meanwhile. */
	if (err == 0 && dest->qp == NULL)
		err = rcd_ds_qp_get(rs, &local, &dest->qp);
	return err;
}

int
rcd_ds_dest_handle(struct rcd_rs *rs, struct rcd_ds_dest *dest)
{
	struct ibv_ah_attr attr = { .is_global = 1,
		.port_num = 1,
		.grh = { .sgid_index = dest->qp->sgid_index,
			.hop_limit = HOP_LIMIT,
			.traffic_class = (uint8_t)rs->tos } };
	int err = 0;

	if (dest->ah != NULL)
		return 0;
	memcpy(attr.grh.dgid.raw, dest->addr.ip, 16);
	/* The engine asks the neighbour: that may take as long as it likes. */
	pthread_mutex_unlock(&rs->lock);
	dest->ah = ibv_create_ah(dest->qp->id->pd, &attr);
	if (dest->ah == NULL)
		err = -errno;
	pthread_mutex_lock(&rs->lock);
	return err;
}

void
rcd_ds_dests_free(struct rcd_ds *ds)
{
	struct rcd_ds_dest *dest;

	while ((dest = TAILQ_FIRST(&ds->uses)) != NULL)
		ds_dest_free(ds, dest);
}
