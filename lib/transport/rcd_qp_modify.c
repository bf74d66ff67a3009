/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * States and attributes of a queue pair: one table says what each transition needs
 * (rcd_qp_transition.def), this file checks values and carries transitions out.
 */
#include <errno.h>

#include "rcd_qp_priv.h"

/* The names that rcd_qp_transition.def uses. */
enum {
#define RCD_QP_ATTR(symbol, bit, kind, field, verbs_symbol, verbs_field)                           \
	symbol = RCD_QP_ATTR_##symbol,
#include "rcd_qp_attr.def"
};

struct transition {
	uint32_t required;
	uint32_t optional;
	bool exists;
};

static const struct transition transitions[RCD_QP_STATE_COUNT][RCD_QP_STATE_COUNT]
					  [RCD_QP_TYPE_COUNT] = {
#define RCD_QP_TRANSITION(from, to, service, req, opt)                                             \
	[RCD_QP_##from][RCD_QP_##to][RCD_QP_##service] = {                                         \
		.required = (req),                                                                 \
		.optional = (opt),                                                                 \
		.exists = true,                                                                    \
	},
#include "rcd_qp_transition.def"
#undef RCD_QP_TRANSITION
					  };

static int
qp_modify_check_transition(const struct rcd_qp *qp, enum rcd_qp_state to, uint32_t mask)
{
	const struct transition *transition = &transitions[qp->hot.state][to][qp->hot.type];

	mask &= ~(uint32_t)RCD_QP_ATTR_STATE;
	/* Spec: IBTA 11.2.5.2 from any state, with nothing else */
	if (to == RCD_QP_RESET || to == RCD_QP_ERR)
		return (mask & ~(uint32_t)RCD_QP_ATTR_CUR) == 0 ? 0 : -EINVAL;
	if (!transition->exists || (mask & transition->required) != transition->required)
		return -EINVAL;
	return (mask & ~(transition->required | transition->optional)) == 0 ? 0 : -EINVAL;
}

