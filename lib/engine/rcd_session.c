/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sessions: from the accepted connection to its end. Their segment, their tables of objects, the
 * way of a request in and of its reply out.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <numa.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_closer.h"
#include "rcd_cm_host.h"
#include "rcd_guard.h"
#include "rcd_hcq.h"
#include "rcd_ushare.h"
#include "rcd_host.h"

#define MESSAGES_AT_ONCE 16 /**< of one session before the next has its turn */

/** What the engine holds for a connection, and for an open context besides; heap included. */
#define CONNECTION_DESCRIPTORS 1
#define CONTEXT_DESCRIPTORS    4
#define CONTEXT_MAPPINGS       24

/** Kernel memory for events that wait in a stream: a client may have thousands of streams. */
#define STREAM_BYTES (16 << 10)

void *
rcd_session_zalloc(const struct rcd_session *session, size_t bytes)
{
	void *mem;

	if (numa_available() >= 0 && numa_max_node() > 0) {
		numa_set_preferred(session->lcore->socket_id);
		mem = aligned_alloc(RCD_CACHE_LINE, (bytes + 63) & ~(size_t)63);
		if (mem != NULL)
			memset(mem, 0, bytes);
		numa_set_localalloc();
		return mem;
	}
	mem = aligned_alloc(RCD_CACHE_LINE, (bytes + 63) & ~(size_t)63);
	if (mem != NULL)
		memset(mem, 0, bytes);
	return mem;
}

static void
add_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	rcd_host_session_add(lcore, arg);
}

/* The lcore with the fewest sessions among those that have a queue of the device. */
static struct rcd_lcore *
choose_lcore(struct rcd_engine *engine, const struct rcd_dev *dev)
{
	struct rcd_lcore *best = engine->lcores[0];

	for (uint32_t i = 1; i < engine->lcore_count && i < dev->queues; i++)
		if (engine->lcores[i]->session_count < best->session_count)
			best = engine->lcores[i];
	return best;
}

static unsigned int
log2_up(uint32_t val)
{
	unsigned int log2 = 1;

	while (log2 < 20 && (UINT32_C(1) << log2) < val)
		log2++;
	return log2;
}

/*
 * The segment's descriptor, the wake-up's and the event stream's; the segment's mapping, and the
 * heap's for the tables.
 */
static int
charge_context(struct rcd_session *session)
{
	struct rcd_quota_entry *quota = &session->quota;
	int err = rcd_quota_charge(quota, RCD_RESOURCE_DESCRIPTORS, CONTEXT_DESCRIPTORS);

	if (err != 0)
		return err;
	err = rcd_quota_charge(quota, RCD_RESOURCE_MAPPINGS, CONTEXT_MAPPINGS);
	if (err != 0)
		rcd_quota_uncharge(quota, RCD_RESOURCE_DESCRIPTORS, CONTEXT_DESCRIPTORS);
	return err;
}

static void
uncharge_context(struct rcd_session *session)
{
	rcd_quota_uncharge(&session->quota, RCD_RESOURCE_DESCRIPTORS, CONTEXT_DESCRIPTORS);
	rcd_quota_uncharge(&session->quota, RCD_RESOURCE_MAPPINGS, CONTEXT_MAPPINGS);
}

