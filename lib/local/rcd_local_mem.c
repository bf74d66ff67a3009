/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Protection domains, regions and address handles of the program, by requests to the engine.
 */
#include <errno.h>

#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_local_object.h"
#include "rcd_own.h"
#include "rcd_umem.h"

int
rcd_local_request(struct rcd_local *local, enum rcd_ctrl_op op, const void *in, void *out)
{
	int err = local->conn != NULL ? rcd_own_begin(local->conn) : -ENODEV;

	if (err != 0)
		return err;
	err = rcd_own_serve(local->conn, op, in, out);
	rcd_own_end(local->conn);
	return err;
}

int
rcd_local_pd_create(struct rcd_local *local, uint32_t *pd)
{
	struct rcd_ctrl_handle rep;
	int err = rcd_local_request(local, RCD_CTRL_PD_CREATE, NULL, &rep);

	if (err == 0)
		*pd = rep.handle;
	return err;
}

int
rcd_local_pd_destroy(struct rcd_local *local, uint32_t pd)
{
	const struct rcd_ctrl_handle req = { .handle = pd };

	return rcd_local_request(local, RCD_CTRL_PD_DESTROY, &req, NULL);
}

int
rcd_local_mr_reg(struct rcd_local *local, uint32_t pd, void *addr, uint64_t len, uint32_t access,
	struct rcd_key *key)
{
	const struct rcd_umem_own own = { .addr = addr, .len = len, .pd = pd, .access = access };
	int err = local->conn != NULL ? rcd_own_begin(local->conn) : -ENODEV;

	if (err != 0)
		return err;
	err = rcd_umem_reg_own(&local->conn->context->umem, &own, &key->val);
	rcd_own_end(local->conn);
	return err;
}

int
rcd_local_mr_dereg(struct rcd_local *local, struct rcd_key key)
{
	const struct rcd_ctrl_key req = { .key = key.val };

	return rcd_local_request(local, RCD_CTRL_MR_DEREG, &req, NULL);
}

int
rcd_local_ah_create(
	struct rcd_local *local, uint32_t pd, const struct rcd_ctrl_av *av, uint32_t *ah)
{
	const struct rcd_ctrl_ah_req req = { .pd = pd, .av = *av };
	struct rcd_ctrl_handle rep;
	int err = rcd_local_request(local, RCD_CTRL_AH_CREATE, &req, &rep);

	if (err == 0)
		*ah = rep.handle;
	return err;
}

int
rcd_local_ah_destroy(struct rcd_local *local, uint32_t pd, uint32_t ah)
{
	const struct rcd_ctrl_ah_handle req = { .pd = pd, .handle = ah };

	return rcd_local_request(local, RCD_CTRL_AH_DESTROY, &req, NULL);
}
