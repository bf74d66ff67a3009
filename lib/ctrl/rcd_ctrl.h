/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The control protocol between a client and the engine: every message, with fields, units and
 * errors.
 *
 * Transport: a Unix SOCK_SEQPACKET socket, so a message is one datagram of at most
 * RCD_CTRL_MSG_MAX bytes, file descriptors beside it (SCM_RIGHTS). The client sends a request, the
 * engine answers each with one reply, in order, with the request's number. HELLO comes first; then
 * DEVICE as often as wanted; then OPEN once, which makes a context, or IMPORT, which joins that of
 * another connection; then the rest. Closing the connection, in whatever way, ends what is its own,
 * and the last one that leaves a context ends that, with all that belongs to it. CM_* need no OPEN:
 * identifiers have a device when their address says so.
 *
 * A reply with a status other than 0 is a header alone; the status is a negative errno value:
 *   -EPROTO    malformed: wrong length, wrong count of descriptors, unknown request, wrong order
 *   -EPROTONOSUPPORT  another version of the protocol; -EPERM  not allowed for this user
 *   -ENOENT    no such object of this context; -EBUSY  other objects refer to it
 *   -ENOMEM    memory, or a quota of this client, is used up
 *   -EINVAL    a value out of range, or not allowed in this state
 *   -ETIMEDOUT  the neighbour did not answer; -ENETUNREACH  no way there; -ENODEV  the device went
 *
 * Host byte order, natural alignment, no padding that is not named; reserved fields are 0.
 */
#ifndef RCD_CTRL_H
#define RCD_CTRL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_ctrl_value.h"
#include "rcd_flow_key.h"
#include "rcd_number.h"

#define RCD_CTRL_MAGIC   0x6c746352u /* "Rctl" */
#define RCD_CTRL_VERSION 9

/**
 * Where the engine listens unless told otherwise, the variable that tells otherwise, and where in
 * $XDG_RUNTIME_DIR a user's own one is.
 */
#define RCD_CTRL_SOCKET     "/run/rocade/rocade.sock"
#define RCD_CTRL_SOCKET_ENV "ROCADE_SOCKET"
#define RCD_CTRL_SOCKET_OWN "rocade/rocade.sock"

#define RCD_CTRL_MSG_MAX 4096
#define RCD_CTRL_FDS_MAX 4

#define RCD_CTRL_NAME_LEN 64 /**< of a device or netdev, terminated */

/** Requests. */
enum rcd_ctrl_op {
#define RCD_CTRL(symbol, name, request, reply, fds, stage, description) RCD_CTRL_##symbol,
#include "rcd_ctrl.def"
	RCD_CTRL_OP_COUNT
};

/** What has happened on a connection, or has to before a request: each after the one before it. */
enum rcd_ctrl_stage {
	RCD_CTRL_STAGE_NEW,     /**< only a greeting is taken */
	RCD_CTRL_STAGE_GREETED, /**< versions agree */
	RCD_CTRL_STAGE_OPEN,    /**< a device is open */
};

/** In front of every message. */
struct rcd_ctrl_hdr {
	uint32_t op;     /**< enum rcd_ctrl_op */
	uint32_t number; /**< of the request; the reply has the same */
	int32_t status;  /**< reply: 0 or a negative errno value; request: 0 */
	uint32_t reserved;
};

/** Of requests and replies that have nothing to say. */
struct rcd_ctrl_none {
	uint32_t reserved[2];
};

/** An object of the context, by the number that it was made with. */
struct rcd_ctrl_handle {
	uint32_t handle;
	uint32_t reserved;
};

/** A region or a window. */
struct rcd_ctrl_key {
	uint32_t key;
	uint32_t reserved;
};

/** A device, by its place in the list. */
struct rcd_ctrl_index_req {
	uint32_t index;
	uint32_t reserved;
};

/** The first request: who does not speak our version hears nothing else. */
struct rcd_ctrl_hello_req {
	uint32_t magic;
	uint32_t version; /**< RCD_CTRL_VERSION of the client */
	uint32_t abi;     /**< RCD_SHM_ABI of the client */
	uint32_t reserved;
};

/** Sent with status -EPROTONOSUPPORT too, so that the client can name both versions. */
struct rcd_ctrl_hello_rep {
	uint32_t version;
	uint32_t abi;
	uint64_t generation; /**< of the engine */
	uint32_t device_count;
	uint32_t reserved;
	char release[32]; /**< of the engine, in words */
};

