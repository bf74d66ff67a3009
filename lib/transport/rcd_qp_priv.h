/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The inside of a queue pair, shared by the files that make it up:
 *
 *   rcd_qp.c           creation, the way of a packet in and out
 *   rcd_qp_complete.c  completions, and the error that begins the end
 *   rcd_flush.c        what is left in the queues after an error, piece by piece
 *   rcd_qp_modify.c    states and attributes
 *   rcd_req.c          requester: work requests to packets
 *   rcd_req_find.c     requester: the one that a PSN is of
 *   rcd_req_read.c     requester: those that have an answer of their own
 *   rcd_req_local.c    requester: those that send nothing
 *   rcd_rto.c          requester: how long it waits
 *   rcd_recover.c      requester: how much may be under way after losses
 *   rcd_gate.c         what it holds back, for congestion control or a limit to a rate
 *   rcd_gate_flight.c  what is on its way of that
 *   rcd_gate_part.c    parts of READs that it asked for
 *   rcd_comp.c         completer: acknowledges and responses to completions
 *   rcd_resp.c         responder of RC: execution of requests
 *   rcd_resp_check.c   responder of RC: checks of requests
 *   rcd_reply.c        responder of RC: acknowledges and responses to send
 *   rcd_sack.c         both: selective acknowledgement; rcd_sack_bits.c: a bit for each PSN
 *   rcd_hello.c        both: whether the peer knows of it
 *   rcd_unrel.c        receivers of UC, UD and raw packets
 *   rcd_xrc.c          targets of XRC: whose receive queue, keys and memory a packet is for
 *   rcd_qp_copy.c      what comes later than its packet: copies into foreign memory
 *   rcd_sg.c           scatter and gather
 */
#ifndef RCD_QP_PRIV_H
#define RCD_QP_PRIV_H

#include <assert.h>

#include "rcd_ah.h"
#include "rcd_aeth.h"
#include "rcd_check.h"
#include "rcd_gate.h"
#include "rcd_hello.h"
#include "rcd_qp.h"
#include "rcd_recover.h"
#include "rcd_reorder.h"
#include "rcd_reply.h"
#include "rcd_rto.h"
#include "rcd_sack.h"
#include "rcd_srq.h"
#include "rcd_timer.h"
#include "rcd_xrc.h"

/**
 * Most request packets in flight: 100 Gb/s over 20 us with 1 KiB packets are 244. It counts from
 * the last acknowledged packet or the last READ, so that a big READ, whose responses take PSNs too,
 * does not stall what follows it.
 */
#define RCD_REQ_WINDOW 512

/**
 * No further READ begins when more packets would be outstanding, requests of other kinds among
 * them: answers behind a hole that a network made can all be kept. Of those that can't each READ is
 * asked for again, one in a round trip. A larger READ counts as half of it, so that the next one is
 * asked for before it ends.
 */
#define RCD_READ_WINDOW_PKTS RCD_REORDER_WINDOW

/**
 * Most send work requests begun and not complete. The window above bounds those with packets; this
 * bounds local operations between them as well, and so what one acknowledge can complete.
 */
#define RCD_REQ_BEGUN 1024

/** Local operations carried out in one call: each takes a look into the table of keys. */
#define RCD_REQ_LOCAL 16

/** Ask for an acknowledge at least this often. */
#define RCD_ACK_REQ_EVERY 32

/** How long a second NAK for the same PSN is taken for an echo, before a round trip is known. */
#define RCD_RTT_DEFAULT_NS 20000

/** Responses behind a missing one after which it is taken for lost, and not for late. */
#define RCD_AHEAD_MAX 16

/**
 * Of so many responses up to the last one that was kept one may be missing, and three more: then
 * the READ is asked for hole by hole. Of more, all that is left costs less than so many round
 * trips.
 */
#define RCD_READ_SPARSE 32

/** Times that a NAK or a gap makes us send the same packet again before it counts as a retry. */
#define RCD_GAP_TRIES 64

/** Gaps that are repaired by sending all again after a peer kept nothing that came early. */
#define RCD_PEER_DROPS 64

/** Most responses that come in vain and spend no retry: what a peer can hold up has an end. */
#define RCD_LATE_MAX 4096

/** Single packets repaired one right after the other before a peer is taken to keep nothing. */
#define RCD_REPAIR_STEPS 3

/** Least time between two CNPs of a queue pair, as NICs have it. */
#define RCD_CNP_INTERVAL_NS 50000

