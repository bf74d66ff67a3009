/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Datagrams of rsockets, on the wire as rdma-core has them (its rsocket.c is their description).
 *
 *   rcd_ds_addr.c    addresses, and the two headers
 *   rcd_ds_socket.c  binding, connecting, names, options, ends
 *   rcd_ds_qp.c      a UD queue pair with its buffers for each local address
 *   rcd_ds_dest.c    destinations: which queue pair a peer has
 *   rcd_ds_udp.c     the UDP socket by which peers find that out
 *   rcd_ds_send.c, rcd_ds_recv.c
 *
 * A datagram goes as a UD SEND that begins with the sender's address. As long as the peer's queue
 * pair is not known it goes by UDP, behind a header with the number of one's own; who gets it
 * answers with its own. Those UDP sockets are the kernel's. Addresses that the engine alone has are
 * unknown there: of two such on one machine the datagrams go by addresses of 127.0.0.0/8 that
 * follow from them, and the header says which they are.
 *
 * Who sends is hostile by assumption. A UD header must name the address that the packet's own IP
 * header has; a UDP header changes nothing but the queue pair of the address that it came from, and
 * costs one of a limited number of destinations. From 127.0.0.0/8 any program of the machine may
 * send: that speaks to addresses of the engine alone, and for such, never for one of the kernel's.
 * Queues and destinations are limited; what comes when they are full is lost, as datagrams are.
 */
#ifndef RCD_DS_H
#define RCD_DS_H

#include <netinet/in.h>

#include "rcd_rs.h"

#define RCD_DS_BUFFER      2048 /**< header and data of a datagram; rdma-core's, too */
#define RCD_DS_GRH         40
#define RCD_DS_HEADER4     8
#define RCD_DS_HEADER_MAX  24
#define RCD_DS_UDP_MAX     28
#define RCD_DS_QPS_MOST    16   /**< local addresses of a socket */
#define RCD_DS_DESTS_MOST  1024 /**< destinations of a socket */
#define RCD_DS_BUCKETS     256
#define RCD_DS_EARLY_MOST  64 /**< datagrams that came by UDP, and wait */
#define RCD_DS_UDP_AT_ONCE 64 /**< messages taken from a UDP socket in a turn */

/** Of a message by UDP. */
enum rcd_ds_op {
	RCD_DS_DATA = 0,    /**< a datagram follows, and an answer is wanted */
	RCD_DS_CONTROL = 7, /**< this is the answer */
};

/** An address: IPv4 is mapped into IPv6, as in a GID. */
struct rcd_ds_addr {
	uint8_t ip[16];
	uint16_t port;  /**< network byte order */
	uint32_t scope; /**< of a link-local address; 0 */
};

struct rcd_ds_qp;

/** A datagram that has come. */
struct rcd_ds_message {
	STAILQ_ENTRY(rcd_ds_message) link;
	struct rcd_ds_qp *qp; /**< whose buffer has it; NULL: it came by UDP, and is freed */
	struct rcd_ds_addr from;
	const uint8_t *data;
	uint32_t len;
};

/** What a local address sends and receives by. */
struct rcd_ds_qp {
	LIST_ENTRY(rcd_ds_qp) link;
	struct rdma_cm_id *id;
	struct rcd_ds_addr local;
	bool carried; /**< the kernel does not have the address */
	bool armed;
	uint8_t sgid_index;
	uint32_t most; /**< bytes of a datagram with its header */
	uint32_t inline_bytes;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	uint8_t *recv_buf, *send_buf;
	struct ibv_mr *recv_mr, *send_mr;
	struct rcd_ds_message *messages; /**< one for each receive buffer */
	uint32_t send_at, send_room;
	uint64_t sent, done; /**< requests */
};

/** A peer. */
struct rcd_ds_dest {
	LIST_ENTRY(rcd_ds_dest) link; /**< of its bucket */
	TAILQ_ENTRY(rcd_ds_dest) use; /**< the one not used for longest is first */
	struct rcd_ds_addr addr;
	struct rcd_ds_qp *qp; /**< that leads there; NULL: not known */
	struct ibv_ah *ah;
	uint32_t qpn;       /**< 0: not known */
	uint64_t last_sent; /**< of its queue pair's requests */
	bool pinned;        /**< somebody waits for something of it */
};

