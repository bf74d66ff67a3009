/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Attributes between messages and the transport: what each kind of rcd_qp_attr.def means on both
 * sides.
 */
#include "rcd_attr.h"

#include <string.h>

/* From a message, by kind. A number that is too large for its type is one that is not valid. */
#define TAKE_access(to, from) (to) = (from)
#define TAKE_av(to, from)     rcd_attr_take_av(&(from), &(to))
#define TAKE_flag(to, from)   (to) = (from) != 0
#define TAKE_flow(to, from)   (to) = (from)&0xfffff
#define TAKE_gid(to, from)    memcpy((to).raw, (from), sizeof(from))
#define TAKE_mtu(to, from)    (to) = (uint16_t)((from) <= RCD_PATH_MTU_MAX_BYTES ? (from) : 0)
#define TAKE_psn(to, from)    (to) = rcd_psn(from)
#define TAKE_qkey(to, from)   (to).val = (from)
#define TAKE_qpn(to, from)    (to).val = (from)&0xffffff
#define TAKE_state(to, from)  (to) = (from)
#define TAKE_u16(to, from)    (to) = (from)
#define TAKE_u32(to, from)    (to) = (from)
#define TAKE_u8(to, from)     (to) = (from)

/* And into one. */
#define SHOW_access(to, from) (to) = (from)
#define SHOW_av(to, from)     attr_show_av(&(from), &(to))
#define SHOW_flag(to, from)   (to) = (from)
#define SHOW_flow(to, from)   (to) = (from)
#define SHOW_gid(to, from)    memcpy((to), (from).raw, sizeof(to))
#define SHOW_mtu(to, from)    (to) = (from)
#define SHOW_psn(to, from)    (to) = (from).val
#define SHOW_qkey(to, from)   (to) = (from).val
#define SHOW_qpn(to, from)    (to) = (from).val
#define SHOW_state(to, from)  (to) = (from)
#define SHOW_u16(to, from)    (to) = (from)
#define SHOW_u32(to, from)    (to) = (from)
#define SHOW_u8(to, from)     (to) = (from)

void
rcd_attr_take_av(const struct rcd_ctrl_av *from, struct rcd_av *to)
{
	memset(to, 0, sizeof(*to));
#define RCD_AV_FIELD(kind, field, verbs_field) TAKE_##kind(to->field, from->field);
#include "rcd_qp_attr.def"
}

void
rcd_attr_take(const struct rcd_ctrl_qp_attr *from, struct rcd_qp_attr *to)
{
	memset(to, 0, sizeof(*to));
#define RCD_QP_ATTR(symbol, bit, kind, field, verbs_symbol, verbs_field)                           \
	TAKE_##kind(to->field, from->field);
#include "rcd_qp_attr.def"
	to->burst_bytes = from->burst_bytes;
}

static void
attr_show_av(const struct rcd_av *from, struct rcd_ctrl_av *to)
{
#define RCD_AV_FIELD(kind, field, verbs_field) SHOW_##kind(to->field, from->field);
#include "rcd_qp_attr.def"
}

void
rcd_attr_show(const struct rcd_qp_attr *from, struct rcd_ctrl_qp_attr *to)
{
	memset(to, 0, sizeof(*to));
#define RCD_QP_ATTR(symbol, bit, kind, field, verbs_symbol, verbs_field)                           \
	SHOW_##kind(to->field, from->field);
#include "rcd_qp_attr.def"
	to->burst_bytes = from->burst_bytes;
	to->sq_draining = from->sq_draining;
}