/** Packets behind a NAK, of either kind, after which it is sent again: it may be lost. */
#define RCD_NAK_AGAIN_PACKETS 64

/** A send work request that has begun: what is needed to acknowledge and to send it again. */
struct rcd_sq_rec {
	uint64_t wr_id;
	uint32_t psn_flags; /**< PSN of the first packet; RCD_REC_* in the top byte */
	uint32_t len;       /**< bytes of the message */
};

#define RCD_REC_OPCODE_SHIFT 24
#define RCD_REC_OPCODE_MASK  (UINT32_C(0xf) << RCD_REC_OPCODE_SHIFT)
#define RCD_REC_SIGNALED     (UINT32_C(1) << 28)

static_assert(RCD_WR_OPCODE_COUNT <= 16, "a record keeps four bits of an opcode");

/** Responses to a READ that are still to be sent. */
struct rcd_reply_run {
	uint32_t next; /**< response packet to send next, counted from the READ's PSN */
	uint32_t end;  /**< one past the last to send */
};

/**
 * A READ, atomic, FLUSH or ATOMIC WRITE that a peer asked for: to be answered, or kept to answer a
 * duplicate.
 */
struct rcd_resp_resource {
	uint32_t psn : 24;
	uint32_t opcode : 8; /**< of the request; 0 (RC_SEND_FIRST) marks an unused one */
	uint32_t count;      /**< PSNs that it takes */
	uint64_t va;
	uint32_t rkey;
	uint32_t len; /**< bytes of a READ or FLUSH */
	union {
		uint64_t original;        /**< result of an atomic */
		struct rcd_feth feth;     /**< what a FLUSH asked for */
		struct rcd_reply_run run; /**< of a READ */
	};
	uint32_t stop;         /**< bytes of the READ at which this answer to it ends */
	uint32_t srqn : 24;    /**< of XRC: the queue whose memory it is of */
	uint32_t pending : 1;  /**< in the queue of replies */
	uint32_t first : 1;    /**< the next packet begins a run of responses */
	uint32_t repeated : 1; /**< what is pending answers a duplicate */
};

/** A send work request in private memory. */
struct rcd_wr_slot {
	struct rcd_send_wr wr;
	uint32_t number;
	uint32_t len; /**< bytes of the message */
	bool loaded;
};

/** What the responder is in the middle of. */
enum rcd_in_progress {
	RCD_IN_NOTHING,
	RCD_IN_SEND,
	RCD_IN_WRITE
};

/** NAK that waits to be sent, or was. */
enum rcd_nak_state {
	RCD_NAK_STATE_NONE,
	RCD_NAK_STATE_SENT,     /**< for the expected PSN a sequence NAK is out, or a SACK */
	RCD_NAK_STATE_RNR_SENT, /**< an RNR NAK is: what follows it is dropped */
};