int
rcd_session_open(struct rcd_session *session, struct rcd_dev *dev)
{
	struct rcd_engine *engine = session->engine;
	const struct rcd_quota *quota = &engine->conf.quota;
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	uint64_t secret;
	int err;

	session->lcore = choose_lcore(engine, dev);
	err = charge_context(session);
	if (err != 0)
		return err;
	err = rcd_session_mem_make(session);
	/* Without a segment it may try again; with one it is over, and all goes when it ends. */
	if (err != 0 && session->shm == NULL)
		uncharge_context(session);
	if (err != 0)
		return err;
	if (getentropy(&secret, sizeof(secret)) != 0)
		return -errno;
	session->mrs = rcd_mr_table_create(log2_up((uint32_t)quota->mrs), secret);
	session->ahs = rcd_ah_table_create((uint32_t)quota->ahs);
	session->ah_next = calloc((uint32_t)quota->ahs, sizeof(session->ah_next[0]));
	session->qp_places = quota->qps < RCD_DB_BITS ? (uint32_t)quota->qps : RCD_DB_BITS;
	session->qps = calloc(session->qp_places, sizeof(session->qps[0]));
	if (session->mrs == NULL || session->ahs == NULL || session->ah_next == NULL ||
		session->qps == NULL || rcd_table_init(&session->pds, (uint32_t)quota->pds) != 0 ||
		rcd_table_init(&session->channels, (uint32_t)quota->cqs) != 0 ||
		rcd_table_init(&session->cqs, (uint32_t)quota->cqs) != 0 ||
		rcd_table_init(&session->srqs, (uint32_t)quota->srqs) != 0 ||
		rcd_table_init(&session->hqps, session->qp_places) != 0 ||
		rcd_session_mem_open(session) != 0)
		return -ENOMEM;
	session->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (session->wake_fd < 0 ||
		epoll_ctl(session->lcore->sleep_fd, EPOLL_CTL_ADD, session->wake_fd, &event) != 0)
		return -errno;
	session->ah_places = (uint32_t)quota->ahs;
	session->dev = dev;
	session->lcore->session_count++;
	rcd_lcore_call(session->lcore, add_on_lcore, session);
	return 0;
}

static void
free_objects(struct rcd_session *session)
{
	for (uint32_t i = 0; i < session->hqps.fresh; i++) {
		struct rcd_hqp *hqp = session->hqps.slots[i];

		if (hqp == NULL)
			continue;
		__atomic_store_n(
			&session->engine->qp_owner[hqp->qpn % RCD_QP_SLOTS], 0, __ATOMIC_RELAXED);
		session->engine->qp_used--;
		free(hqp->resources);
		free(hqp->qp);
		free(hqp);
	}
	for (uint32_t i = 0; i < session->cqs.fresh; i++)
		free(session->cqs.slots[i]);
	for (uint32_t i = 0; i < session->srqs.fresh; i++)
		free(session->srqs.slots[i]);
	for (uint32_t i = 0; i < session->pds.fresh; i++)
		free(session->pds.slots[i]);
	for (uint32_t i = 0; i < session->channels.fresh; i++) {
		struct rcd_channel *channel = session->channels.slots[i];

		if (channel != NULL)
			close(channel->sock);
		free(channel);
	}
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void
rcd_session_end(struct rcd_session *session)
{
	struct rcd_engine *engine = session->engine;

	rcd_guest_end_all(session);
	rcd_cm_host_end(session);
	/* The client has it as well: closed alone, it would stay in the set. */
	if (session->wake_fd >= 0)
		epoll_ctl(session->lcore->sleep_fd, EPOLL_CTL_DEL, session->wake_fd, NULL);
	rcd_neigh_disown(session);
	if (session->dev != NULL) {
		rcd_verbs_end(session);
		session->lcore->session_count--;
	}
	if (session->shm != NULL)
		rcd_session_mem_close(session);
	/* What it did wrong stays known. */
	for (int i = 0; i < RCD_COUNTER_COUNT; i++)
		rcd_counter_add(&engine->counters, (enum rcd_counter)i,
			rcd_counter_get(&session->counters, (enum rcd_counter)i));
	memset(&session->counters, 0, sizeof(session->counters));
	rcd_hcq_end(session);
	free_objects(session);
	rcd_table_fini(&session->pds);
	rcd_table_fini(&session->channels);
	rcd_table_fini(&session->cqs);
	rcd_table_fini(&session->srqs);
	rcd_table_fini(&session->hqps);
	rcd_mr_table_destroy(session->mrs);
	rcd_ah_table_destroy(session->ahs);
	free(session->ah_next);
	free(session->qps);
	rcd_session_mem_end(session);
	free(session->ucopy);
	close_fd(&session->wake_fd);
	close_fd(&session->events);
	session->dev = NULL;
	session->mrs = NULL;
	session->ahs = NULL;
	session->ah_next = NULL;
	session->ah_count = session->ah_places = 0;
	session->qps = NULL;
	session->ucopy = NULL;
	session->ended = true;
	/* The client learns of it, and we of its leaving. */
	shutdown(session->sock, SHUT_RDWR);
}

/* A request is over, however it ended: what was begun for it and not taken goes. */
static void
settle(struct rcd_session *session)
{
	struct rcd_session *host = session->host != NULL ? session->host : session;

	rcd_segment_settle(&host->segment, session->serial);
	rcd_ushare_settle(&host->umem, session->serial);
	rcd_hcq_settle(host, session->serial);
}

void
rcd_session_close(struct rcd_session *session)
{
	if (session->host != NULL || session->shm != NULL)
		settle(session);
	if (rcd_guest_leave(session))
		return;
	LIST_REMOVE(session, link);
	session->engine->client_count--;
	rcd_session_park(session, false);
	/* The client has left. One that was ended reads what its queues still tell. */
	session->pages_go = true;
	rcd_session_end(session);
	rcd_quota_leave(&session->quota);
	rcd_closer_take_sock(session->engine->closer, session->sock, session->uid);
	free(session);
}

int
rcd_session_stream(struct rcd_session *session, int ends[2])
{
	int err = rcd_quota_charge(&session->quota, RCD_RESOURCE_DESCRIPTORS, 1);

	if (err != 0)
		return err;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		err = -errno;
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_DESCRIPTORS, 1);
		return err;
	}
	/* The client sends nothing: descriptors would be closed with our end. */
	shutdown(ends[1], SHUT_RD);
	/* Some forty events (the kernel doubles it); others wait with us, in order. */
	setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &(int){ STREAM_BYTES }, sizeof(int));
	return 0;
}