/** What a datagram socket has. Of the socket's lock. */
struct rcd_ds {
	int epoll;                /**< of all queue pairs' channels */
	struct rcd_ds_addr local; /**< as bound */
	struct rcd_ds_addr peer;  /**< port 0: not connected */
	LIST_HEAD(, rcd_ds_qp) qps;
	uint32_t qp_count;
	uint32_t send_queue, recv_queue; /**< of each */
	STAILQ_HEAD(, rcd_ds_message) queue;
	uint32_t early;
	LIST_HEAD(, rcd_ds_dest) buckets[RCD_DS_BUCKETS];
	TAILQ_HEAD(, rcd_ds_dest) uses;
	uint32_t dest_count;
	const struct rcd_ds_qp *sending; /**< whose room is waited for; of send_lock */
};

/* rcd_ds_addr.c. Any thread. */

/** Take an application's. @return 0; -EINVAL: too short; -EAFNOSUPPORT */
int
rcd_ds_addr_take(int domain, const struct sockaddr *from, socklen_t len, struct rcd_ds_addr *addr);

/** As a socket of this domain has it. @return its length; 0: such a socket can't have it */
socklen_t
rcd_ds_addr_give(int domain, const struct rcd_ds_addr *addr, struct sockaddr_storage *to);

/** The same address and port. */
bool
rcd_ds_addr_equal(const struct rcd_ds_addr *a, const struct rcd_ds_addr *b);

bool
rcd_ds_addr_is_ipv4(const struct rcd_ds_addr *addr);

/** 0.0.0.0 or ::. */
bool
rcd_ds_addr_is_any(const struct rcd_ds_addr *addr);

bool
rcd_ds_addr_is_loopback(const struct rcd_ds_addr *addr);

/** Whether the kernel does not have it. */
bool
rcd_ds_addr_is_carried(const struct rcd_ds_addr *addr);

/** Of 127.0.0.0/8, with the same port: for an address that the kernel does not have. */
struct rcd_ds_addr
rcd_ds_addr_carrier(const struct rcd_ds_addr *addr);

/** Put an address before data. @param to RCD_DS_HEADER_MAX bytes @return bytes used */
uint32_t
rcd_ds_header_build(uint8_t *to, const struct rcd_ds_addr *from);

/** @return bytes of the header; 0: it makes no sense */
uint32_t
rcd_ds_header_parse(const uint8_t *bytes, size_t len, struct rcd_ds_addr *from);

/** A header of UDP. @param to RCD_DS_UDP_MAX bytes @return bytes used */
uint32_t
rcd_ds_udp_build(uint8_t *to, enum rcd_ds_op op, uint32_t qpn, const struct rcd_ds_addr *from);

/** @param from  set, but for its port @return bytes of the header; 0: it makes no sense */
uint32_t
rcd_ds_udp_parse(const uint8_t *bytes, size_t len, enum rcd_ds_op *op, uint32_t *qpn,
	struct rcd_ds_addr *from);

/* rcd_ds_socket.c: socket locked, but for making and freeing one. */

/** Make what is the datagrams' of a new socket. @param udp becomes its own @return 0 or -errno */
int
rcd_ds_create(struct rcd_rs *rs, int udp);

/** Free what is the datagrams' of one, with its descriptors. */
void
rcd_ds_destroy(struct rcd_rs *rs);

/** Close its descriptors alone: in a forked child, which keeps its parent's port otherwise. */
void
rcd_ds_forget(struct rcd_rs *rs);

/** It has no number any more: wait until all was sent. */
void
rcd_ds_close(struct rcd_rs *rs);

/** @return 0 or -errno */
int
rcd_ds_bind(struct rcd_rs *rs, const struct sockaddr *addr, socklen_t len);

/** Bind it to any address, unless it is bound. @return 0 or -errno */
int
rcd_ds_open(struct rcd_rs *rs);

/** Have a peer; with AF_UNSPEC none any more. send_lock held. @return 0 or -errno */
int
rcd_ds_connect(struct rcd_rs *rs, const struct sockaddr *addr, socklen_t len);

