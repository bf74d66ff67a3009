/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Responder of RC, the sending half. Inside of a queue pair, on its lcore.
 */
#ifndef RCD_REPLY_H
#define RCD_REPLY_H

#include <stdbool.h>

#include "rcd_aeth.h"
#include "rcd_qp.h"

struct rcd_resp_resource;

/** Next acknowledge or response. @return whether there is one */
bool
rcd_reply_next(struct rcd_qp *qp, struct rcd_tx_pkt *pkt);

/** Queue the answer to a READ, atomic, FLUSH or ATOMIC WRITE. */
void
rcd_reply_add(struct rcd_qp *qp, struct rcd_resp_resource *resource);

/** Take such an answer out of the queue again. */
void
rcd_reply_cancel(struct rcd_qp *qp, struct rcd_resp_resource *resource);

/** Instead of all that is still to be answered: a NAK for this PSN. */
void
rcd_reply_refuse(struct rcd_qp *qp, struct rcd_psn psn, enum rcd_nak code);

/** Answer a request that was executed before. */
enum rcd_rx_verdict
rcd_reply_duplicate(struct rcd_qp *qp, const struct rcd_roce *roce);

#endif /* RCD_REPLY_H */