void
rcd_session_stream_close(struct rcd_session *session, int sock)
{
	close(sock);
	rcd_quota_uncharge(&session->quota, RCD_RESOURCE_DESCRIPTORS, 1);
}

struct rcd_session *
rcd_session_find(struct rcd_engine *engine, uint32_t serial)
{
	struct rcd_session *session;

	LIST_FOREACH(session, &engine->sessions, link)
		if (session->serial == serial)
			return session;
	return NULL;
}

void
rcd_session_event(struct rcd_session *session, uint32_t type, uint32_t of, uint64_t cookie)
{
	struct rcd_ctrl_event event = { .type = type, .of = of, .cookie = cookie };

	if (session->events >= 0 &&
		rcd_ctrl_send(session->events, &event, sizeof(event), NULL, MSG_DONTWAIT) != 0)
		rcd_counter_add(&session->engine->counters, RCD_COUNTER_EVENTS_LOST, 1);
}

static void
refuse(struct rcd_engine *engine, int sock)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	struct rcd_ctrl_hdr refusal = { .op = RCD_CTRL_HELLO, .status = -EUSERS };

	rcd_ctrl_send(sock, &refusal, sizeof(refusal), NULL, MSG_DONTWAIT);
	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &(socklen_t){ sizeof(cred) });
	rcd_closer_take_sock(engine->closer, sock, cred.uid);
}

/* A connection of this user is counted. @return 0, or -errno when it is one too many */
static int
charge_connection(struct rcd_engine *engine, struct rcd_session *session, uid_t uid)
{
	int err = rcd_quota_join(&engine->book, &session->quota, uid);

	/* Who leaves too much to be closed gets no more connections to leave it in. */
	if (err == 0 && !rcd_closer_may_stay(engine->closer, uid))
		err = -EUSERS;
	if (err == 0)
		err = rcd_quota_charge(&session->quota, RCD_RESOURCE_CLIENTS, 1);
	if (err == 0)
		err = rcd_quota_charge(
			&session->quota, RCD_RESOURCE_DESCRIPTORS, CONNECTION_DESCRIPTORS);
	if (err != 0)
		rcd_quota_leave(&session->quota);
	return err;
}