/** What every packet of an RC queue pair touches: two cache lines. */
struct rcd_qp_hot {
	const struct rcd_qp_ops *ops;
	void *arg;
	struct rcd_counters *counters;
	struct rcd_mr_table *mrs;
	struct rcd_psn psn_una;  /**< oldest PSN not acknowledged */
	struct rcd_psn psn_next; /**< one past the newest PSN ever sent */
	struct rcd_psn psn_tx;   /**< PSN to send next: psn_next, or before it when sending again */
	struct rcd_psn psn_read; /**< one past the PSNs of the last READ that was sent */
	uint32_t sq_head;        /**< oldest work request that is not complete */
	uint32_t sq_next;        /**< next work request to begin */
	uint32_t sq_tx;          /**< work request of psn_tx */
	uint16_t since_ack_req;  /**< packets since one asked for an acknowledge */
	uint16_t ask_every;      /**< so many at the latest, 0..RCD_ACK_REQ_EVERY */
	uint64_t rto_deadline;   /**< retransmission timeout; 0: off */
	uint64_t wait_until;    /**< end of an RNR wait: until then NAKs say nothing new; 0: none */
	struct rcd_psn epsn;    /**< expected PSN of the next request */
	uint32_t messages;      /**< received whole, since RESET; the MSN is its low bits */
	struct rcd_psn ack_psn; /**< acknowledge up to here, when ack_pending */
	uint32_t in_len;        /**< bytes of the message in progress so far */
	uint32_t in_total;      /**< WRITE in progress: bytes that its RETH announced */
	uint16_t mtu;           /**< path MTU, bytes */
	uint8_t mtu_shift;
	uint8_t type;  /**< enum rcd_qp_type */
	uint8_t state; /**< enum rcd_qp_state */
	uint8_t retry_left, rnr_left;
	uint8_t reads_out;    /**< READs, their parts and what else is answered so: outstanding */
	uint8_t in_progress;  /**< enum rcd_in_progress */
	uint8_t nak_state;    /**< enum rcd_nak_state */
	uint8_t nak_syndrome; /**< to send, when nak_pending */
	bool nak_pending, ack_pending;
	bool cnp_pending : 1, sack_pending : 1, nak_spared : 1; /**< NAK: if a SACK tells of it */
	bool hole_untold : 1; /**< a gap was found, and nothing was sent that tells of it */
	bool repair : 1;      /**< psn_una alone is to be sent next, again */
	bool paused : 1;      /**< local operations stopped at their share of a call */
	bool flushing : 1;    /**< in ERR or SQE: requests may be left to be flushed */
	bool limited : 1;     /**< what it sends passes the gate, ... */
	bool sack_holes : 1;  /**< packets may be lost (rcd_sack.h) */
	bool tx_built : 1;    /**< the one of tx that the last packet was built from */
	bool marks : 1, looks : 1, hello_due : 1, hello_asked : 1; /**< (rcd_hello.h) */
	bool replies_limited : 1; /**< ...its responses to READs too */
	bool held : 1;            /**< a pace holds something back until gate->held_ns */
	uint8_t reply_count;      /**< resources in the queue of replies */
	uint8_t sq_failed;        /**< status of work request sq_fail; 0: none failed */
	uint16_t window;          /**< packets from psn_una on that may be sent (rcd_recover.h) */
	uint16_t pass;   /**< SENDs and WRITEs that may pass the gate unasked (rcd_gate.h) */
	uint32_t passed; /**< bytes on the wire of those that did, for the gate to count */
};

/** A queue pair. */
struct rcd_qp {
	_Alignas(64) struct rcd_qp_hot hot;

	/* Requester and completer. */
	uint32_t sq_mask;
	uint32_t sq_fail;             /**< work request that failed locally */
	struct rcd_sq_rec *sq;        /**< sq_mask + 1 of them */
	struct rcd_wr_slot tx[2];     /**< one in use, one to come */
	struct rcd_wr_slot read;      /**< the READ or atomic whose responses come in */
	struct rcd_kept_list answers; /**< responses behind a missing one */
	uint64_t again_ns;            /**< when a NAK or a gap last made us send again */
	struct rcd_psn again_psn;     /**< from which PSN */
	struct rcd_psn ahead_psn;     /**< the last response behind a missing one */
	bool again_valid;
	uint8_t gap_tries;      /**< times sent again because of an answer, since progress */
	bool drained;           /**< SQ_DRAINED was raised in this SQD */
	bool sent_unreliable;   /**< the request before sq_tx completes at the next call */
	bool gone;              /**< LAST_WQE_REACHED was raised */
	bool rtt_probed;        /**< there was a probe since what is timed was sent */
	uint16_t ahead_count;   /**< responses behind a missing one, since it is */
	uint32_t rtt_ns;        /**< smoothed round trip; 0: unknown */
	uint32_t rtt_var_ns;    /**< how far round trips are off it, smoothed */
	uint32_t probe_ns;      /**< rcd_rto_probe_after(), when the round trip is known */
	struct rcd_psn rtt_psn; /**< PSN that is being timed, when rtt_begin_ns is not 0 */
	uint64_t rtt_begin_ns;
	uint64_t rto_ns;    /**< length of the timeout; 0: off */
	uint64_t rto_at;    /**< when it is; rto_deadline may be a probe before it */
	uint64_t asked_ns;  /**< when a packet last asked for an acknowledge */
	uint8_t probes;     /**< since progress */
	uint8_t rtt_doubts; /**< round trips not taken as there was a probe, one after the other */
	uint16_t late_due;  /**< responses to READs that may come in vain: asked for again */

