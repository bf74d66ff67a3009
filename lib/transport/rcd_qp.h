/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queue pairs: the RC, XRC, UC and UD protocol machines, and those of raw packets, which have
 * no protocol.
 *
 * A queue pair does no I/O, reads no clock, and allocates nothing after creation. Packets go in
 * with rcd_qp_rx(), packets to send come out of rcd_qp_tx_next(), time is a parameter. Work
 * requests are fetched from the host when they are needed, and completions and events are handed
 * to it, through struct rcd_qp_ops.
 *
 * Threads: all calls on a queue pair, and on the tables and shared receive queues it refers to,
 * come from one thread at a time.
 */
#ifndef RCD_QP_H
#define RCD_QP_H

#include "rcd_cc.h"
#include "rcd_counter.h"
#include "rcd_mr.h"
#include "rcd_number.h"
#include "rcd_pkt.h"
#include "rcd_wr.h"

struct rcd_qp;
struct rcd_srq;
struct rcd_ah_table;
struct rcd_reorder_pool;
struct rcd_xrc_domain;

/* How the transport holds what rcd_qp_attr.def lists. */
#define RCD_QP_AS_av(field)     struct rcd_av field
#define RCD_QP_AS_access(field) uint32_t field
#define RCD_QP_AS_flag(field)   bool field
#define RCD_QP_AS_flow(field)   uint32_t field
#define RCD_QP_AS_gid(field)    struct rcd_gid field
#define RCD_QP_AS_mtu(field)    uint16_t field
#define RCD_QP_AS_psn(field)    struct rcd_psn field
#define RCD_QP_AS_qkey(field)   struct rcd_qkey field
#define RCD_QP_AS_qpn(field)    struct rcd_qpn field
#define RCD_QP_AS_state(field)  uint8_t field
#define RCD_QP_AS_u16(field)    uint16_t field
#define RCD_QP_AS_u8(field)     uint8_t field
#define RCD_QP_AS_u32(field)    uint32_t field

/** Address vector: where packets go. The transport compares the GIDs and carries the rest. */
struct rcd_av {
	struct rcd_gid sgid;
#define RCD_AV_FIELD(kind, field, verbs_field) RCD_QP_AS_##kind(field);
#include "rcd_qp_attr.def"
	uint8_t dmac[RCD_MAC_LEN];
	uint32_t hop; /**< the host's: where it finds the MAC; 0: it is that one */
};

/** Attributes of a queue pair: those of rcd_qp_attr.def. */
struct rcd_qp_attr {
#define RCD_QP_ATTR(symbol, bit, kind, field, verbs_symbol, verbs_field) RCD_QP_AS_##kind(field);
#include "rcd_qp_attr.def"
	uint32_t burst_bytes; /**< with rate_kbps, 0: the default */
	bool sq_draining;     /**< in SQD, and not drained yet; told, never set */
};

/** What the host does for queue pairs. `arg` is the one given at creation. */
struct rcd_qp_ops {
	/**
	 * Fetch the send work request with this free-running number, from 0.
	 *
	 * Called again with the same number when a request is sent again: what does not match
	 * what was sent first takes the queue pair to ERR, nothing worse.
	 *
	 * @return 0, or -EAGAIN when it has not been posted
	 */
	int (*fetch_send)(void *arg, uint32_t number, struct rcd_send_wr *wr);

	/** Likewise from the receive queue; each number is fetched once. */
	int (*fetch_recv)(void *arg, uint32_t number, struct rcd_recv_wr *wr);

	/** Take a completion: for the send CQ or, when cqe->recv, for the receive CQ. */
	void (*complete)(void *arg, const struct rcd_cqe *cqe);

	/** Take an asynchronous event of the queue pair. */
	void (*event)(void *arg, enum rcd_event event);

	/**
	 * The peer that rcd_qp_find_peer() looked for is there: rcd_qp_set_sack() may follow, now
	 * or later. NULL: nobody wants to know.
	 *
	 * @return false: ask again, with a later packet
	 */
	bool (*agreed)(void *arg);
};