/** Properties and limits of a device. */
struct rcd_ctrl_device_rep {
	char name[RCD_CTRL_NAME_LEN];
	char netdev[RCD_CTRL_NAME_LEN]; /**< empty: none */
	uint64_t node_guid;             /**< host order */
	uint64_t max_mr_size;           /**< bytes */
	uint64_t max_dm_size;           /**< bytes of device memory */
	uint32_t index;
	uint32_t max_qp;
	uint32_t max_qp_wr;
	uint32_t max_sge;
	uint32_t max_inline; /**< bytes */
	uint32_t max_cq;
	uint32_t max_cqe;
	uint32_t max_mr;
	uint32_t max_mw;
	uint32_t max_pd;
	uint32_t max_srq;
	uint32_t max_srq_wr;
	uint32_t max_ah;
	uint32_t max_rd_atomic;
	uint32_t max_mcast_groups;
	uint32_t max_mcast_qps; /**< of a group */
	uint32_t max_gids;
	uint32_t numa_node; /**< UINT32_MAX: unknown */
	uint32_t max_flows; /**< of raw packets; 0: it has no raw packets */
	uint32_t reserved;
};

/** Sent with the segment, an eventfd that wakes the engine, and the receiving end of a stream of
 * struct rcd_ctrl_event; with huge_bytes, too, with hugepages to be mapped behind the segment. */
struct rcd_ctrl_open_rep {
	uint64_t segment_bytes;
	uint64_t huge_bytes; /**< 0: none */
	uint64_t generation;
	uint32_t flags;  /**< RCD_CTRL_OPEN_* */
	uint32_t device; /**< index of struct rcd_ctrl_device_rep */
};

/** Cores are scarce: pollers shall yield after an empty poll. */
#define RCD_CTRL_OPEN_YIELD (1u << 0)

/** Memory behind a descriptor: memfd, shared memory or hugetlbfs. */
struct rcd_ctrl_mem_req {
	uint64_t offset; /**< in the file, bytes, page aligned */
	uint64_t len;    /**< bytes, page aligned */
	uint32_t writable;
	uint32_t reserved;
};

/** Part of a region: consecutive bytes of the application. */
struct rcd_ctrl_extent {
	uint64_t offset; /**< in the memory, bytes; copied: address in the application */
	uint64_t len;    /**< bytes */
	uint32_t mem;    /**< handle of MEM_ADD; RCD_CTRL_MEM_COPIED: reached by copies */
	uint32_t reserved;
};

/** Reached by copies, which the client makes: after COPY_OPEN, else -EPERM. */
#define RCD_CTRL_MEM_COPIED  UINT32_MAX
#define RCD_CTRL_EXTENTS_MAX 128

/** A region to register, or to register anew. */
struct rcd_ctrl_mr_req {
	uint32_t pd;
	uint32_t access; /**< RCD_ACCESS_* */
	uint64_t start;  /**< address that peers and work requests use */
	uint64_t len;    /**< bytes: the sum of the extents */
	uint64_t addr;   /**< where it lies in the application */
	uint32_t key;    /**< MR_REREG: the region */
	uint32_t extent_count;
	struct rcd_ctrl_extent extents[RCD_CTRL_EXTENTS_MAX];
};

/** Its key, L_Key and R_Key in one. */
struct rcd_ctrl_mr_rep {
	uint32_t key;
	uint32_t reserved;
};

/** The queue of copies: struct rcd_copyq in the segment. */
struct rcd_ctrl_copy_rep {
	uint64_t offset;
	uint32_t jobs;  /**< that it has room for */
	uint32_t bytes; /**< of its arena */
};

/** A region's handle is its key without the lowest 8 bits. */
struct rcd_ctrl_mr_query_rep {
	uint64_t len;
	uint32_t pd;
	uint32_t key;
	uint32_t access;
	uint32_t reserved;
};

/** Device memory to allocate: a part of the segment, which begins at a page and is all 0. */
struct rcd_ctrl_dm_req {
	uint64_t len; /**< bytes */
};

/** Where it lies in the segment. */
struct rcd_ctrl_dm_rep {
	uint32_t handle;
	uint32_t reserved;
	uint64_t offset;
	uint64_t len; /**< bytes */
};

/** A region of device memory to register. Its addresses begin at 0. */
struct rcd_ctrl_dm_mr_req {
	uint32_t pd;
	uint32_t dm;
	uint32_t access; /**< RCD_ACCESS_*, ZERO_BASED among them */
	uint32_t reserved;
	uint64_t offset; /**< in the device memory, bytes */
	uint64_t len;    /**< bytes */
};

