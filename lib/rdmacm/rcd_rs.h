/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Rsockets: sockets whose bytes go by RDMA, over the identifiers and verbs of this library. On the
 * wire they are rdma-core's (docs/rsocket of its source is the description of the protocol).
 *
 *   rcd_rs_table.c    numbers to sockets: rsocket(), rfcntl()
 *   rcd_rs_state.c    ends, and waking who waits
 *   rcd_rs_conn.c     binding, listening, connecting, accepting, and names
 *   rcd_rs_cm.c       the events of connections, and what sides say of themselves in them
 *   rcd_rs_link.c     a queue pair with its buffers: made and freed
 *   rcd_rs_message.c  completions: messages, credits, and what peers may not do
 *   rcd_rs_wait.c     waiting, for one socket
 *   rcd_rs_poll.c     waiting, for many: rpoll(), rselect()
 *   rcd_rs_send.c, rcd_rs_recv.c, rcd_rs_iomap.c, rcd_rs_option.c
 *   rcd_rs_shutdown.c  rshutdown(), rclose()
 *   rcd_rs_keep.c     options that keep connections alive
 *   rcd_rs_service.c  the thread that does so, and that datagrams need
 *   rcd_ds_*.c        datagrams: rcd_ds.h
 *
 * Each side has a ring of bytes that the other writes into. A ring is granted by halves: a half
 * that has been read is written, as an entry of address, key and length, into the other side's
 * list of two; bytes are announced by the immediate data of the write that brings them. Besides,
 * each side has credits: so many messages it may send until it is given more.
 *
 * The peer is hostile by assumption. What it writes into our memory (list and table of mappings)
 * is copied once, when the message that announces it comes, and never looked at again; each
 * length is held against what was granted. A peer that breaks the rules loses its connection.
 *
 * Locks, outer before inner: one side's (send_lock, recv_lock), a socket's, that of the service
 * thread or of the table.
 * A number is looked up with a reference, so that a socket may be closed while others use it.
 */
#ifndef RCD_RS_H
#define RCD_RS_H

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

#define RCD_RS_VERSION       1
#define RCD_RS_FLAG_BIG      (1u << 0) /**< who says it wants entries in big-endian order */
#define RCD_RS_FLAG_IOMAP    (1u << 1) /**< its table of mappings is behind its list */
#define RCD_RS_LIST          2         /**< entries of our list */
#define RCD_RS_CONTROLS      4         /**< places in the send queue for control messages alone */
#define RCD_RS_QUEUE_MIN     16
#define RCD_RS_QUEUE_MAX     0xfffe
#define RCD_RS_BUFFER_MIN    4096
#define RCD_RS_BUFFER_MAX    (1u << 28) /**< below what a message can say */
#define RCD_RS_LOW_WATER     2048       /**< room in the send buffer that makes it writable */
#define RCD_RS_TRANSFER_MAX  65536
#define RCD_RS_PENDING_MAX   1024 /**< requests that a listener holds */
#define RCD_RS_MESSAGE_SHIFT 29
#define RCD_RS_MESSAGE_MASK  ((1u << RCD_RS_MESSAGE_SHIFT) - 1)

/** Kinds of messages: the upper bits of immediate data. */
enum rcd_rs_kind {
	RCD_RS_DATA = 0,
	RCD_RS_CREDIT = 4, /**< the lower bits: the last message that may be sent, modulo 2^16 */
	RCD_RS_IOMAP = 6,  /**< an entry of the table has changed */
	RCD_RS_CONTROL = 7,
};

/** The lower bits of control messages. */
enum rcd_rs_control {
	RCD_RS_DISCONNECT = 0,
	RCD_RS_KEEPALIVE = 1,
	RCD_RS_SHUTDOWN = 2,
};

/** What a work request was; in its number, with the bytes of the send buffer that it holds. */
enum rcd_rs_work {
	RCD_RS_WORK_RECV = 1,
	RCD_RS_WORK_CONTROL,
	RCD_RS_WORK_SEND,
};

/** An entry: memory of the other side. */
struct rcd_rs_sge {
	uint64_t addr;
	uint32_t key;
	uint32_t len;
};

/** An entry of the table of mappings. */
struct rcd_rs_iomap {
	uint64_t offset;
	struct rcd_rs_sge sge;
};

/** What sides say of themselves when they connect: private data, in network byte order. */
struct rcd_rs_hello {
	uint8_t version;
	uint8_t flags;
	uint16_t credits;
	uint8_t reserved[3];
	uint8_t iomaps; /**< rcd_rs_iomaps_code() */
	struct rcd_rs_sge list;
	struct rcd_rs_sge half;
};
static_assert(sizeof(struct rcd_rs_hello) == 40, "the other side's as well");