	/* What was sent again alone, and what came of it. */
	bool repaired : 1;          /**< not answered yet */
	bool repair_probe : 1;      /**< it was a probe: nothing is known to be missing */
	bool repairing : 1;         /**< it is being built */
	uint8_t repair_steps;       /**< repairs of neighbours, one after the other */
	uint8_t peer_drops;         /**< gaps for which the peer is taken to keep nothing */
	struct rcd_psn repair_end;  /**< one past it */
	struct rcd_psn repair_high; /**< psn_next at the time */
	struct rcd_recovery recovery;
	struct rcd_gate *gate; /**< NULL: nothing limits what it sends */
	struct rcd_sack *sack; /**< of both halves; NULL: not agreed with the peer */
	struct rcd_hello hello;

	/* Responder. */
	struct rcd_resp_resource *resources; /**< max_rd_atomic of them */
	uint8_t *replies;                    /**< numbers of pending resources, a ring */
	uint8_t resource_next;               /**< resource to use next */
	uint8_t reply_first;                 /**< place in replies of the first */
	uint8_t again_resource;              /**< the READ of `again` */
	bool again_first;                    /**< the next packet begins a run of responses */
	struct rcd_reply_run again; /**< a part of a READ, sent before all else; none: next = end */
	bool recv_valid : 1;
	bool comm_est : 1;       /**< the event was raised */
	bool skip_message : 1;   /**< UC: drop to the next message */
	uint8_t nak_seen;        /**< packets out of order since the NAK */
	uint8_t nak_beside;      /**< NAKs to come beside SACKs */
	struct rcd_recv_wr recv; /**< receive work request in use, when recv_valid */
	uint32_t rq_next;
	uint32_t srqn;       /**< XRC target: queue that the message in progress is for */
	uint64_t srq_serial; /**< of that which `recv` is from */
	struct rcd_key write_key;
	struct rcd_psn nak_high; /**< last PSN that came out of order */
	uint64_t write_va;
	struct rcd_kept_list kept; /**< out of order */
	uint64_t cnp_ns;           /**< when a CNP was last sent */

	struct rcd_qp_init init;
	struct rcd_qp_attr attr;
};

/** Add to a counter of the queue pair. */
static inline void
rcd_qp_count(struct rcd_qp *qp, enum rcd_counter counter, uint64_t amount)
{
	rcd_counter_add(qp->hot.counters, counter, amount);
}

/** State and progress, which other threads may ask for: stored whole. */
static inline void
rcd_qp_set_state(struct rcd_qp_hot *hot, enum rcd_qp_state state)
{
	__atomic_store_n(&hot->state, (uint8_t)state, __ATOMIC_RELAXED);
}

/** The first work request that is not complete, likewise. */
static inline void
rcd_qp_set_sq_head(struct rcd_qp_hot *hot, uint32_t number)
{
	__atomic_store_n(&hot->sq_head, number, __ATOMIC_RELAXED);
}

/** A message was received whole, or a request for data. */
static inline void
rcd_qp_note_message(struct rcd_qp_hot *hot)
{
	__atomic_store_n(&hot->messages, hot->messages + 1, __ATOMIC_RELAXED);
}

/** Whether requests are acknowledged: RC, and both ends of XRC. */
static inline bool
rcd_qp_is_reliable(const struct rcd_qp *qp)
{
	return qp->hot.type == RCD_QP_RC || qp->hot.type >= RCD_QP_XRC_SEND;
}

/** Whether it sends datagrams. */
static inline bool
rcd_qp_is_datagram(const struct rcd_qp *qp)
{
	return qp->hot.type == RCD_QP_UD || qp->hot.type == RCD_QP_GSI;
}

/** An opcode of RC as the queue pair's connected service has it. */
static inline uint8_t
rcd_qp_opcode(const struct rcd_qp *qp, uint8_t rc)
{
	if (qp->hot.type == RCD_QP_RC)
		return rc;
	return rc | (qp->hot.type == RCD_QP_UC ? 0x20 : 0xa0);
}

/** Record of a work request that has begun. */
static inline struct rcd_sq_rec *
rcd_sq_rec(struct rcd_qp *qp, uint32_t number)
{
	return &qp->sq[number & qp->sq_mask];
}

/** Its opcode. */
static inline enum rcd_wr_opcode
rcd_rec_opcode(const struct rcd_sq_rec *rec)
{
	return (enum rcd_wr_opcode)((rec->psn_flags & RCD_REC_OPCODE_MASK) >> RCD_REC_OPCODE_SHIFT);
}

/** Its first PSN. */
static inline struct rcd_psn
rcd_rec_psn(const struct rcd_sq_rec *rec)
{
	return rcd_psn(rec->psn_flags);
}