/** A window to allocate. */
struct rcd_ctrl_mw_req {
	uint32_t pd;
	uint32_t type; /**< 1 or 2 */
};

/** A completion queue to make. */
struct rcd_ctrl_cq_req {
	uint32_t depth;   /**< completions */
	uint32_t channel; /**< handle; RCD_CTRL_NO_HANDLE: none */
	uint64_t cookie;  /**< given back with every event */
};

#define RCD_CTRL_NO_HANDLE UINT32_MAX

/** An event that is due waits for the first of both; 0 and 0: it does not wait. */
struct rcd_ctrl_cq_modify_req {
	uint32_t handle;
	uint32_t count;     /**< completions since the last event; up to RCD_CTRL_CQ_COUNT_MAX */
	uint32_t period_us; /**< since it was due; up to RCD_CTRL_CQ_PERIOD_MAX */
	uint32_t reserved;
};

#define RCD_CTRL_CQ_COUNT_MAX  UINT16_MAX
#define RCD_CTRL_CQ_PERIOD_MAX UINT16_MAX

/** Where it lies in the segment. */
struct rcd_ctrl_cq_rep {
	uint32_t handle;
	uint32_t depth;    /**< slots, a power of two */
	uint64_t indices;  /**< offset of struct rcd_shm_cq */
	uint64_t slots;    /**< offset of struct rcd_cq_slot[depth] */
	uint32_t consumer; /**< CQ_RESIZE: where both indices stand in the new ring */
	uint32_t producer;
};

/** Another depth for it. */
struct rcd_ctrl_cq_resize_req {
	uint32_t handle;
	uint32_t depth;
};

/** A shared receive queue to make. */
struct rcd_ctrl_srq_req {
	uint32_t pd;
	uint32_t depth; /**< work requests */
	uint32_t max_sge;
	uint32_t limit;
	uint64_t cookie;
};

/**
 * Another depth for it. The client copies what it has posted to the new ring, each request to the
 * place of its number, sets the producer there, and says SRQ_SWITCH; until then the old one is
 * used.
 */
struct rcd_ctrl_srq_resize_req {
	uint32_t handle;
	uint32_t depth;
};

/** With its limit or without: both change, or neither. Refused, the new ring is gone. */
struct rcd_ctrl_srq_switch_req {
	uint32_t handle;
	uint32_t set_limit; /**< 0: it stays as it is; 1 */
	uint32_t limit;     /**< of requests, at most as many as the new ring holds */
	uint32_t reserved;
};

/** Where it lies in the segment. */
struct rcd_ctrl_srq_rep {
	uint32_t handle;
	uint32_t depth; /**< slots, a power of two */
	uint32_t max_sge;
	uint32_t stride;  /**< bytes */
	uint64_t indices; /**< offset of struct rcd_shm_wq */
	uint64_t slots;   /**< offset */
};

/** Arm its limit event. */
struct rcd_ctrl_srq_modify_req {
	uint32_t handle;
	uint32_t limit;
};

/** What it has now, in work requests. */
struct rcd_ctrl_srq_query_rep {
	uint32_t limit;
	uint32_t depth;
};

/** Whether an XRC domain is to be made: as O_CREAT and O_EXCL. */
#define RCD_CTRL_O_CREAT 1u
#define RCD_CTRL_O_EXCL  2u

/** The XRC domain of the file that goes along. */
struct rcd_ctrl_xrcd_req {
	uint32_t flags; /**< RCD_CTRL_O_* */
	uint32_t reserved;
};

/** A shared receive queue of a domain. */
struct rcd_ctrl_xsrq_req {
	struct rcd_ctrl_srq_req srq;
	uint32_t xrcd;
	uint32_t cq; /**< that takes its completions */
};

/** Likewise. */
struct rcd_ctrl_xsrq_rep {
	struct rcd_ctrl_srq_rep srq;
	uint32_t number; /**< by which peers name it, 24 bits */
	uint32_t reserved;
};

/** A target of a domain: to be made, or to be opened as well. */
struct rcd_ctrl_xqp_req {
	uint32_t xrcd;
	uint32_t qpn;    /**< of the one to open */
	uint64_t cookie; /**< given back with every event */
};

/** Likewise. */
struct rcd_ctrl_xqp_rep {
	uint32_t handle; /**< of targets: another one's may be the same as a queue pair's */
	uint32_t qpn;
};