/** Own name, or that of the peer. @return 0; -ENOTCONN */
int
rcd_ds_name(struct rcd_rs *rs, bool peer, struct sockaddr_storage *to);

/** As setsockopt() and getsockopt(), but for SOL_RDMA. @return 0 or -errno */
int
rcd_ds_set_option(struct rcd_rs *rs, int level, int option, const void *val, socklen_t len);
int
rcd_ds_get_option(struct rcd_rs *rs, int level, int option, void *val, socklen_t *len);

/** What poll() would say. */
short
rcd_ds_revents(const struct rcd_rs *rs, short events);

/* rcd_ds_qp.c: socket locked. */

/** The queue pair of a local address, made if need be. @return 0 or -errno */
int
rcd_ds_qp_get(struct rcd_rs *rs, const struct rcd_ds_addr *local, struct rcd_ds_qp **qp);

/** That of an address that stands for one of the engine's alone. @return 0 or -errno */
int
rcd_ds_qp_get_carried(struct rcd_rs *rs, const struct rcd_ds_addr *carrier, struct rcd_ds_qp **qp);

/** Free it; nobody uses it any more. */
void
rcd_ds_qp_free(struct rcd_ds_qp *qp);

/** Take completions. @return whether anything has changed */
bool
rcd_ds_progress(struct rcd_rs *rs);

/** Have the engine tell of completions. */
void
rcd_ds_arm(struct rcd_rs *rs);

/** Take what the engine told. */
void
rcd_ds_disarm(struct rcd_rs *rs);

/** The application has a datagram: its place is free. */
void
rcd_ds_release(struct rcd_rs *rs, struct rcd_ds_message *message);

/** Whether a socket is to receive what this sender sends: a connected one has one sender. */
bool
rcd_ds_is_wanted(const struct rcd_ds *ds, const struct rcd_ds_addr *from);

/* rcd_ds_dest.c: socket locked. */

/** @return NULL: there is none */
struct rcd_ds_dest *
rcd_ds_dest_find(struct rcd_ds *ds, const struct rcd_ds_addr *addr);

/** Find or make it. @return NULL: there are too many, all in use, or no memory */
struct rcd_ds_dest *
rcd_ds_dest_get(struct rcd_ds *ds, const struct rcd_ds_addr *addr);

/**
 * Find out by which queue pair one sends there. Pinned: the socket's lock is given back meanwhile.
 *
 * @return 0; -ENETUNREACH, -EHOSTUNREACH; -errno
 */
int
rcd_ds_dest_route(struct rcd_rs *rs, struct rcd_ds_dest *dest);

/** Make its address handle, likewise. @return 0 or -errno */
int
rcd_ds_dest_handle(struct rcd_rs *rs, struct rcd_ds_dest *dest);

/** Free all. */
void
rcd_ds_dests_free(struct rcd_ds *ds);

/* rcd_ds_udp.c: socket locked, but for the first. */

/** Take what has come. The service thread alone. */
void
rcd_ds_udp_take(struct rcd_rs *rs);

/** Send to a destination with a queue pair. @return 0 or -errno */
int
rcd_ds_udp_send(struct rcd_rs *rs, const struct rcd_ds_dest *dest, enum rcd_ds_op op,
	const void *data, size_t len);

/** Have the kernel tell to which address something has come. @return 0 or -errno */
int
rcd_ds_udp_init(int udp, int domain);

/* rcd_ds_send.c: send_lock held, socket locked. */

/** Send one. @param to NULL: to the peer @return its bytes; -errno */
ssize_t
rcd_ds_send(struct rcd_rs *rs, const struct iovec *iov, int count, const struct sockaddr *to,
	socklen_t to_len, bool nonblock);

/* rcd_ds_recv.c: recv_lock held, socket locked. */

/** Receive one. @param msg NULL; gets the sender's name, and flags @return bytes; -errno */
ssize_t
rcd_ds_recv(struct rcd_rs *rs, const struct iovec *iov, int count, int flags, bool nonblock,
	struct msghdr *msg);

#endif /* RCD_DS_H */