/** In this order: what is not yet, what is, what was. */
enum rcd_rs_state {
	RCD_RS_NEW,
	RCD_RS_BOUND,
	RCD_RS_LISTENING,
	RCD_RS_RESOLVING,
	RCD_RS_ROUTING,
	RCD_RS_CONNECTING,
	RCD_RS_ACCEPTING,
	RCD_RS_CONNECTED,
	RCD_RS_DISCONNECTED,
	RCD_RS_FAILED, /**< the reason is in error */
	RCD_RS_CLOSED,
};

/** Somebody who sleeps until a socket changes. */
struct rcd_rs_watch {
	LIST_ENTRY(rcd_rs_watch) link;
	int bell; /**< an eventfd */
};

/** A request that was not accepted yet. */
struct rcd_rs_pending {
	STAILQ_ENTRY(rcd_rs_pending) link;
	struct rdma_cm_event *event;
};

/** Memory that the peer may write at an offset, or will once it has been told. */
struct rcd_rs_mapping {
	LIST_ENTRY(rcd_rs_mapping) link;
	struct ibv_mr *mr;
	uint64_t offset;
	uint32_t index; /**< in the peer's table */
	bool untold;
};

/** What may be set before there is a connection; a listener's go to those that it accepts. */
struct rcd_rs_sizes {
	uint32_t send_bytes, recv_bytes;
	uint16_t send_queue, recv_queue;
	uint16_t inline_bytes;
	uint16_t iomaps;
};

/** What keeps a connection alive; a listener's goes to those that it accepts. */
struct rcd_rs_keep {
	bool on;
	uint32_t idle_s;            /**< 0: the system's */
	uint32_t interval_s, count; /**< told, and change nothing */
};

struct rcd_ds;

/** A socket. */
struct rcd_rs {
	int number; /**< of its channel, which is open as long as the socket is there */
	struct rcd_ds
		*ds; /**< of datagrams, without what is below of connections; NULL: a stream */
	int domain;
	uint32_t refs; /**< of the table's lock */
	pthread_mutex_t send_lock, recv_lock;
	pthread_mutex_t lock; /**< of what follows */
	enum rcd_rs_state state;
	bool readable, writable;
	bool nonblock, big_peer;
	bool untold; /**< rconnect() has not said how what it has begun has ended */
	int error;
	int fd_flags;
	LIST_HEAD(, rcd_rs_watch) watches;

	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	bool channel_told;     /**< who slept has seen that it has an event */
	uint8_t channel_turns; /**< in which nobody looked at it */
	STAILQ_HEAD(, rcd_rs_pending) pending;
	uint32_t pending_count;

	struct rcd_rs_sizes sizes;
	uint32_t options; /**< those that are only kept: rcd_rs_option.c */
	int tos;
	struct rcd_rs_keep keep;

	/* Of the service thread's lock. */
	LIST_ENTRY(rcd_rs) service;
	bool served;
	uint32_t service_at; /**< where the thread has its file; 0: not yet */
	int64_t alive_ms;    /**< when it is to be kept alive; 0: never */
	int64_t alive_every_ms;

	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	bool armed;

	/* Receiving. held + granted + spare = sizes.recv_bytes. */
	uint8_t *ring;
	struct ibv_mr *ring_mr;
	uint32_t read_at;
	uint32_t held;    /**< bytes that were announced, and not read */
	uint32_t granted; /**< bytes that the peer may still write */
	uint32_t spare;   /**< bytes that were read, or never granted */
	uint32_t grant_at;
	uint16_t heard;     /**< messages for which the peer needs credits */
	uint16_t credit_at; /**< of those: when the peer is given more */

	/* Sending. The peer writes into shared. */
	uint8_t *send_buf;
	struct ibv_mr *send_mr;
	uint32_t send_at, send_free;
	uint32_t send_room;    /**< places in the send queue */
	uint32_t control_room; /**< likewise, for control messages */
	uint32_t control_at;
	uint16_t said, say_until;
	struct rcd_rs_sge *shared;
	struct ibv_mr *shared_mr;
	struct rcd_rs_sge halves[RCD_RS_LIST];
	uint32_t half_at;   /**< into which we send */
	uint32_t half_next; /**< that the peer will tell next */

	/* The peer's list, and the tables of mappings. */
	struct rcd_rs_sge list;
	uint32_t list_at;
	struct rcd_rs_sge peer_table;
	struct rcd_rs_iomap *table; /**< the peer's mappings: where we may write */
	LIST_HEAD(, rcd_rs_mapping) mappings;
};

/** What r*() return: 0, or -1 with errno. @param err 0 or -errno; more than 0 is returned */
static inline ssize_t
rcd_rs_ret(ssize_t err)
{
	if (err >= 0)
		return err;
	errno = (int)-err;
	return -1;
}

