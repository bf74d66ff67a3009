/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Asynchronous events. What they are about may be gone by the time they are read: such are passed
 * over.
 */
#include "rcd_vb.h"

#include <stdint.h>

/* @return whether the object is still there; its count of delivered events grows then */
static bool
vb_event_deliver(
	struct rcd_vb_context *vb, const struct rcd_ctrl_event *event, struct ibv_async_event *to)
{
	struct rcd_vb_qp *qp;
	struct rcd_vb_cq *cq;
	struct rcd_vb_srq *srq;
	bool found = true;

	to->event_type = (enum ibv_event_type)event->type;
	switch ((enum rcd_ctrl_event_of)event->of) {
	case RCD_CTRL_EVENT_QP:
		LIST_FOREACH(qp, &vb->qps, link)
			if ((uintptr_t)qp == event->cookie)
				break;
		found = qp != NULL;
		if (found) {
			qp->delivered++;
			to->element.qp = &qp->qp.qp_base;
		}
		break;
	case RCD_CTRL_EVENT_CQ:
		LIST_FOREACH(cq, &vb->cqs, link)
			if ((uintptr_t)cq == event->cookie)
				break;
		found = cq != NULL;
		if (found) {
			cq->async_delivered++;
			to->element.cq = ibv_cq_ex_to_cq(&cq->cq);
		}
		break;
	case RCD_CTRL_EVENT_SRQ:
		LIST_FOREACH(srq, &vb->srqs, link)
			if ((uintptr_t)srq == event->cookie)
				break;
		found = srq != NULL;
		if (found) {
			srq->delivered++;
			to->element.srq = &srq->srq;
		}
		break;
	case RCD_CTRL_EVENT_PORT:
	case RCD_CTRL_EVENT_DEVICE:
		to->element.port_num = 1;
		break;
	}
	return found;
}

int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *to)
{
	struct rcd_vb_context *vb = rcd_vb_context(context);

	for (;;) {
		struct rcd_ctrl_event event;
		long got = rcd_ctrl_recv_event(context->async_fd, &event);
		bool found;

		if (got == 0) {
			rcd_client_lost(&vb->client);
			if (vb->fatal) {
				errno = EIO;
				return -1;
			}
			event = (struct rcd_ctrl_event){ .type = RCD_EVENT_DEVICE_FATAL,
				.of = RCD_CTRL_EVENT_DEVICE };
		} else if (got != (long)sizeof(event)) {
			errno = got < 0 ? (int)-got : EPROTO;
			return -1;
		}
		vb->fatal |= event.type == RCD_EVENT_DEVICE_FATAL;
		pthread_mutex_lock(&vb->lock);
		found = vb_event_deliver(vb, &event, to);
		pthread_mutex_unlock(&vb->lock);
		if (found)
			return 0;
	}
}

static void
vb_event_acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	(*completed)++;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

void
ibv_ack_async_event(struct ibv_async_event *event)
{
	switch ((int)event->event_type) {
	case IBV_EVENT_CQ_ERR: {
		struct ibv_cq *cq = event->element.cq;

		vb_event_acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	}
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED: {
		struct ibv_qp *qp = event->element.qp;

		vb_event_acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	}
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED: {
		struct ibv_srq *srq = event->element.srq;

		vb_event_acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	}
	default:
		break;
	}
}