/** What a queue pair is to be. */
struct rcd_qp_init {
	enum rcd_qp_type type;
	struct rcd_qpn qpn;
	uint32_t pd;
	uint32_t sq_depth;       /**< send work requests, 1..2^20; rounded up to a power of two */
	uint8_t max_send_sge;    /**< 0..RCD_SGE_MAX */
	uint8_t max_recv_sge;    /**< 0..RCD_SGE_MAX */
	uint16_t max_inline;     /**< 0..RCD_INLINE_MAX */
	uint8_t max_rd_atomic;   /**< responder resources, 0..128: see rcd_qp_set_resources() */
	bool signal_all;         /**< every send work request completes as if signalled */
	uint16_t port_mtu_bytes; /**< 256..4096: largest datagram of UD and GSI */
	/** Of RAW: longest frame now, bytes; any thread stores it, relaxed. NULL of all others. */
	const uint16_t *frame_max;
	struct rcd_srq *srq;         /**< NULL: receives come from ops->fetch_recv */
	struct rcd_xrc_domain *xrc;  /**< of an XRC target, whose shared queues have the memory */
	struct rcd_mr_table *mrs;    /**< NULL for an XRC target */
	struct rcd_mw_list *windows; /**< those it binds; the host unbinds; NULL: nobody does */
	const struct rcd_ah_table *ahs;   /**< for UD and GSI; NULL otherwise */
	struct rcd_reorder_pool *reorder; /**< NULL: packets out of order are not kept */
	const struct rcd_cc_ops *cc;      /**< NULL: rcd_cc_none; datagrams have no other */
	/** Of that, good during the call. NULL: all 0 */
	const struct rcd_cc_params *cc_params;
	/** Longest absence of its thread of late, ns; loaded relaxed. NULL: it is never away */
	const uint32_t *away_ns;
	struct rcd_counters *counters;
	const struct rcd_qp_ops *ops;
	void *arg;
};

/** Defaults that struct rcd_qp_init does not have by itself. */
#define RCD_QP_SQ_DEPTH_DEFAULT  128
#define RCD_QP_RD_ATOMIC_DEFAULT 16
#define RCD_QP_RD_ATOMIC_MAX     128

/** Pieces of memory that make up the payload of a packet. */
#define RCD_TX_PIECES_MAX RCD_SGE_MAX

/** Part of a payload in engine memory. */
struct rcd_piece {
	uint8_t *base;
	uint32_t len;
};

/** A packet to send. Good until the next call on the queue pair; copy the payload before. */
struct rcd_tx_pkt {
	const struct rcd_av *av;
	struct rcd_roce roce; /**< the pad count is left to rcd_pkt_build() */
	uint32_t payload_len;
	uint32_t piece_count;
	bool csum; /**< of RAW, whose payload is the frame: checksums are to be put in */
	struct rcd_piece pieces[RCD_TX_PIECES_MAX];
};

/** What was done with a received packet. */
enum rcd_rx_verdict {
#define RCD_RX(symbol, counter, text) RCD_RX_##symbol,
#include "rcd_rx_verdict.def"
#undef RCD_RX
	RCD_RX_COUNT
};

/** Symbol without its prefix. @return static string */
const char *
rcd_rx_verdict_name(enum rcd_rx_verdict verdict);

/**
 * Bytes that a queue pair with these properties takes.
 *
 * @return bytes; 0 when a property is out of range
 */
size_t
rcd_qp_size(const struct rcd_qp_init *init);

/**
 * Make a queue pair in RESET.
 *
 * @param mem   rcd_qp_size() bytes, aligned to 64, the caller's; free after rcd_qp_fini()
 * @param init  copied; what it points to must outlive the queue pair
 * @return the queue pair, which is @p mem; NULL when a property is out of range
 */
struct rcd_qp *
rcd_qp_init(void *mem, const struct rcd_qp_init *init);

/** Give back what the queue pair holds of shared pools. It must not be used afterwards. */
void
rcd_qp_fini(struct rcd_qp *qp);

/* rcd_qp_modify.c */

