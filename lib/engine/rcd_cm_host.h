/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine as host of the CM service: what lib/cma asks for.
 */
#ifndef RCD_CM_HOST_H
#define RCD_CM_HOST_H

#include <stdint.h>

struct rcd_engine;
struct rcd_session;
union rcd_ctrl_body;

/** Make the CM service of an engine, and QP1. Control thread. @return 0 or -ENOMEM */
int
rcd_cm_host_create(struct rcd_engine *engine);

/** End both, after all sessions. What was not made is left alone. */
void
rcd_cm_host_destroy(struct rcd_engine *engine);

/** Serve a session's request, as rcd_cma_serve(). @return also -ENOMEM */
int
rcd_cm_host_serve(struct rcd_session *session, uint32_t op, const union rcd_ctrl_body *in,
	union rcd_ctrl_body *out, int *fd);

/** A session ends: its peers are told. */
void
rcd_cm_host_end(struct rcd_session *session);

#endif /* RCD_CM_HOST_H */