/** Of a queue pair of datagrams: what it sends to groups does not come back to it. */
#define RCD_CTRL_QP_BLOCK_LOOP (1u << 0)

/** A queue pair to make. Depths are work requests. */
struct rcd_ctrl_qp_req {
	uint32_t pd;
	uint32_t type; /**< enum rcd_qp_type, but GSI and XRC_RECV; of RAW see FLOW_CREATE */
	uint32_t send_cq;
	uint32_t recv_cq;
	uint32_t srq; /**< RCD_CTRL_NO_HANDLE: none */
	uint32_t sq_depth;
	uint32_t rq_depth;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline; /**< bytes */
	uint32_t signal_all;
	uint32_t flags;  /**< RCD_CTRL_QP_* */
	uint64_t cookie; /**< given back with every event */
};

/** Where its queues lie in the segment. */
struct rcd_ctrl_qp_rep {
	uint32_t handle; /**< its doorbell bit too */
	uint32_t qpn;
	uint32_t sq_depth;  /**< slots, a power of two */
	uint32_t rq_depth;  /**< likewise; 0 with a shared receive queue */
	uint32_t sq_stride; /**< bytes */
	uint32_t rq_stride;
	uint64_t sq_indices; /**< offset of struct rcd_shm_wq */
	uint64_t rq_indices;
	uint64_t sq_slots; /**< offset */
	uint64_t rq_slots;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline;
	uint32_t reserved;
};

/** Attributes to set, and which of them. */
struct rcd_ctrl_qp_modify_req {
	uint32_t handle;
	uint32_t mask; /**< RCD_QP_ATTR_* */
	struct rcd_ctrl_qp_attr attr;
};

/** An address handle to make. */
struct rcd_ctrl_ah_req {
	uint32_t pd;
	uint32_t reserved;
	struct rcd_ctrl_av av;
};

/** An address handle, by its protection domain and number. */
struct rcd_ctrl_ah_handle {
	uint32_t pd;
	uint32_t handle;
};

/** A queue pair and a group, to attach or detach. */
struct rcd_ctrl_mcast_req {
	uint32_t qp;
	uint32_t reserved;
	uint8_t group[16];
};

/**
 * A flow to make, to a queue pair of raw packets. Any bytes are a key. As when that is made: -EPERM
 * without CAP_NET_RAW, -EOPNOTSUPP where the device has no raw packets, or memory is copied.
 */
struct rcd_ctrl_flow_req {
	uint32_t qp;
	uint16_t priority; /**< the lowest comes first, of one kind */
	uint8_t kind;      /**< enum rcd_flow_kind */
	uint8_t drop;      /**< 1: the context gets none of these frames; else 0 */
	struct rcd_flow_key value;
	struct rcd_flow_key mask; /**< bits of the value that count */
};

/**
 * Of a flow: frames that were for it, by what its context's flows say of them, received into a
 * buffer or not, and of one that drops.
 */
struct rcd_ctrl_flow_counts {
	uint64_t frames;
	uint64_t bytes; /**< without check sequences */
};

/*
 * Connection management: identifiers and channels of events, as librdmacm has them. A channel's
 * descriptor is the reading end of a stream with a byte for each event that waits: who takes an
 * event (CM_EVENT, -EAGAIN without one) takes a byte, and CM_DESTROY, CM_MIGRATE and CM_LEAVE say
 * how many bytes of that kind they left in the stream of the identifier's channel.
 */

/** An IP address and port. */
struct rcd_ctrl_cm_addr {
	uint8_t addr[16];  /**< IPv4 in its mapped form */
	uint32_t scope_id; /**< of a link-local address: the netdev's index; 0: any */
	uint16_t port;     /**< host order; 0: none yet */
	uint8_t family;    /**< 4, 6; 0: none */
	uint8_t reserved;
};

/** How many bytes the stream of a channel has for events that are gone. */
struct rcd_ctrl_cm_count {
	uint32_t count;
	uint32_t reserved;
};

/** An identifier, and something else. */
struct rcd_ctrl_cm_pair {
	uint32_t id;
	uint32_t second;
};

/** An identifier to make. */
struct rcd_ctrl_cm_create_req {
	uint32_t channel;
	uint16_t space;  /**< port space, numbers of RDMA CM */
	uint8_t qp_type; /**< enum rcd_qp_type */
	uint8_t reserved;
};

/** An address to bind an identifier to. */
struct rcd_ctrl_cm_addr_req {
	uint32_t id;
	uint32_t reserved;
	struct rcd_ctrl_cm_addr addr;
};