/** Whether it is done without a packet. */
static inline bool
rcd_wr_is_local(enum rcd_wr_opcode opcode)
{
	return opcode == RCD_WR_LOCAL_INV || opcode == RCD_WR_BIND_MW;
}

/** Whether it is an atomic. */
static inline bool
rcd_wr_is_atomic(enum rcd_wr_opcode opcode)
{
	return opcode == RCD_WR_COMPARE_SWAP || opcode == RCD_WR_FETCH_ADD;
}

/** Whether it is answered by a READ response of no bytes. */
static inline bool
rcd_wr_is_empty_read(enum rcd_wr_opcode opcode)
{
	return opcode == RCD_WR_FLUSH || opcode == RCD_WR_ATOMIC_WRITE;
}

/** Whether the request has an answer of its own, as READs do, which no acknowledge replaces. */
static inline bool
rcd_wr_is_read(enum rcd_wr_opcode opcode)
{
	return opcode == RCD_WR_RDMA_READ || rcd_wr_is_atomic(opcode) ||
		rcd_wr_is_empty_read(opcode);
}

/** Packets that a message of this many bytes takes. */
static inline uint32_t
rcd_packets(const struct rcd_qp *qp, uint32_t len)
{
	return len == 0 ? 1 : ((len - 1) >> qp->hot.mtu_shift) + 1;
}

/** PSNs that a begun work request takes; 0 for local operations and for one that failed. */
static inline uint32_t
rcd_rec_packets(struct rcd_qp *qp, uint32_t number)
{
	const struct rcd_sq_rec *rec = rcd_sq_rec(qp, number);
	enum rcd_wr_opcode opcode = rcd_rec_opcode(rec);

	if (rcd_wr_is_local(opcode) || (qp->hot.sq_failed != 0 && number == qp->sq_fail))
		return 0;
	return rcd_wr_is_atomic(opcode) ? 1 : rcd_packets(qp, rec->len);
}

/** Whether it is one of the path MTUs that the verbs enumerate, and at most this. */
static inline bool
rcd_mtu_valid(uint16_t mtu, uint16_t most)
{
	return mtu != 0 && mtu <= most && rcd_mtu_bytes(rcd_mtu_code(mtu)) == mtu;
}

/** Begin a packet to the connected peer: its BTH, no payload yet. */
static inline void
rcd_qp_start_pkt(struct rcd_qp *qp, struct rcd_tx_pkt *pkt, uint8_t opcode, struct rcd_psn psn)
{
	pkt->roce.bth = (struct rcd_bth){
		.opcode = opcode,
		.mig_req = true,
		.pkey = { RCD_PKEY_DEFAULT },
		.dest_qpn = qp->attr.dest_qpn,
		.psn = psn,
	};
	pkt->av = &qp->attr.av;
	pkt->payload_len = 0;
	pkt->piece_count = 0;
}

/* rcd_qp.c */
/** Raise an asynchronous event of the queue pair. */
static inline void
rcd_qp_raise(struct rcd_qp *qp, enum rcd_event event)
{
	qp->hot.ops->event(qp->hot.arg, event);
}

/** Forget everything that belongs to packets: for RESET. */
void
rcd_qp_clear(struct rcd_qp *qp);

/* rcd_qp_complete.c */

/** Hand over the completion of a send work request. @param opcode  enum rcd_wr_opcode, or any */
void
rcd_qp_complete_send(
	struct rcd_qp *qp, uint64_t wr_id, uint8_t opcode, uint32_t len, enum rcd_wc_status status);

/** Complete the oldest send work request and, when it failed, leave RTS. */
void
rcd_qp_complete_head(struct rcd_qp *qp, enum rcd_wc_status status);

/**
 * Hand over a receive completion and forget the receive work request. Of XRC it goes to the shared
 * queue that it is from, and nowhere if that is no more.
 */
void
rcd_qp_complete_recv(struct rcd_qp *qp, struct rcd_cqe *cqe);

/** Complete a message that consumed a receive work request; its length is in_len. */
void
rcd_qp_complete_message(struct rcd_qp *qp, const struct rcd_roce *roce, enum rcd_wc_opcode opcode);

/** Give back all packets that are kept out of order. */
void
rcd_qp_drop_kept(struct rcd_qp *qp);

/** Go to ERR; what is in the queues is to be flushed. @param event what to raise, or 0 */
void
rcd_qp_error(struct rcd_qp *qp, enum rcd_event event);

