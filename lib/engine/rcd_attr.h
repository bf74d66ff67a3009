/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Attributes of queue pairs and address vectors, between messages and the transport: copies that
 * rcd_qp_attr.def makes. Values are as the client gave them: who uses them judges them.
 *
 * Threads: any.
 */
#ifndef RCD_ATTR_H
#define RCD_ATTR_H

#include "rcd_ctrl.h"
#include "rcd_qp.h"

/** What came in a message. Of the way it has what the client knows: neither source nor next hop. */
void
rcd_attr_take(const struct rcd_ctrl_qp_attr *from, struct rcd_qp_attr *to);
void
rcd_attr_take_av(const struct rcd_ctrl_av *from, struct rcd_av *to);

/** What goes into a message. */
void
rcd_attr_show(const struct rcd_qp_attr *from, struct rcd_ctrl_qp_attr *to);

#endif /* RCD_ATTR_H */
