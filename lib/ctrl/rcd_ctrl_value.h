/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Values of messages that programs with an engine of their own see as well (rcd_local.h): ports,
 * GIDs, attributes of queue pairs, events. Shapes as rcd_ctrl.h has them.
 */
#ifndef RCD_CTRL_VALUE_H
#define RCD_CTRL_VALUE_H

#include <assert.h>
#include <stdint.h>

#include "rcd_number.h"

/** A port as it is now. */
struct rcd_ctrl_port_rep {
	uint32_t state;            /**< enum rcd_port_state */
	uint32_t max_mtu_bytes;    /**< path MTU that the device could do */
	uint32_t active_mtu_bytes; /**< path MTU that the port does now */
	uint32_t gid_count;        /**< entries of the GID table */
	uint32_t speed_mbps;       /**< 0: unknown */
	uint32_t reserved;         /**< 0 */
};

/** An entry of the GID table. */
struct rcd_ctrl_gid {
	uint8_t raw[16];   /**< all zero: unused */
	uint32_t ifindex;  /**< of the kernel's netdev; 0: none */
	uint32_t vlan_tag; /**< VLAN identifier plus 1; 0: untagged */
};

/** Entries of a GID table that one message has room for: all there are. */
#define RCD_CTRL_GIDS_MAX 128

/** The GID table, from the index that was asked for. */
struct rcd_ctrl_gids_rep {
	uint32_t total;                              /**< entries of the table */
	uint32_t count;                              /**< entries that follow */
	struct rcd_ctrl_gid gids[RCD_CTRL_GIDS_MAX]; /**< those entries */
};

/* How messages hold what rcd_qp_attr.def lists. */
#define RCD_CTRL_AS_av(field)     struct rcd_ctrl_av field /**< its kind av */
#define RCD_CTRL_AS_access(field) uint32_t field           /**< its kind access */
#define RCD_CTRL_AS_flag(field)   uint8_t field            /**< its kind flag */
#define RCD_CTRL_AS_flow(field)   uint32_t field           /**< its kind flow */
#define RCD_CTRL_AS_gid(field)    uint8_t field[16]        /**< its kind gid */
#define RCD_CTRL_AS_mtu(field)    uint32_t field           /**< its kind mtu */
#define RCD_CTRL_AS_psn(field)    uint32_t field           /**< its kind psn */
#define RCD_CTRL_AS_qkey(field)   uint32_t field           /**< its kind qkey */
#define RCD_CTRL_AS_qpn(field)    uint32_t field           /**< its kind qpn */
#define RCD_CTRL_AS_state(field)  uint8_t field            /**< its kind state */
#define RCD_CTRL_AS_u16(field)    uint16_t field           /**< its kind u16 */
#define RCD_CTRL_AS_u32(field)    uint32_t field           /**< its kind u32 */
#define RCD_CTRL_AS_u8(field)     uint8_t field            /**< its kind u8 */

/** Address vector. */
struct rcd_ctrl_av {
#define RCD_AV_FIELD(kind, field, verbs_field) RCD_CTRL_AS_##kind(field);
#include "rcd_qp_attr.def"
};

/** Attributes of a queue pair: those of rcd_qp_attr.def. */
struct rcd_ctrl_qp_attr {
#define RCD_QP_ATTR(symbol, bit, kind, field, verbs_symbol, verbs_field) RCD_CTRL_AS_##kind(field);
#include "rcd_qp_attr.def"
	uint8_t sq_draining;  /**< in SQD and not drained yet; of a query only */
	uint8_t reserved[3];  /**< 0 */
	uint32_t burst_bytes; /**< with rate_kbps: most at once beyond it; 0: the default */
};

static_assert(sizeof(struct rcd_ctrl_av) == 24, "no padding that is not named");
static_assert(sizeof(struct rcd_ctrl_qp_attr) == 72, "no padding that is not named");

/** What an asynchronous event is about. */
enum rcd_ctrl_event_of {
	RCD_CTRL_EVENT_QP,
	RCD_CTRL_EVENT_CQ,
	RCD_CTRL_EVENT_SRQ,
	RCD_CTRL_EVENT_PORT,
	RCD_CTRL_EVENT_DEVICE,
};

/** A message of the event stream. */
struct rcd_ctrl_event {
	uint32_t type;   /**< enum rcd_event */
	uint32_t of;     /**< enum rcd_ctrl_event_of */
	uint64_t cookie; /**< that its object was made with */
};

#endif /* RCD_CTRL_VALUE_H */