static inline uint32_t
rcd_rs_least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/** A buffer's size, of what is asked: twice that, as sockets of the kernel's. It is even. */
static inline uint32_t
rcd_rs_buffer_bytes(int asked)
{
	uint64_t bytes = asked > 0 ? 2 * (uint64_t)asked : 0;

	if (bytes < RCD_RS_BUFFER_MIN)
		bytes = RCD_RS_BUFFER_MIN;
	return rcd_rs_least(bytes, RCD_RS_BUFFER_MAX);
}

/** How many entries a table has, in 8 bits: exact up to 128, then in steps of 256. */
static inline uint8_t
rcd_rs_iomaps_code(uint32_t count)
{
	return (uint8_t)(count <= 128 ? count : 128 | rcd_rs_least(count >> 8, 127));
}

/** And back. */
static inline uint16_t
rcd_rs_iomaps_count(uint8_t code)
{
	return (uint16_t)(code <= 128 ? code : (code & 127) << 8);
}

/* rcd_rs_table.c */

/**
 * Make a socket of a channel and an identifier that become its own, without a number. Without them
 * (NULL) it is to be one of datagrams. The caller has a reference.
 */
struct rcd_rs *
rcd_rs_make(struct rdma_event_channel *channel, struct rdma_cm_id *id, int domain);

/**
 * Give it its number, with a reference of the table's: from now on any thread may close it.
 *
 * @return 0 or -ENOMEM
 */
int
rcd_rs_enter(struct rcd_rs *rs);

/** Take the number away. @return the socket, with the table's reference; NULL and errno: EBADF */
struct rcd_rs *
rcd_rs_leave(int number);

/** The socket of a number, with a reference. @return NULL and errno: EBADF */
struct rcd_rs *
rcd_rs_get(int number);

/** Likewise, of a stream. @return NULL and errno: EBADF; EOPNOTSUPP: one of datagrams */
struct rcd_rs *
rcd_rs_get_stream(int number);

/** Give the reference back; the last one frees the socket. */
void
rcd_rs_put(struct rcd_rs *rs);

/* rcd_rs_state.c: socket locked, but for the first three. */

/**
 * Bytes of all buffers of a call.
 *
 * @return 0; -EINVAL: more than a call can tell of
 */
int
rcd_rs_measure(const struct iovec *iov, int count, size_t *len);

/** Whether a call with these flags may not block. */
bool
rcd_rs_is_nonblock(struct rcd_rs *rs, int flags);

/**
 * Take send_lock or recv_lock, which others have while they block, and the socket's lock.
 *
 * @return 0; -EAGAIN: somebody has it, and this call may not block
 */
int
rcd_rs_take_side(struct rcd_rs *rs, pthread_mutex_t *side, bool nonblock);

/** Give both back. */
void
rcd_rs_give_side(struct rcd_rs *rs, pthread_mutex_t *side);

/**
 * What a transfer returns. The socket's error waits for the next one where bytes are told.
 *
 * @return done; err, which is told by that: 0 or -errno
 */
ssize_t
rcd_rs_done(struct rcd_rs *rs, size_t done, int err);

/** No longer connecting, nor connected. */
void
rcd_rs_fail(struct rcd_rs *rs, int error);

/** The connection has ended as connections do. */
void
rcd_rs_disconnected(struct rcd_rs *rs);

/** Wake all who wait. */
void
rcd_rs_ring(struct rcd_rs *rs, const struct rcd_rs_watch *self);

/** Have the engine tell of the next completion of a stream. */
void
rcd_rs_arm(struct rcd_rs *rs);

/* rcd_rs_cm.c: socket locked. */

/** Take the events that the channel has. @return whether anything has changed */
bool
rcd_rs_cm_progress(struct rcd_rs *rs);

/** Describe our side. */
void
rcd_rs_hello_fill(const struct rcd_rs *rs, struct rcd_rs_hello *hello);

/** Take the other side's word. @return 0; -EPROTO: it makes no sense */
int
rcd_rs_hello_take(struct rcd_rs *rs, const void *data, size_t len);

/** Begin to resolve the destination. @return 0 or -errno */
int
rcd_rs_cm_resolve(struct rcd_rs *rs, const struct sockaddr *addr);

/* rcd_rs_link.c */

/**
 * Zeroed memory to be registered, in whole pages: those of a registration may be kept from children
 * (ibv_fork_init()).
 *
 * @return NULL; free() it
 */
void *
rcd_rs_alloc(size_t len);

/** Make queue pair and buffers for an identifier with a device. @return 0 or -errno */
int
rcd_rs_link_create(struct rcd_rs *rs);

/** Free what there is of them. */
void
rcd_rs_link_destroy(struct rcd_rs *rs);

/* rcd_rs_message.c: socket locked. */

