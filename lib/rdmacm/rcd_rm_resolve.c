/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The way to a destination: an identifier has a device and an address from here on.
 */
#include "rcd_rm.h"

#include <string.h>

static size_t
rm_resolve_addr_len(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

int
rdma_resolve_addr(
	struct rdma_cm_id *base, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	struct rcd_rm_id *id = rcd_rm_id(base);
	struct rcd_ctrl_cm_resolve_req req = { .id = id->handle,
		.timeout_ms = timeout_ms > 0 ? (uint32_t)timeout_ms : 0 };
	int err = dst != NULL ? rcd_rm_addr(dst, &req.dst) : -EINVAL;

	if (err == 0)
		err = rcd_rm_addr(src, &req.src);
	if (err == 0)
		err = rcd_rm_call(id, RCD_CTRL_CM_RESOLVE_ADDR, &req, NULL);
	if (err != 0)
		return rcd_rm_ret(err);
	memcpy(&base->route.addr.dst_storage, dst, rm_resolve_addr_len(dst));
	return rcd_rm_complete(id);
}

int
rdma_resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
	struct rcd_rm_id *id = rcd_rm_id(base);
	int err = rcd_rm_call_handle(id, RCD_CTRL_CM_RESOLVE_ROUTE, NULL);

	(void)timeout_ms; /* nobody is asked */
	return err != 0 ? rcd_rm_ret(err) : rcd_rm_complete(id);
}