/** An address to find the device for, and the way to it. */
struct rcd_ctrl_cm_resolve_req {
	uint32_t id;
	uint32_t timeout_ms;
	struct rcd_ctrl_cm_addr src; /**< family 0: as bound, or any */
	struct rcd_ctrl_cm_addr dst;
};

/** What is known of an identifier. */
struct rcd_ctrl_cm_query_rep {
	struct rcd_ctrl_cm_addr src;
	struct rcd_ctrl_cm_addr dst;
	struct rcd_ctrl_av av; /**< dgid and sgid_index; hop_limit 0: no path yet */
	uint8_t sgid[16];
	uint32_t device; /**< index of struct rcd_ctrl_device_rep; RCD_CTRL_NO_HANDLE: none yet */
	uint32_t path_mtu_bytes;
};

#define RCD_CTRL_CM_PRIVATE_MAX 232 /**< what fits depends on the message: else -EINVAL */

/** What two sides agree on; numbers as the verbs have them. */
struct rcd_ctrl_cm_param {
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint8_t private_len;
	uint8_t reserved;
	uint32_t ece_vendor_id; /**< 24 bits, whose options; 0: none. Passed on and not looked at */
	uint32_t ece_options;
	uint8_t private_data[RCD_CTRL_CM_PRIVATE_MAX];
};

/** Of CM_CONNECT and CM_ACCEPT. */
struct rcd_ctrl_cm_param_req {
	uint32_t id;
	uint32_t qpn;
	uint32_t qkey; /**< of a datagram service; 0: the port space's */
	uint32_t reserved;
	struct rcd_ctrl_cm_param param;
};

/** A refusal, with the reason that the peer is told. */
struct rcd_ctrl_cm_reject_req {
	uint32_t id;
	uint16_t reason; /**< of IBTA 12.6.7.2; 0: the consumer's */
	uint8_t private_len;
	uint8_t reserved;
	uint8_t private_data[RCD_CTRL_CM_PRIVATE_MAX];
};

/** Attributes, and which of them are to be set: RCD_QP_ATTR_*. */
struct rcd_ctrl_cm_attr_rep {
	uint32_t mask;
	uint32_t reserved;
	struct rcd_ctrl_qp_attr attr;
};

/** Options of an identifier. */
enum rcd_ctrl_cm_option {
	RCD_CTRL_CM_TOS,
	RCD_CTRL_CM_REUSEADDR,
	RCD_CTRL_CM_AFONLY,
	RCD_CTRL_CM_ACK_TIMEOUT,
};

/** An option to set. */
struct rcd_ctrl_cm_set_req {
	uint32_t id;
	uint32_t option; /**< enum rcd_ctrl_cm_option */
	uint32_t value;
	uint32_t reserved;
};

/** A group to join. */
struct rcd_ctrl_cm_join_req {
	uint32_t id;
	uint32_t send_only;
	struct rcd_ctrl_cm_addr addr;
};

/** An event; numbers as librdmacm has them. */
struct rcd_ctrl_cm_event_rep {
	uint32_t event; /**< enum rdma_cm_event_type */
	int32_t status; /**< -errno; of a refusal: the reason */
	uint32_t id;
	uint32_t listen; /**< whose request it is, id is new then; RCD_CTRL_NO_HANDLE */
	uint32_t group;  /**< handle of a join; RCD_CTRL_NO_HANDLE */
	uint32_t qpn;
	uint32_t qkey;
	struct rcd_ctrl_av av; /**< of a datagram service or group */
	struct rcd_ctrl_cm_param param;
};

/*
 * SOCKETS: a device in another network namespace takes sockets of that namespace, which come by
 * fours before the ADMIN that adds it: two of rtnetlink and two of UDP for groups, then four of UDP
 * for each lcore (lib/port/rcd_away.h). The next ADMIN of the connection that is allowed takes
 * them: one that has no use for them closes them. -EINVAL: not such sockets, or not all of one
 * namespace; -EOPNOTSUPP: the kernel does not tell namespaces (before Linux 5.14); -ENOSPC: more
 * than any device takes.
 *
 * NETNS: instead, from who is in another network namespace and administers nothing (netns_links).
 * The descriptor is its namespace's, as /proc/self/ns/net opens it. The answer comes when the
 * sockets are there; ADMIN then takes link_add, of type udp without netns, and link_del of such a
 * link. -EALREADY: the connection is of the engine's own namespace, and needs none; -EPERM: the
 * engine does not do that; -EACCES: it may not go there; -EINVAL, -EXDEV: no network namespace, or
 * not that of the connection; -EAGAIN, -ETIMEDOUT: ask again (-EAGAIN from ADMIN, too); -EMFILE;
 * -EPIPE: nobody makes them any more.
 */