/**
 * Set attributes and change the state (IBTA Vol. 1, 11.2.5.2; rcd_qp_transition.def).
 *
 * To ERR: all work requests are to be flushed, see rcd_qp_flush(). To RESET: they are forgotten.
 *
 * @param mask  which attributes of @p attr are given, RCD_QP_ATTR_*; without RCD_QP_ATTR_STATE
 *              the state stays
 * @return 0; -EINVAL when the transition does not exist, a required attribute is missing, one is
 *         given that is not allowed, or a value is out of range, as is a rate without
 *         rcd_qp_set_gate(): nothing is changed then;
 *         -EAGAIN from SQE to RTS: requests of before are to be flushed first
 */
int
rcd_qp_modify(struct rcd_qp *qp, const struct rcd_qp_attr *attr, uint32_t mask);

/** All attributes as they are. */
void
rcd_qp_query(const struct rcd_qp *qp, struct rcd_qp_attr *attr);

/* rcd_qp.c */

/**
 * Feed one packet.
 *
 * Payload is copied before return, so the caller may release the packet at once. Replies wait on
 * the queue pair until rcd_qp_tx_next() takes them.
 *
 * @param pkt     view with verdict OK from rcd_pkt_parse(), ICRC verified, addressed to this
 *                queue pair
 * @param now_ns  the engine's clock, never goes backwards, never 0
 * @return what was done with it, counted already; a hostile packet is not an error here
 */
enum rcd_rx_verdict
rcd_qp_rx(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns);

/**
 * Whether rcd_qp_tx_next() has a NAK or SACK now that is the first to tell of a gap in requests.
 * Not while something stands before it: responses do, without SACK (IBTA 9.7.5.1).
 */
bool
rcd_qp_tells_gap(const struct rcd_qp *qp);

/**
 * Feed a queue pair of raw packets (RAW) one frame. As rcd_qp_rx().
 *
 * @param len      bytes, up to RCD_FRAME_MAX_BYTES
 * @param csum_ok  the checksums of IPv4, and of TCP or UDP in it, are there and right
 */
enum rcd_rx_verdict
rcd_qp_rx_frame(struct rcd_qp *qp, const uint8_t *frame, uint32_t len, bool csum_ok);

/* rcd_flush.c */

/** Say that work requests were posted. Needed in ERR and SQE only, where they are to be flushed. */
void
rcd_qp_posted(struct rcd_qp *qp);

/**
 * Whether rcd_qp_flush() is to be called: after every call that may have brought the queue pair to
 * ERR or SQE, and after rcd_qp_posted().
 */
bool
rcd_qp_flushing(const struct rcd_qp *qp);

/**
 * Flush a part of the work requests that an error left in the queues: those of the send queue,
 * begun or only posted, then those of the receive queue, each in order.
 *
 * A queue may be as long as a client likes, so the host gives each call a budget, and others their
 * turn between two calls.
 *
 * @param budget  most completions
 * @return completions handed over; rcd_qp_flushing() says whether more may follow
 */
uint32_t
rcd_qp_flush(struct rcd_qp *qp, uint32_t budget);

/* rcd_qp.c */

/**
 * Take the next packet to send: replies first, then requests.
 *
 * Send work requests of the unreliable services complete at the call after the one that returned
 * their last packet, when its payload has been copied: call it until it returns false.
 *
 * @return whether there was one; false also when it has to wait for time or for the peer
 */
bool
rcd_qp_tx_next(struct rcd_qp *qp, uint64_t now_ns, struct rcd_tx_pkt *pkt);

/**
 * Whether rcd_qp_tx_next() returned false because it had done its share of local operations: call
 * it again, when others had their turn.
 */
bool
rcd_qp_tx_paused(const struct rcd_qp *qp);

/** When to call rcd_qp_expire() next. @return engine clock; 0 when never */
uint64_t
rcd_qp_next_deadline(const struct rcd_qp *qp);

/** Bytes that so many responder resources take. */
size_t
rcd_qp_resources_size(uint8_t count);

/**
 * Give a queue pair other responder resources than those that it was made with. Before RTR only.
 *
 * @param mem    rcd_qp_resources_size() bytes, aligned to 8; the caller's, for as long as the
 *     queue pair lives or until it gets others
 * @param count  1..RCD_QP_RD_ATOMIC_MAX
 * @return 0; -EINVAL: not in RESET or INIT, or too many
 */
