/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The state of a queue pair follows its connection's.
 */
#include "rcd_rm.h"

/**
 * Attributes that come from the engine, whatever state is asked for. A rate is the program's, for
 * which those of before 2016 have no room.
 */
#define FROM_ENGINE                                                                                \
	(RCD_QP_ATTR_ALL &                                                                         \
		~(uint32_t)(RCD_QP_ATTR_STATE | RCD_QP_ATTR_CUR | RCD_QP_ATTR_SQD_NOTIFY |         \
			RCD_QP_ATTR_AV | RCD_QP_ATTR_RATE))

/* @return 0 or -errno */
static int
rm_qp_state_init_attr(struct rcd_rm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	struct rcd_ctrl_cm_pair req = { .id = id->handle, .second = attr->qp_state };
	struct rcd_ctrl_cm_attr_rep rep;
	int err = rcd_rm_call(id, RCD_CTRL_CM_QP_ATTR, &req, &rep);

	if (err != 0)
		return err;
	*mask = (int)rep.mask;
	/* As the kernel does it: what this state does not need is 0; an address stays as it was. */
	rcd_ctrl_qp_attr_to_verbs(&rep.attr, FROM_ENGINE | (rep.mask & RCD_QP_ATTR_AV), attr);
	return 0;
}

int
rdma_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attr, int *mask)
{
	if (base == NULL || attr == NULL || mask == NULL)
		return rcd_rm_ret(-EINVAL);
	rcd_rm_look(rcd_rm_id(base));
	return rcd_rm_ret(rm_qp_state_init_attr(rcd_rm_id(base), attr, mask));
}

int
rcd_rm_qp_to(struct rcd_rm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = 0;
	int err = rm_qp_state_init_attr(id, &attr, &mask);

	if (err != 0)
		return err;
	/* What was agreed on, where the application had a say. */
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		attr.max_dest_rd_atomic = id->responder_resources;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		attr.max_rd_atomic = id->initiator_depth;
	return -ibv_modify_qp(id->base.qp, &attr, mask);
}

int
rcd_rm_qp_to_rts(struct rcd_rm_id *id)
{
	int err = rcd_rm_qp_to(id, IBV_QPS_INIT);

	if (err == 0)
		err = rcd_rm_qp_to(id, IBV_QPS_RTR);
	if (err == 0)
		err = rcd_rm_qp_to(id, IBV_QPS_RTS);
	return err;
}

int
rcd_rm_qp_error(struct rcd_rm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (id->base.qp == NULL || id->base.qp_type == IBV_QPT_UD)
		return 0;
	return -ibv_modify_qp(id->base.qp, &attr, IBV_QP_STATE);
}

int
rcd_rm_confirm(struct rcd_rm_id *id)
{
	struct rcd_ctrl_cm_reject_req refuse = { .id = id->handle };
	int err;

	id->responder_resources =
		rcd_rm_at_most(id->responder_resources, id->device->max_rd_atomic);
	id->initiator_depth = rcd_rm_at_most(id->initiator_depth, id->device->max_rd_atomic);
	err = rcd_rm_qp_to_rts(id);
	if (err == 0)
		err = rcd_rm_call_handle(id, RCD_CTRL_CM_ESTABLISH, NULL);
	if (err != 0) {
		rcd_rm_qp_error(id);
		rcd_rm_call(id, RCD_CTRL_CM_REJECT, &refuse, NULL);
	}
	return err;
}