/**
 * Requests of administration and their answers are JSON, and what is in them is not of this
 * protocol's version: a request that makes no sense is answered by one that says so. The reply
 * comes with one descriptor: a file that holds the answer.
 */
struct rcd_ctrl_admin_req {
	char json[1024]; /**< terminated; rcd_admin_req.h says how it is read */
};

/** A request, whichever it is. */
union rcd_ctrl_body {
#define RCD_CTRL(symbol, name, request, reply, fds, stage, description)                            \
	struct rcd_ctrl_##request name##_req;                                                      \
	struct rcd_ctrl_##reply name##_rep;
#include "rcd_ctrl.def"
};

/** A message as it travels. */
struct rcd_ctrl_msg {
	struct rcd_ctrl_hdr hdr;
	union rcd_ctrl_body body;
};

static_assert(sizeof(struct rcd_ctrl_msg) <= RCD_CTRL_MSG_MAX, "fits a datagram");

/** Name of a request. @return static string, "?" for an unknown one */
const char *
rcd_ctrl_op_name(uint32_t op);

/** Bytes of a request, header included. @param op below RCD_CTRL_OP_COUNT */
size_t
rcd_ctrl_req_len(uint32_t op);

/** Bytes of a successful reply, header included. @param op below RCD_CTRL_OP_COUNT */
size_t
rcd_ctrl_rep_len(uint32_t op);

/** What has to have happened before a request. @param op below RCD_CTRL_OP_COUNT */
enum rcd_ctrl_stage
rcd_ctrl_op_stage(uint32_t op);

/**
 * Check the shape of a received request: known, of the right length, with the right count of
 * descriptors, texts terminated, counts within their arrays. Values are judged where they are used.
 *
 * @param len  bytes received
 * @return 0 or -EPROTO
 */
int
rcd_ctrl_req_check(const struct rcd_ctrl_msg *msg, size_t len, unsigned int fd_count);

/** Descriptors that travel with a message. */
struct rcd_ctrl_fds {
	int fds[RCD_CTRL_FDS_MAX];
	unsigned int count;
};

/**
 * Send a message.
 *
 * @param fds  to send along, still the caller's; NULL: none
 * @param flags  MSG_DONTWAIT, or 0
 * @return 0; -EAGAIN, -EPIPE and the like
 */
int
rcd_ctrl_send(int sock, const void *msg, size_t len, const struct rcd_ctrl_fds *fds, int flags);

/**
 * Receive a message. Surplus descriptors are closed. A signal does not end the wait: requests and
 * their replies stay together.
 *
 * @param msg    room for @p size bytes
 * @param fds    received ones, the caller's to close; NULL: all are closed
 * @param flags  MSG_DONTWAIT, or 0
 * @return bytes; 0 at the end of the connection; -EMSGSIZE for a longer message, which is lost;
 *         -EAGAIN and the like
 */
long
rcd_ctrl_recv(int sock, void *msg, size_t size, struct rcd_ctrl_fds *fds, int flags);

/** Who takes descriptors that are not wanted. */
struct rcd_ctrl_drop {
	void (*fn)(void *arg, int fd);
	void *arg;
};

/**
 * Receive a message of somebody who is not trusted, without waiting: as rcd_ctrl_recv(), but no
 * descriptor is closed here, for closing one may wait. Those that are not in @p fds are dropped.
 */
long
rcd_ctrl_recv_drop(int sock, void *msg, size_t size, struct rcd_ctrl_fds *fds,
	const struct rcd_ctrl_drop *drop);

/**
 * Wait for an asynchronous event.
 *
 * @return bytes, 0 or an error as rcd_ctrl_recv(); -EINTR: a signal ended the wait, as read(2)
 */
long
rcd_ctrl_recv_event(int sock, struct rcd_ctrl_event *event);

/** Close received descriptors. */
void
rcd_ctrl_fds_close(struct rcd_ctrl_fds *fds);

/**
 * Send to a stream of events, never blocking. Any thread.
 *
 * @return 0, also when nobody will ever read it; -EAGAIN when it has no room
 */
int
rcd_ctrl_stream_send(int sock, const void *data, size_t len);

#endif /* RCD_CTRL_H */