int
rcd_qp_set_resources(struct rcd_qp *qp, void *mem, uint8_t count);

/**
 * The thread of a queue pair is to be another one, which has other counters, another pool, and
 * absences of its own. As in struct rcd_qp_init.
 *
 * @return 0; -EINVAL: not in RESET or INIT, and nothing is changed
 */
int
rcd_qp_move(struct rcd_qp *qp, struct rcd_counters *counters, struct rcd_reorder_pool *reorder,
	const uint32_t *away_ns);

/* rcd_sack.c */

/** Bytes that a queue pair takes for selective acknowledgement. */
size_t
rcd_qp_sack_size(void);

/**
 * The peer has agreed to selective acknowledgement (doc/sack.md): tell it what comes behind a
 * missing packet, and take what it tells. Without it nothing of the kind is sent, and what comes is
 * dropped as of another service. RESET ends it.
 *
 * @param mem  rcd_qp_sack_size() bytes, aligned to 8; the caller's, until RESET or rcd_qp_fini()
 * @return 0; -EINVAL: in RESET or ERR, of another service than RC or XRC, or done already
 */
int
rcd_qp_set_sack(struct rcd_qp *qp, void *mem);

/* rcd_req_find.c */

/**
 * Send work requests of which nothing is left that was not given out by rcd_qp_tx_next() once, as a
 * free-running number; whether it arrived, and will be given out again, is not said.
 */
uint32_t
rcd_qp_sq_out(struct rcd_qp *qp);

/* rcd_hello.c */

/**
 * Find out whether the peer is a Rocade that takes part in selective acknowledgement, when nobody
 * has told: mark packets, and say HELLO to a peer that marks its own (doc/sack.md). RESET ends it.
 * The addresses that it has now stay those by which marks are made.
 *
 * @param nonce  random, of this connection alone
 * @return 0; -EINVAL: before RTR, in ERR, of another service than RC or XRC, or done or known
 *         already
 */
int
rcd_qp_find_peer(struct rcd_qp *qp, uint64_t nonce);

/** Whether it was found, and rcd_qp_set_sack() has not followed. */
bool
rcd_qp_found_peer(const struct rcd_qp *qp);

/* rcd_qp.c */

/** Let time pass: timeouts and ends of waits that are due. Calling it early does nothing. */
void
rcd_qp_expire(struct rcd_qp *qp, uint64_t now_ns);

/* rcd_xrc.c */

/** The queue that a packet for an XRC target names. @return NULL: none, or none that is there */
struct rcd_srq *
rcd_qp_rx_srq(const struct rcd_qp *qp, const struct rcd_roce *roce);

/** Of a target: the queue of whose memory its next packet has data. @return NULL: of none */
struct rcd_srq *
rcd_qp_tx_srq(const struct rcd_qp *qp);

/** Of a target: the keys of the packet that rcd_qp_tx_next() gave, if it has data. */
const struct rcd_mr_table *
rcd_qp_tx_mrs(const struct rcd_qp *qp);

/* rcd_qp_copy.c */

/** Give back the packets that are kept out of order, and keep none from now on. */
void
rcd_qp_keep_nothing(struct rcd_qp *qp);

/** The packet whose payload a copy into or from foreign memory was (struct rcd_mr_foreign). */
struct rcd_qp_copy {
	struct rcd_psn psn;
	bool own;      /**< that was to be sent; else one that came */
	bool response; /**< to a request of ours, or of the peer if it is our own */
	bool send;     /**< a SEND; else a WRITE or atomic. Not for our own */
	bool told;     /**< a completion of its message has been turned into an error already */
};

/**
 * A copy failed that was made later than its packet: the queue pair goes to ERR, as if the packet
 * had been refused when it came, or had found no memory to be built from. What it holds of later
 * packets is void. Our own packets: of RC alone.
 */
void
rcd_qp_copy_failed(struct rcd_qp *qp, const struct rcd_qp_copy *late);

/** The result of an atomic that was carried out later than its packet. */
void
rcd_qp_atomic_done(struct rcd_qp *qp, struct rcd_psn psn, uint64_t original);

/* rcd_qp.c */

