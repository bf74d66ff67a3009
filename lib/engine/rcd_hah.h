/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Address handles as clients ask for them.
 *
 * Threads: the control thread.
 */
#ifndef RCD_HAH_H
#define RCD_HAH_H

#include <stdint.h>

#include "rcd_ctrl.h"

struct rcd_conn;
struct rcd_context;

/** @return 0; -ENOENT: no such domain; -ENOMEM; or as rcd_resolve_av() */
int
rcd_hah_create(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_ah_req *req, uint32_t *handle);

/** @return 0; -ENOENT: not of this context, or of another domain */
int
rcd_hah_destroy(struct rcd_context *context, const struct rcd_ctrl_ah_handle *req);

#endif /* RCD_HAH_H */