/** Make sure that a receive work request is at hand. @return 0 or -EAGAIN */
int
rcd_qp_need_recv(struct rcd_qp *qp);

/** Raise SQ_DRAINED when in SQD and all that was begun is complete. */
void
rcd_qp_check_drained(struct rcd_qp *qp);

/** In ERR or SQE: the requester forgets what is outstanding, and all requests are to be flushed. */
void
rcd_qp_flush_begin(struct rcd_qp *qp);

/* rcd_req.c */

/** Next request packet. @return whether there is one */
bool
rcd_req_next(struct rcd_qp *qp, uint64_t now_ns, struct rcd_tx_pkt *pkt);

/** A work request that can't be carried out completes with an error when its turn comes. */
void
rcd_req_fail_at(struct rcd_qp *qp, uint32_t number, enum rcd_wc_status status);

/** Send again from a PSN that is outstanding. */
void
rcd_req_go_back(struct rcd_qp *qp, struct rcd_psn psn);

/** After the oldest outstanding PSN moved: nothing before it is sent again. */
void
rcd_req_skip_acked(struct rcd_qp *qp);

/** Load a begun work request. @return false when it is not what was sent: the queue pair failed */
bool
rcd_req_load(struct rcd_qp *qp, struct rcd_wr_slot *slot, uint32_t number);

/** In SQD: make sure that an acknowledge of the last packet will come. */
void
rcd_req_drain(struct rcd_qp *qp);

/* rcd_req_find.c */

/** The last of the requests that begins at a PSN that is outstanding, or before it. */
uint32_t
rcd_req_find(struct rcd_qp *qp, struct rcd_psn psn);

/* rcd_req_local.c */

/** Carry out a local operation. */
enum rcd_wc_status
rcd_req_do_local(struct rcd_qp *qp, const struct rcd_send_wr *wr);

/* rcd_comp.c */

/** An answer to a request of ours. */
enum rcd_rx_verdict
rcd_comp_rx(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns);

/**
 * Send again from the oldest outstanding PSN, at the cost of a retry.
 *
 * @param status  completion status of the oldest request when no retry is left
 */
void
rcd_comp_retry(struct rcd_qp *qp, uint64_t now_ns, enum rcd_wc_status status);

/* rcd_resp.c */

/** A request of an RC peer. */
enum rcd_rx_verdict
rcd_resp_rx(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns);

/* rcd_unrel.c */

/** A packet for a UC queue pair that passed the common checks. */
enum rcd_rx_verdict
rcd_uc_rx(struct rcd_qp *qp, const struct rcd_pkt *pkt);

/** Likewise for UD, QP1 included; and a frame for one of raw packets. */
enum rcd_rx_verdict
rcd_ud_rx(struct rcd_qp *qp, const struct rcd_pkt *pkt);

enum rcd_rx_verdict
rcd_frame_rx(struct rcd_qp *qp, const uint8_t *frame, uint32_t len, bool csum_ok);

/* rcd_xrc.c */

/**
 * Whose memory the packet at hand is for: the keys that are looked at from now on are those of the
 * queue with this number.
 *
 * @return the queue; NULL: the domain has none, and no key is valid
 */
struct rcd_srq *
rcd_xrc_enter(struct rcd_qp *qp, uint32_t srqn);

/** The same for a request, if that may be for the queue that it names. @return whether it may */
bool
rcd_xrc_check(struct rcd_qp *qp, const struct rcd_roce *roce);

/* rcd_sg.c */

/** Bytes of a list. */
uint64_t
rcd_sg_len(const struct rcd_sge *sges, uint32_t count);

/**
 * Engine memory of a part of a list.
 *
 * @param access  RCD_ACCESS_LOCAL_WRITE, or 0 to read
 * @param pieces  room for RCD_TX_PIECES_MAX
 * @return number of pieces; -EFAULT when a key or range does not allow it, or there are more
 */
int
rcd_sg_pieces(struct rcd_qp *qp, const struct rcd_sge *sges, uint32_t count, uint32_t offset,
	uint32_t len, uint32_t access, struct rcd_piece *pieces);

/** Copy into a part of a list; all or nothing. @return 0 or -EFAULT */
int
rcd_sg_scatter(struct rcd_qp *qp, const struct rcd_sge *sges, uint32_t count, uint32_t offset,
	const uint8_t *src, uint32_t len);

#endif /* RCD_QP_PRIV_H */