/** Take the queue pair to ERR because of the host: its completion queue overflowed, say. */
void
rcd_qp_fail(struct rcd_qp *qp);

/** Service of the queue pair. Any thread. */
enum rcd_qp_type
rcd_qp_type(const struct rcd_qp *qp);

/** Number of the queue pair. */
struct rcd_qpn
rcd_qp_qpn(const struct rcd_qp *qp);

/** State of the queue pair. Any thread: for others than its own it may be old. */
enum rcd_qp_state
rcd_qp_state(const struct rcd_qp *qp);

/**
 * Send work requests that are complete, signalled or not, as a free-running number: the host may
 * reuse the slots of all before it. Any thread, as rcd_qp_state().
 */
uint32_t
rcd_qp_sq_done(const struct rcd_qp *qp);

/** What a host shows of a queue pair that worked: each as the function of that name says. */
struct rcd_qp_progress {
	uint64_t next_deadline;
	uint32_t sq_done;
	uint32_t rq_done;
	enum rcd_qp_state state;
	bool flushing;
};

/** All of that at once: one call for each queue pair in each poll. On its own thread. */
void
rcd_qp_progress(const struct rcd_qp *qp, struct rcd_qp_progress *progress);

/**
 * Messages that came whole since RESET, requests for data and for parts of it among them, as a
 * free-running number: what the peer of an RC queue pair is told as the MSN. Any thread, as
 * rcd_qp_state().
 */
uint32_t
rcd_qp_messages(const struct rcd_qp *qp);

/**
 * Whom a connected queue pair talks to. The thread that modifies queue pairs, or has them modified.
 *
 * @return whether it is known: from RTR on
 */
bool
rcd_qp_peer(const struct rcd_qp *qp, struct rcd_gid *dgid, struct rcd_qpn *qpn);

/** What limits what a queue pair sends, and how far. */
struct rcd_qp_limits {
	uint32_t window;     /**< bytes in flight, headers included; RCD_CC_NO_WINDOW: no limit */
	uint32_t rate_kbps;  /**< of the pace now; 0: none */
	uint32_t cnps;       /**< notifications, and... */
	uint32_t losses;     /**< ...losses that congestion control was told of */
	uint64_t window_ns;  /**< that requests waited for the window, and... */
	uint64_t pace_ns;    /**< ...packets for their pace */
	uint32_t limit_kbps; /**< rate that the program set; 0: none */
};

/** Bytes that a queue pair takes for what limits it, if it was made without congestion control. */
size_t
rcd_qp_gate_size(void);

/**
 * Give a queue pair what a rate of the program's takes (RCD_QP_ATTR_RATE). In any state; RESET does
 * not end it.
 *
 * @param mem  rcd_qp_gate_size() bytes, aligned to 8; the caller's, until rcd_qp_fini()
 * @return 0; -EEXIST: it has that, and @p mem stays unused
 */
int
rcd_qp_set_gate(struct rcd_qp *qp, void *mem);

/**
 * Give a queue pair another algorithm than it was made with. Before RTR only.
 *
 * @return 0; -EINVAL: not in RESET or INIT, or one that needs rcd_qp_set_gate() before; datagrams
 *     have none but rcd_cc_none, and UC has that instead of one that goes by acknowledges
 */
int
rcd_qp_set_cc(struct rcd_qp *qp, const struct rcd_cc_ops *cc, const struct rcd_cc_params *params);

/** Name of its congestion control. @return static string. Any thread */
const char *
rcd_qp_cc_name(const struct rcd_qp *qp);

/** Whether it reacts to marks: an algorithm limits what it sends. Any thread. */
bool
rcd_qp_reacts(const struct rcd_qp *qp);

/** What limits it: each number as it was a moment ago. Any thread. */
void
rcd_qp_limits(const struct rcd_qp *qp, struct rcd_qp_limits *limits);

/** Receive work requests that are complete, as a free-running number. 0 with shared queues. */
uint32_t
rcd_qp_rq_done(const struct rcd_qp *qp);

/** Pool entries that the queue pair holds: packets kept out of order. */
uint32_t
rcd_qp_kept(const struct rcd_qp *qp);

#endif /* RCD_QP_H */
