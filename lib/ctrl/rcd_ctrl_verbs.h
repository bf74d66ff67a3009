/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the verbs' structs and messages have in common, from one to the other: attributes of queue
 * pairs, address vectors, services. Lists make the copies (rcd_qp_attr.def), and the proof that our
 * numbers are those of the headers that this is built with (rcd_number.def).
 *
 * For the drop-in libraries: the only header of lib/ctrl that knows rdma-core's.
 */
#ifndef RCD_CTRL_VERBS_H
#define RCD_CTRL_VERBS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "rcd_ctrl.h"
#include "rcd_wr.h"

#ifndef RCD_VERBS_FLUSH
/** What headers of before rdma-core 46 have no names for. */
enum {
	IBV_ACCESS_FLUSH_GLOBAL = 1 << 8,
	IBV_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	IBV_QP_EX_WITH_FLUSH = 1 << 11,
	IBV_WC_FLUSH = 8,
	IBV_WR_FLUSH = 14,
};
#endif

#define RCD_CTRL_SAME(ours, theirs)                                                                \
	static_assert((uint32_t)(ours) == (uint32_t)(theirs), #ours " is " #theirs);

#define RCD_QP_ATTR(symbol, bit, kind, field, verbs_symbol, verbs_field)                           \
	RCD_CTRL_SAME(RCD_QP_ATTR_##symbol, IBV_QP_##verbs_symbol)
#include "rcd_qp_attr.def"

#define RCD_ACCESS(symbol, bit)              RCD_CTRL_SAME(RCD_ACCESS_##symbol, IBV_ACCESS_##symbol)
#define RCD_MTU(bytes, code)                 RCD_CTRL_SAME(code, IBV_MTU_##bytes)
#define RCD_QP_STATE(symbol, number)         RCD_CTRL_SAME(RCD_QP_##symbol, IBV_QPS_##symbol)
#define RCD_PORT(symbol, number)             RCD_CTRL_SAME(RCD_PORT_##symbol, IBV_PORT_##symbol)
#define RCD_WR_OPCODE(symbol, number, verbs) RCD_CTRL_SAME(RCD_WR_##symbol, IBV_WR_##verbs)
#define RCD_SEND_FLAG(symbol, bit)           RCD_CTRL_SAME(RCD_SEND_##symbol, IBV_SEND_##symbol)
#define RCD_WC_STATUS(symbol, number)        RCD_CTRL_SAME(RCD_WC_##symbol, IBV_WC_##symbol)
#define RCD_WC_OPCODE(symbol, number)        RCD_CTRL_SAME(RCD_WC_##symbol, IBV_WC_##symbol)
#define RCD_WC_FLAG(symbol, bit)             RCD_CTRL_SAME(RCD_WC_##symbol, IBV_WC_##symbol)
#define RCD_EVENT(symbol, number)            RCD_CTRL_SAME(RCD_EVENT_##symbol, IBV_EVENT_##symbol)
#include "rcd_number.def"

/* From the verbs' field to the message's, by kind. */
#define RCD_CTRL_OF_access(to, from)                                                               \
	(to) = (from) & (RCD_ACCESS_REMOTE | RCD_ACCESS_FLUSH_PERSISTENT)
#define RCD_CTRL_OF_av(to, from)    err = rcd_ctrl_av_of_verbs(&(from), &(to))
#define RCD_CTRL_OF_flag(to, from)  (to) = (from)
#define RCD_CTRL_OF_flow(to, from)  (to) = (from)
#define RCD_CTRL_OF_gid(to, from)   memcpy((to), (from).raw, sizeof(to))
#define RCD_CTRL_OF_mtu(to, from)   (to) = rcd_mtu_bytes(from)
#define RCD_CTRL_OF_psn(to, from)   (to) = (from)
#define RCD_CTRL_OF_qkey(to, from)  (to) = (from)
#define RCD_CTRL_OF_qpn(to, from)   (to) = (from)
#define RCD_CTRL_OF_state(to, from) (to) = (uint8_t)(from)
#define RCD_CTRL_OF_u16(to, from)   (to) = (from)
#define RCD_CTRL_OF_u32(to, from)   (to) = (from)
#define RCD_CTRL_OF_u8(to, from)    (to) = (from)

/* And back. */
#define RCD_CTRL_TO_access(to, from) (to) = (from)
#define RCD_CTRL_TO_av(to, from)     rcd_ctrl_av_to_verbs(&(from), &(to))
#define RCD_CTRL_TO_flag(to, from)   (to) = (from)
#define RCD_CTRL_TO_flow(to, from)   (to) = (from)
#define RCD_CTRL_TO_gid(to, from)    memcpy((to).raw, (from), sizeof(from))
#define RCD_CTRL_TO_mtu(to, from)    (to) = (enum ibv_mtu)rcd_mtu_code(from)
#define RCD_CTRL_TO_psn(to, from)    (to) = (from)
#define RCD_CTRL_TO_qkey(to, from)   (to) = (from)
#define RCD_CTRL_TO_qpn(to, from)    (to) = (from)
#define RCD_CTRL_TO_state(to, from)  (to) = (enum ibv_qp_state)(from)
#define RCD_CTRL_TO_u16(to, from)    (to) = (from)
#define RCD_CTRL_TO_u32(to, from)    (to) = (from)
#define RCD_CTRL_TO_u8(to, from)     (to) = (from)

/** @return 0, or EINVAL: without addresses of IP there is no way for a packet */
static inline int
rcd_ctrl_av_of_verbs(const struct ibv_ah_attr *from, struct rcd_ctrl_av *to)
{
	if (!from->is_global || (from->port_num != 0 && from->port_num != 1))
		return EINVAL;
#define RCD_AV_FIELD(kind, field, verbs_field) RCD_CTRL_OF_##kind(to->field, from->verbs_field);
#include "rcd_qp_attr.def"
	return 0;
}

/** As the verbs have it. All of @p to is set. */
static inline void
rcd_ctrl_av_to_verbs(const struct rcd_ctrl_av *from, struct ibv_ah_attr *to)
{
	*to = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
#define RCD_AV_FIELD(kind, field, verbs_field) RCD_CTRL_TO_##kind(to->verbs_field, from->field);
#include "rcd_qp_attr.def"
}

/**
 * Attributes for a message. What the mask does not name is 0: it may be anything in the
 * application's memory.
 *
 * @param mask  IBV_QP_*, which is RCD_QP_ATTR_*
 * @return 0; EOPNOTSUPP: attributes that there are not; EINVAL: an address vector without addresses
 */
static inline int
rcd_ctrl_qp_attr_of_verbs(
	const struct ibv_qp_attr *from, uint32_t mask, struct rcd_ctrl_qp_attr *to)
{
	int err = 0;

	memset(to, 0, sizeof(*to));
	if (mask & ~(uint32_t)RCD_QP_ATTR_ALL)
		return EOPNOTSUPP;
#define RCD_QP_ATTR(symbol, bit, kind, field, verbs_symbol, verbs_field)                           \
	if (mask & RCD_QP_ATTR_##symbol)                                                           \
		RCD_CTRL_OF_##kind(to->field, from->verbs_field);
#include "rcd_qp_attr.def"
	return err;
}

/** Attributes of a message. What the mask does not name stays as it is. */
static inline void
rcd_ctrl_qp_attr_to_verbs(
	const struct rcd_ctrl_qp_attr *from, uint32_t mask, struct ibv_qp_attr *to)
{
#define RCD_QP_ATTR(symbol, bit, kind, field, verbs_symbol, verbs_field)                           \
	if (mask & RCD_QP_ATTR_##symbol)                                                           \
		RCD_CTRL_TO_##kind(to->verbs_field, from->field);
#include "rcd_qp_attr.def"
}

/** The service that queue pairs of a type have. @return 0, or EOPNOTSUPP with @p to as it was */
static inline int
rcd_ctrl_qp_type_of_verbs(enum ibv_qp_type from, uint32_t *to)
{
#define RCD_QP_TYPE(symbol, number)                                                                \
	if (from == IBV_QPT_##symbol) {                                                            \
		*to = RCD_QP_##symbol;                                                             \
		return 0;                                                                          \
	}
#include "rcd_number.def"
	return EOPNOTSUPP;
}

#endif /* RCD_CTRL_VERBS_H */
