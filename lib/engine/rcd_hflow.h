/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Flows: which frames the queue pairs of raw packets get, and who may have such. Lcores know flows
 * by the table of their device (rcd_raw.h).
 *
 * Threads: the control thread.
 */
#ifndef RCD_HFLOW_H
#define RCD_HFLOW_H

#include <stdbool.h>
#include <stdint.h>

struct rcd_conn;
struct rcd_context;
struct rcd_ctrl_flow_counts;
struct rcd_ctrl_flow_req;
struct rcd_dev;
struct rcd_hqp;

/** Whether a device has raw packets: it is told to, and its port sees any frame. */
bool
rcd_hflow_offered(const struct rcd_dev *dev);

/**
 * Whether a connection may have raw packets in a context now.
 *
 * @return 0; -EOPNOTSUPP: the device has none, or memory of the context is reached by copies;
 *         -EPERM: its process has no CAP_NET_RAW
 */
int
rcd_hflow_may(const struct rcd_context *context, const struct rcd_conn *conn);

/**
 * Make a flow.
 *
 * @param handle  set when 0 is returned
 * @return 0; -ENOENT: no such queue pair; -EINVAL: one of another service, or a value that is none;
 *         -ENOMEM: the device, or the context, has as many as there may be; -EOPNOTSUPP: a
 *         sniffer, which the device is not told to have; what rcd_hflow_may() says
 */
int
rcd_hflow_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_flow_req *req, uint32_t *handle);

/** Remove one. @param counts  all that it counted @return 0; -ENOENT: none of this handle */
int
rcd_hflow_destroy(
	struct rcd_context *context, uint32_t handle, struct rcd_ctrl_flow_counts *counts);

/** What one counted so far: as rcd_hflow_destroy(). Who made it may read it, whatever he lost. */
int
rcd_hflow_read(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_flow_counts *counts);

/** No flow leads to a queue pair any more, which no lcore knows. */
void
rcd_hflow_end(struct rcd_context *context, struct rcd_hqp *hqp);

#endif /* RCD_HFLOW_H */