static int
qp_modify_check_values(const struct rcd_qp *qp, const struct rcd_qp_attr *attr, uint32_t mask)
{
	if ((mask & CUR) && attr->cur_state != qp->hot.state)
		return -EINVAL;
	if ((mask & ACCESS) &&
		(attr->access &
			~(uint32_t)(RCD_ACCESS_REMOTE | RCD_ACCESS_FLUSH_PERSISTENT |
				RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_MW_BIND)))
		return -EINVAL;
	if (((mask & PKEY_INDEX) && attr->pkey_index != 0) || ((mask & PORT) && attr->port != 1))
		return -EINVAL;
	if ((mask & PATH_MTU) && !rcd_mtu_valid(attr->path_mtu_bytes, qp->init.port_mtu_bytes))
		return -EINVAL;
	if (((mask & TIMEOUT) && attr->timeout > 31) ||
		((mask & RETRY_CNT) && attr->retry_cnt > 7) ||
		((mask & RNR_RETRY) && attr->rnr_retry > 7) ||
		((mask & MIN_RNR_TIMER) && attr->min_rnr_timer > 31))
		return -EINVAL;
	/* A requester keeps nothing for them but its queue. */
	if (((mask & MAX_RD_ATOMIC) && attr->max_rd_atomic > RCD_QP_RD_ATOMIC_MAX) ||
		((mask & MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > qp->init.max_rd_atomic))
		return -EINVAL;
	if (((mask & RQ_PSN) && attr->rq_psn.val > RCD_PSN_MASK) ||
		((mask & SQ_PSN) && attr->sq_psn.val > RCD_PSN_MASK) ||
		((mask & DEST_QPN) && attr->dest_qpn.val > RCD_PSN_MASK))
		return -EINVAL;
	return (mask & RATE) && attr->rate_kbps != 0 && qp->gate == NULL ? -EINVAL : 0;
}

static void
qp_modify_set_values(struct rcd_qp *qp, const struct rcd_qp_attr *from, uint32_t mask)
{
	struct rcd_qp_attr *to = &qp->attr;

#define RCD_QP_ATTR(symbol, bit, kind, field, verbs_symbol, verbs_field)                           \
	if (mask & symbol)                                                                         \
		to->field = from->field;
#include "rcd_qp_attr.def"
	if (mask & RATE) {
		to->burst_bytes = from->burst_bytes;
		rcd_gate_limit(qp);
	}
	if (mask & PATH_MTU) {
		qp->hot.mtu = to->path_mtu_bytes;
		qp->hot.mtu_shift = (uint8_t)__builtin_ctz(to->path_mtu_bytes);
	}
	if (mask & TIMEOUT)
		qp->rto_ns = rcd_ack_timeout_ns(to->timeout);
	if (mask & RETRY_CNT)
		qp->hot.retry_left = to->retry_cnt;
	if (mask & RNR_RETRY)
		qp->hot.rnr_left = to->rnr_retry;
	if (mask & MAX_DEST_RD_ATOMIC)
		qp->resource_next = 0;
	if (mask & RQ_PSN)
		qp->hot.epsn = to->rq_psn;
	if (mask & SQ_PSN)
		qp->hot.psn_una = qp->hot.psn_next = qp->hot.psn_tx = qp->hot.psn_read = to->sq_psn;
	if ((mask & SQ_PSN) && qp->sack != NULL)
		rcd_sack_start(qp);
}

static void
qp_modify_enter(struct rcd_qp *qp, enum rcd_qp_state to)
{
	uint8_t from = qp->hot.state;

	if (to == RCD_QP_ERR) {
		rcd_qp_error(qp, 0);
		return;
	}
	if (to == RCD_QP_RESET) {
		rcd_qp_clear(qp);
		return;
	}
	rcd_qp_set_state(&qp->hot, to);
	if (to == RCD_QP_SQD && from != RCD_QP_SQD) {
		qp->drained = false;
		rcd_req_drain(qp);
		rcd_qp_check_drained(qp);
	}
}

/* Spec: IBTA 10.3.1 the address vector may change once the send queue is drained */
static int
qp_modify_check_drained(const struct rcd_qp *qp, uint8_t to, uint32_t mask)
{
	bool draining = qp->hot.state == RCD_QP_SQD && to == RCD_QP_SQD && !qp->drained;

	return draining && (mask & ~(uint32_t)RCD_QP_ATTR_STATE) != 0 ? -EINVAL : 0;
}

/* Spec: IBTA 10.3.1 what was posted before the error is flushed, and not sent after it */
static int
qp_modify_check_flushed(const struct rcd_qp *qp, uint8_t to)
{
	return qp->hot.state == RCD_QP_SQE && to == RCD_QP_RTS && qp->hot.flushing ? -EAGAIN : 0;
}

int
rcd_qp_modify(struct rcd_qp *qp, const struct rcd_qp_attr *attr, uint32_t mask)
{
	uint8_t to = mask & RCD_QP_ATTR_STATE ? attr->state : qp->hot.state;
	int err;

	if (to >= RCD_QP_STATE_COUNT)
		return -EINVAL;
	err = qp_modify_check_transition(qp, (enum rcd_qp_state)to, mask);
	if (err == 0)
		err = qp_modify_check_values(qp, attr, mask);
	if (err == 0)
		err = qp_modify_check_drained(qp, to, mask);
	if (err == 0)
		err = qp_modify_check_flushed(qp, to);
	if (err != 0)
		return err;
	qp_modify_set_values(qp, attr, mask);
	if (mask & RCD_QP_ATTR_STATE)
		qp_modify_enter(qp, (enum rcd_qp_state)to);
	return 0;
}

void
rcd_qp_query(const struct rcd_qp *qp, struct rcd_qp_attr *attr)
{
	*attr = qp->attr;
	attr->state = attr->cur_state = qp->hot.state;
	attr->sq_draining = qp->hot.state == RCD_QP_SQD && !qp->drained;
	if (qp->hot.state > RCD_QP_INIT && qp->hot.state != RCD_QP_ERR) {
		attr->rq_psn = qp->hot.epsn;
		attr->sq_psn = qp->hot.psn_next;
	}
}
