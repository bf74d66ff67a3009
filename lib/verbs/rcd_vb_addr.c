/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * GIDs, address handles and multicast groups.
 */
#include "rcd_vb.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_query_gid_ex
#undef ibv_query_gid_table

/* Exported, and in no header. */
int
ibv_query_gid_type(
	struct ibv_context *context, uint8_t port, unsigned int index, unsigned int *type);

/** Numbers of the kernel's sysfs for GID types, and the one of RoCEv2. */
#define SYSFS_ROCE_V2 1

static int
vb_addr_gids(struct ibv_context *context, struct rcd_ctrl_gids_rep *rep)
{
	struct rcd_ctrl_index_req req = { .index = 0 };

	return rcd_client_call(rcd_vb_client(context), RCD_CTRL_GIDS, &req, rep, NULL, NULL);
}

static bool
vb_addr_used(const struct rcd_ctrl_gid *gid)
{
	static const uint8_t none[16];

	return memcmp(gid->raw, none, sizeof(none)) != 0;
}

int
ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct rcd_ctrl_gids_rep rep;
	int err = vb_addr_gids(context, &rep);

	if (err != 0 || port != 1 || index < 0 || (uint32_t)index >= rep.count) {
		errno = err != 0 ? -err : EINVAL;
		return -1;
	}
	memcpy(gid->raw, rep.gids[index].raw, sizeof(gid->raw));
	return 0;
}

static void
vb_addr_fill_entry(const struct rcd_ctrl_gid *from, uint32_t index, struct ibv_gid_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	memcpy(entry->gid.raw, from->raw, sizeof(entry->gid.raw));
	entry->gid_index = index;
	entry->port_num = 1;
	entry->gid_type = IBV_GID_TYPE_ROCE_V2;
	entry->ndev_ifindex = from->ifindex;
}

int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
	struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct rcd_ctrl_gids_rep rep;
	struct ibv_gid_entry full;
	int err;

	if (port != 1 || flags != 0)
		return EINVAL;
	err = vb_addr_gids(context, &rep);
	if (err != 0)
		return -err;
	if (index >= rep.count)
		return EINVAL;
	if (!vb_addr_used(&rep.gids[index]))
		return ENODATA;
	vb_addr_fill_entry(&rep.gids[index], index, &full);
	memset(entry, 0, entry_size);
	memcpy(entry, &full, entry_size < sizeof(full) ? entry_size : sizeof(full));
	return 0;
}

ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
	uint32_t flags, size_t entry_size)
{
	struct rcd_ctrl_gids_rep rep;
	size_t count = 0;
	int err;

	if (flags != 0)
		return -EINVAL;
	err = vb_addr_gids(context, &rep);
	if (err != 0)
		return err;
	for (uint32_t i = 0; i < rep.count; i++) {
		uint8_t *to = (uint8_t *)entries + count * entry_size;
		struct ibv_gid_entry full;

		if (!vb_addr_used(&rep.gids[i]))
			continue;
		if (count == max_entries)
			return -EINVAL;
		vb_addr_fill_entry(&rep.gids[i], i, &full);
		memset(to, 0, entry_size);
		memcpy(to, &full, entry_size < sizeof(full) ? entry_size : sizeof(full));
		count++;
	}
	return (ssize_t)count;
}

/* As the kernel's sysfs numbers them, not as struct ibv_gid_entry does. */
int
ibv_query_gid_type(
	struct ibv_context *context, uint8_t port, unsigned int index, unsigned int *type)
{
	(void)context, (void)index;
	if (port != 1) {
		errno = EINVAL;
		return -1;
	}
	*type = SYSFS_ROCE_V2;
	return 0;
}

struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct rcd_ctrl_ah_req req = { .pd = pd->handle };
	struct rcd_ctrl_handle rep;
	struct ibv_ah *ah = rcd_vb_new(pd->context, sizeof(*ah));
	int err;

	if (ah == NULL)
		return NULL;
	err = -rcd_ctrl_av_of_verbs(attr, &req.av);
	if (err == 0)
		err = rcd_client_call(
			rcd_vb_client(pd->context), RCD_CTRL_AH_CREATE, &req, &rep, NULL, NULL);
	if (err != 0) {
		rcd_vb_free(pd->context, ah);
		errno = -err;
		return NULL;
	}
	ah->context = pd->context;
	ah->pd = pd;
	ah->handle = rep.handle;
	return ah;
}

/* The packet's IP header lies in the 40 bytes before the payload; IPv4 in the last 20 of them. */
int
ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const uint8_t *bytes = (const uint8_t *)grh;
	struct rcd_ctrl_gids_rep rep;
	uint8_t dgid[16] = { [10] = 0xff, 0xff };
	int err = vb_addr_gids(context, &rep);

	memset(attr, 0, sizeof(*attr));
	attr->sl = wc->sl;
	attr->port_num = port;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	if (err != 0) {
		errno = -err;
		return -1;
	}
	attr->is_global = 1;
	if (bytes[0] >> 4 == 6) {
		memcpy(attr->grh.dgid.raw, grh->sgid.raw, 16);
		memcpy(dgid, grh->dgid.raw, 16);
		attr->grh.flow_label = be32toh(grh->version_tclass_flow) & 0xfffff;
		attr->grh.traffic_class = (uint8_t)(be32toh(grh->version_tclass_flow) >> 20);
	} else {
		attr->grh.dgid.raw[10] = attr->grh.dgid.raw[11] = 0xff;
		memcpy(attr->grh.dgid.raw + 12, bytes + 20 + 12, 4);
		memcpy(dgid + 12, bytes + 20 + 16, 4);
		attr->grh.traffic_class = bytes[21];
	}
	attr->grh.hop_limit = 0xff;
	for (uint32_t i = 0; i < rep.count; i++) {
		if (memcmp(rep.gids[i].raw, dgid, 16) == 0) {
			attr->grh.sgid_index = (uint8_t)i;
			return 0;
		}
	}
	errno = ENOENT;
	return -1;
}

struct ibv_ah *
ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) != 0)
		return NULL;
	return ibv_create_ah(pd, &attr);
}

int
ibv_destroy_ah(struct ibv_ah *ah)
{
	struct rcd_ctrl_ah_handle req = { .pd = ah->pd->handle, .handle = ah->handle };
	int err = rcd_client_call(
		rcd_vb_client(ah->context), RCD_CTRL_AH_DESTROY, &req, NULL, NULL, NULL);

	if (err != 0 && err != -EIO)
		return -err;
	rcd_vb_free(ah->context, ah);
	return 0;
}

static int
vb_addr_mcast(struct ibv_qp *qp, const union ibv_gid *gid, enum rcd_ctrl_op op)
{
	struct rcd_ctrl_mcast_req req = { .qp = qp->handle };

	memcpy(req.group, gid->raw, sizeof(req.group));
	return rcd_vb_ret(rcd_client_call(rcd_vb_client(qp->context), op, &req, NULL, NULL, NULL));
}

int
ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return vb_addr_mcast(qp, gid, RCD_CTRL_MCAST_ATTACH);
}

int
ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return vb_addr_mcast(qp, gid, RCD_CTRL_MCAST_DETACH);
}

/* The engine finds the way itself; a MAC of zeros is as good as any other. */
int
ibv_resolve_eth_l2_from_gid(
	struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6], uint16_t *vid)
{
	(void)context, (void)attr;
	memset(mac, 0, 6);
	if (vid != NULL)
		*vid = 0xffff;
	return 0;
}