int
rcd_engine_adopt(struct rcd_engine *engine, int sock)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
	struct ucred cred;
	socklen_t cred_len = sizeof(cred);
	struct rcd_session *session =
		engine->client_count < engine->conf.clients ? calloc(1, sizeof(*session)) : NULL;

	rcd_closer_expect(engine->closer);
	if (session == NULL || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) != 0 ||
		charge_connection(engine, session, cred.uid) != 0) {
		free(session);
		refuse(engine, sock);
		return -EUSERS;
	}
	session->engine = engine;
	session->sock = sock;
	session->serial = engine->next_serial++;
	session->pid = cred.pid;
	session->uid = cred.uid;
	session->gid = cred.gid;
	session->events = session->segment.fd = session->segment.huge_fd = session->wake_fd = -1;
	rcd_cred_read(session);
	LIST_INSERT_HEAD(&engine->sessions, session, link);
	engine->client_count++;
	event.data.u64 = session->serial;
	epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, sock, &event);
	return 0;
}

void
rcd_session_accept(struct rcd_engine *engine)
{
	int sock;

	/* It could not be opened again last time. */
	if (engine->spare_fd < 0)
		engine->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sock = accept4(engine->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	/*
	 * Quotas keep clients from this; whatever did it, who waits is told, and the listening
	 * socket does not stay ready for ever.
	 */
	if (sock < 0 && (errno == EMFILE || errno == ENFILE) && engine->spare_fd >= 0) {
		close(engine->spare_fd);
		sock = accept4(engine->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (sock >= 0) {
			rcd_closer_expect(engine->closer);
			refuse(engine, sock);
		}
		engine->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return;
	}
	if (sock >= 0)
		rcd_engine_adopt(engine, sock);
}

/* @return false when the client takes no replies: it is to go */
static bool
reply(struct rcd_session *session, const struct rcd_ctrl_msg *req, int status,
	struct rcd_reply *rep)
{
	size_t len = sizeof(rep->msg.hdr);
	int err;

	rep->msg.hdr = (struct rcd_ctrl_hdr){
		.op = req->hdr.op, .number = req->hdr.number, .status = status
	};
	/* A refused greeting carries the versions. */
	if (status == 0 || (status == -EPROTONOSUPPORT && req->hdr.op == RCD_CTRL_HELLO))
		len = rcd_ctrl_rep_len(req->hdr.op);
	err = rcd_ctrl_send(
		session->sock, &rep->msg, len, status == 0 ? &rep->fds : NULL, MSG_DONTWAIT);
	for (unsigned int i = 0; i < rep->fds.count; i++)
		if (!(rep->keep & (1u << i)))
			close(rep->fds.fds[i]);
	return err == 0;
}

static void
watch(struct rcd_session *session, uint32_t events)
{
	struct epoll_event event = { .events = events | EPOLLRDHUP, .data.u64 = session->serial };

	epoll_ctl(session->engine->epoll_fd, EPOLL_CTL_MOD, session->sock, &event);
}

void
rcd_session_park(struct rcd_session *session, bool parked)
{
	struct rcd_engine *engine = session->engine;

	if (session->parked == parked)
		return;
	session->parked = parked;
	if (parked) {
		TAILQ_INSERT_TAIL(&engine->parked, session, parked_link);
		engine->parked_count++;
		engine->unfinished_count += session->unfinished;
	} else {
		TAILQ_REMOVE(&engine->parked, session, parked_link);
		engine->parked_count--;
		engine->unfinished_count -= session->unfinished;
		session->unfinished = false;
	}
}

/* @return false when the session is to go */
static bool
serve_one(struct rcd_session *session, const struct rcd_ctrl_msg *msg, struct rcd_ctrl_fds *fds)
{
	struct rcd_reply rep = { .keep = 0 };
	int status = rcd_serve(session, msg, fds, &rep);

	session->engine->work++;
	if (status != -EAGAIN && status != -EINPROGRESS) {
		settle(session);
		return reply(session, msg, status, &rep);
	}
	session->parked_until_ns = rcd_clock_ns() + RCD_PARKED_NS;
	session->parked_msg = *msg;
	session->unfinished = status == -EINPROGRESS;
	rcd_session_park(session, true);
	watch(session, 0);
	return true;
}

static void
drop_fd(void *arg, int fd)
{
	struct rcd_session *session = arg;

	rcd_closer_take(session->engine->closer, fd, session->uid);
}

void
rcd_session_ready(struct rcd_session *session)
{
	uint32_t end = session->engine->work + RCD_ROUND_SLICE;
	struct rcd_ctrl_drop drop = { .fn = drop_fd, .arg = session };

	for (int i = 0; i < MESSAGES_AT_ONCE && !session->parked && session->engine->work < end;
		i++) {
		struct rcd_ctrl_msg msg;
		struct rcd_ctrl_fds fds;
		long len;
		bool stay;
		int err = rcd_closer_admit(session->engine->closer, session->sock, session->uid);

		if (err == -EBUSY)
			rcd_engine_read_later(session);
		if (err == -EAGAIN || err == -EBUSY)
			return;
		/* Who leaves more to be closed than is closed is to go, its messages unread. */
		if (err != 0) {
			rcd_session_close(session);
			return;
		}
		len = rcd_ctrl_recv_drop(session->sock, &msg, sizeof(msg), &fds, &drop);

		if (len == -EAGAIN)
			return;
		if (len <= 0 && len != -EMSGSIZE) {
			rcd_session_close(session);
			return;
		}
		if (len < 0 || rcd_ctrl_req_check(&msg, (size_t)len, fds.count) != 0) {
			struct rcd_reply rep = { .keep = 0 };

			if (len < (long)sizeof(msg.hdr))
				memset(&msg.hdr, 0, sizeof(msg.hdr));
			rcd_counter_add(&session->counters, RCD_COUNTER_CLIENT_BAD_MESSAGE, 1);
			stay = reply(session, &msg, -EPROTO, &rep);
		} else {
			stay = serve_one(session, &msg, &fds);
		}
		for (unsigned int k = 0; k < fds.count; k++)
			if (fds.fds[k] >= 0)
				drop_fd(session, fds.fds[k]);
		if (!stay) {
			rcd_session_close(session);
			return;
		}
	}
}

/* Serve the request of the first parked session again. */
static void
retry(struct rcd_session *session)
{
	struct rcd_ctrl_fds none = { .fds = { -1, -1, -1, -1 }, .count = 0 };
	struct rcd_reply rep = { .keep = 0 };
	int status;

	rcd_session_park(session, false);
	session->engine->work++;
	status = rcd_serve(session, &session->parked_msg, &none, &rep);
	if (status == -EINPROGRESS ||
		(status == -EAGAIN && rcd_clock_ns() < session->parked_until_ns)) {
		session->unfinished = status == -EINPROGRESS;
		rcd_session_park(session, true);
		return;
	}
	settle(session);
	if (reply(session, &session->parked_msg, status == -EAGAIN ? -ETIMEDOUT : status, &rep))
		watch(session, EPOLLIN);
	else
		rcd_session_close(session);
}

/* Each parked session of one kind once, so many at most. */
static void
retry_parked(struct rcd_engine *engine, bool unfinished, uint32_t most)
{
	/* Closing one may free any other: each turn begins with who is first then. */
	for (uint32_t left = engine->parked_count; left > 0 && most > 0 && engine->parked_count > 0;
		left--) {
		struct rcd_session *session = TAILQ_FIRST(&engine->parked);

		if (session->unfinished == unfinished) {
			retry(session);
			most--;
			continue;
		}
		TAILQ_REMOVE(&engine->parked, session, parked_link);
		TAILQ_INSERT_TAIL(&engine->parked, session, parked_link);
	}
}

void
rcd_session_unpark(struct rcd_engine *engine)
{
	retry_parked(engine, false, UINT32_MAX);
}

void
rcd_session_go_on(struct rcd_engine *engine)
{
	if (engine->unfinished_count > 0)
		retry_parked(engine, true, RCD_ROUND_SLICES);
}