/** Take completions, and give credits. @return whether anything has changed */
bool
rcd_rs_message_progress(struct rcd_rs *rs);

/** Post one receive request: it has no memory, immediate data need none. @return 0 or -errno */
int
rcd_rs_post_recv(struct rcd_rs *rs);

/**
 * Write to the peer.
 *
 * @param message  immediate data; UINT32_MAX: none
 * @return 0 or -errno
 */
int
rcd_rs_post_write(struct rcd_rs *rs, struct ibv_sge *sges, int count, uint64_t addr, uint32_t key,
	uint32_t message, uint64_t work);

/** Say something that needs no credit, where there is room. @return 0 or -errno */
int
rcd_rs_post_control(struct rcd_rs *rs, enum rcd_rs_control control);

/** Whether there is room to stage something. */
bool
rcd_rs_can_stage(const struct rcd_rs *rs);

/** Whether data can be sent at once. */
bool
rcd_rs_can_send(const struct rcd_rs *rs);

/** Of a request: what it is, and the bytes that it holds. */
static inline uint64_t
rcd_rs_work(enum rcd_rs_work work, uint32_t len)
{
	return (uint64_t)work << 32 | len;
}

/* rcd_rs_wait.c: socket locked. */

/** Take all events, and wake who waits. @param self do not wake; NULL: there is none */
void
rcd_rs_progress(struct rcd_rs *rs, const struct rcd_rs_watch *self);

/** Have the engine tell of what comes next, of whatever kind the socket is. */
void
rcd_rs_arm_all(struct rcd_rs *rs);

/** Take what the engine told. */
void
rcd_rs_disarm(struct rcd_rs *rs);

/** What one sleeps on who waits for it. @return the second: rcd_rs_disarm() is due after it */
struct pollfd *
rcd_rs_files(const struct rcd_rs *rs, struct pollfd files[2]);

/**
 * Wait. The lock is given back meanwhile.
 *
 * @param timeout_ms  -1: none
 * @return 0; -EAGAIN: not now; -EINTR; -errno
 */
int
rcd_rs_wait(struct rcd_rs *rs, bool (*until)(const struct rcd_rs *), int timeout_ms);

/** Wait for a connection that is being made. @return 0; -ENOTCONN; -errno of its end */
int
rcd_rs_wait_connected(struct rcd_rs *rs, bool nonblock);

/** Milliseconds that never go backwards. */
int64_t
rcd_rs_now_ms(void);

/** Milliseconds until then; 0: it is past. */
int
rcd_rs_left_ms(int64_t end_ms);

/** How long to sleep at a time: not for long where there is no bell (less than 0). */
int
rcd_rs_nap_ms(int bell, int timeout_ms);

/* rcd_rs_service.c */

/**
 * Have the service thread look after a socket, or at what has changed. Socket locked, not closed.
 *
 * @param alive_every_ms  between messages that keep it alive; 0: none
 * @return 0 or -errno: there is no thread
 */
int
rcd_rs_service_add(struct rcd_rs *rs, int64_t alive_every_ms);

/** When this returns, it does not any more. Socket closed, not locked. */
void
rcd_rs_service_remove(struct rcd_rs *rs);

/** In a forked child, which has no such thread. */
void
rcd_rs_service_forget(void);

/* rcd_rs_keep.c: socket locked. */

/** As options are when nobody has set them. */
void
rcd_rs_keep_init(struct rcd_rs_keep *keep);

/** After how many seconds: as set, or the system's. */
uint32_t
rcd_rs_keep_idle_s(const struct rcd_rs_keep *keep);

/** @return 0; -ENOPROTOOPT: it is another option; -EINVAL; -errno */
int
rcd_rs_keep_set(struct rcd_rs *rs, int level, int option, int val);

/** Do as the options say. @return 0 or -errno */
int
rcd_rs_keep_begin(struct rcd_rs *rs);

/* rcd_rs_send.c */

/** Tell the peer of mappings that it has not been told of. send_lock held, socket locked. */
int
rcd_rs_tell_mappings(struct rcd_rs *rs, bool nonblock);

/**
 * Put bytes where requests are sent from. send_lock held, so that nobody else takes the place.
 *
 * @param sges  set: where they are, in one piece or two
 * @return how many pieces
 */
int
rcd_rs_stage(struct rcd_rs *rs, struct ibv_sge sges[2], uint32_t len);

/**
 * Post what was staged: it holds its place in the buffer, unless the request has the bytes.
 *
 * @param message  as for rcd_rs_post_write()
 * @return 0; -errno: the socket has failed
 */
int
rcd_rs_post_staged(struct rcd_rs *rs, struct ibv_sge sges[2], int count, uint64_t addr,
	uint32_t key, uint32_t message);

#endif /* RCD_RS_H */
