/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine as a whole: its making, the control thread's event loop, listening, its end.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "rcd_capacity.h"
#include "rcd_closer.h"
#include "rcd_cm_host.h"
#include "rcd_cma.h"
#include "rcd_gsi.h"
#include "rcd_guard.h"
#include "rcd_kaddr.h"
#include "rcd_poll.h"

#define NOTES          4096
#define TICK_NS        20000000u /**< between looks at links, neighbours and faults */
#define EVENTS_AT_ONCE 32
#define NOTES_AT_ONCE  1024

/** Room for the largest frame: headers, a payload of 4096, padding and ICRC. */
#define MBUF_ROOM  (RTE_PKTMBUF_HEADROOM + 4480)
#define MBUF_CACHE 256

/* What an epoll event is of: the high half of its data; the low half is a session's serial. */
enum source {
	SOURCE_SESSION,
	SOURCE_LISTEN,
	SOURCE_NOTES,
	SOURCE_NETLINK,
};

RTE_LOG_REGISTER(rcd_logtype, lib.rocade.engine, NOTICE);

void
rcd_engine_conf_init(struct rcd_engine_conf *conf)
{
	*conf = (struct rcd_engine_conf){
		.socket = RCD_CTRL_SOCKET,
		.socket_mode = 0660,
		.socket_gid = -1,
		.admin_uid = -1,
		.admin_gid = -1,
		.clients = 1024,
		.idle = RCD_IDLE_AUTO,
	};
	rcd_quota_init(&conf->quota);
}

static int
watch(struct rcd_engine *engine, int fd, enum source source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)source << 32 };

	return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

/* Whether an engine answers at this address. */
static bool
in_use(const struct sockaddr_un *addr)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool used = sock >= 0 && connect(sock, (const struct sockaddr *)addr, sizeof(*addr)) == 0;

	if (sock >= 0)
		close(sock);
	return used;
}

static int
engine_listen(struct rcd_engine *engine, char *error, size_t error_len)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = engine->conf.socket;
	mode_t mask;
	int err = 0;

	if (path[0] == '\0')
		return 0;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (in_use(&addr)) {
		snprintf(error, error_len, "another engine answers on %s", path);
		return -EADDRINUSE;
	}
	/* What a killed engine left behind. */
	unlink(path);
	engine->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mask = umask(0777 & ~engine->conf.socket_mode);
	if (engine->listen_fd < 0 ||
		bind(engine->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
		listen(engine->listen_fd, 1024) != 0)
		err = -errno;
	/* Who has not greeted sends no descriptors; its connection can be closed at once. */
	engine->guarded = rcd_closer_open_to_fds(engine->listen_fd, false);
	umask(mask);
	if (err == 0 && engine->conf.socket_gid >= 0 &&
		chown(path, (uid_t)-1, (gid_t)engine->conf.socket_gid) != 0)
		err = -errno;
	if (err != 0)
		snprintf(error, error_len, "can't listen on %s: %s", path, strerror(-err));
	else
		err = watch(engine, engine->listen_fd, SOURCE_LISTEN);
	return err;
}

static int
make_pool(struct rcd_engine *engine, int socket_id)
{
	uint32_t count = engine->conf.mbufs != 0 ? engine->conf.mbufs : 16383;
	char name[32];

	if (engine->pools[socket_id] != NULL)
		return 0;
	snprintf(name, sizeof(name), "rocade_mbufs_%d", socket_id);
	/* With little memory a smaller pool does too; senders wait for buffers then. */
	for (; count >= 2047 && engine->pools[socket_id] == NULL; count /= 2)
		engine->pools[socket_id] =
			rte_pktmbuf_pool_create(name, count, MBUF_CACHE, 0, MBUF_ROOM, socket_id);
	return engine->pools[socket_id] != NULL ? 0 : -ENOMEM;
}

static int
make_lcores(struct rcd_engine *engine)
{
	static const struct rcd_lcore_ops ops = { rcd_gsi_rx, rcd_neigh_wanted };
	unsigned int lcore_id;
	int err;

	RTE_LCORE_FOREACH_WORKER(lcore_id) {
		if (engine->lcore_count == RCD_LCORES_MAX ||
			(engine->conf.lcores != 0 && engine->lcore_count == engine->conf.lcores))
			break;
		err = make_pool(engine, (int)rte_lcore_to_socket_id(lcore_id));
		if (err == 0)
			err = rcd_lcore_create(engine, engine->lcore_count++, lcore_id, &ops);
		if (err != 0)
			return err;
	}
	if (engine->lcore_count > 0)
		return 0;
	/* Nobody to poll but the program itself. */
	engine->lcore_count = 1;
	err = make_pool(engine, (int)rte_lcore_to_socket_id(rte_get_main_lcore()));
	return err != 0 ? err : rcd_lcore_create(engine, 0, rte_get_main_lcore(), &ops);
}

/* Applications that poll want cores too: two for each lcore, and one for everything else. */
static bool
cores_scarce(const struct rcd_engine *engine)
{
	return sysconf(_SC_NPROCESSORS_ONLN) < 2 * (long)engine->lcore_count + 1;
}

static int
setup(struct rcd_engine *engine, char *error, size_t error_len)
{
	struct rcd_quota total;
	int err = rcd_guard_init();

	if (err != 0) {
		snprintf(error, error_len, "no addresses for client memory: %s", strerror(-err));
		return err;
	}
	if (getentropy(engine->secret, sizeof(engine->secret)) != 0 ||
		getentropy(&engine->generation, sizeof(engine->generation)) != 0)
		return -errno;
	engine->qp_owner = calloc(RCD_QP_SLOTS, sizeof(engine->qp_owner[0]));
	engine->qp_high = calloc(RCD_QP_SLOTS, sizeof(engine->qp_high[0]));
	engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	engine->note_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	engine->notes = rte_ring_create_elem(
		"rocade_notes", sizeof(struct rcd_note), NOTES, SOCKET_ID_ANY, RING_F_SC_DEQ);
	engine->neighs = rcd_neigh_create(engine);
	engine->closer = rcd_closer_create(engine->epoll_fd, &engine->book);
	if (engine->qp_owner == NULL || engine->qp_high == NULL || engine->epoll_fd < 0 ||
		engine->note_fd < 0 || engine->notes == NULL || engine->neighs == NULL ||
		engine->closer == NULL) {
		snprintf(error, error_len, "not enough memory for the engine");
		return -ENOMEM;
	}
	engine->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (rcd_cm_host_create(engine) != 0) {
		snprintf(error, error_len, "not enough memory for connection management");
		return -ENOMEM;
	}
	err = make_lcores(engine);
	if (err != 0) {
		snprintf(error, error_len,
			"not enough memory for buffers; give EAL more (-m), or hugepages");
		return err;
	}
	engine->yield = cores_scarce(engine);
	if (engine->conf.idle == RCD_IDLE_AUTO)
		engine->conf.idle = engine->yield ? RCD_IDLE_YIELD : RCD_IDLE_POLL;
	watch(engine, engine->note_fd, SOURCE_NOTES);
	err = rcd_netlink_open(engine);
	if (err == 0)
		watch(engine, rcd_netlink_fd(engine), SOURCE_NETLINK);
	else
		RCD_LOG(WARNING, "no rtnetlink: kernel netdevs can't be attached");
	err = rcd_kaddr_open(engine);
	if (err != 0)
		return err;
	rcd_capacity_measure(engine->conf.clients, &engine->conf.user_quota, &total);
	rcd_quota_open(&engine->book, &engine->conf.quota, &engine->conf.user_quota, &total);
	return engine_listen(engine, error, error_len);
}

struct rcd_engine *
rcd_engine_create(const struct rcd_engine_conf *conf, char *error, size_t error_len)
{
	struct rcd_engine *engine = calloc(1, sizeof(*engine));

	if (engine == NULL) {
		snprintf(error, error_len, "not enough memory for the engine");
		return NULL;
	}
	engine->conf = *conf;
	engine->creator = geteuid();
	engine->epoll_fd = engine->note_fd = engine->listen_fd = engine->spare_fd = -1;
	engine->next_serial = 1;
	engine->started_ns = rcd_clock_ns();
	LIST_INIT(&engine->sessions);
	TAILQ_INIT(&engine->parked);
	if (setup(engine, error, error_len) != 0) {
		rcd_engine_destroy(engine);
		return NULL;
	}
	rcd_telemetry_init(engine);
	return engine;
}

static void
stop_lcores(struct rcd_engine *engine)
{
	uint64_t one = 1;

	for (uint32_t i = 0; engine->started && i < engine->lcore_count; i++) {
		struct rcd_lcore *lcore = engine->lcores[i];

		if (!lcore->running)
			continue;
		__atomic_store_n(&lcore->stop, true, __ATOMIC_SEQ_CST);
		if (write(lcore->wake_fd, &one, sizeof(one)) < 0) {
			/* Full: it is going to wake up anyway. */
		}
		rte_eal_wait_lcore(lcore->lcore_id);
		lcore->running = false;
	}
}

void
rcd_engine_destroy(struct rcd_engine *engine)
{
	struct rcd_session *session;

	if (engine == NULL)
		return;
	rcd_telemetry_init(NULL);
	if (engine->listen_fd >= 0) {
		unlink(engine->conf.socket);
		close(engine->listen_fd);
	}
	while ((session = LIST_FIRST(&engine->sessions)) != NULL) {
		rcd_guest_event(session, RCD_EVENT_DEVICE_FATAL, RCD_CTRL_EVENT_DEVICE, 0);
		rcd_session_end(session);
		rcd_session_close(session);
	}
	if (engine->lcore_count > 0 && engine->neighs != NULL)
		rcd_dev_del_all(engine);
	stop_lcores(engine);
	for (uint32_t i = 0; i < engine->lcore_count; i++)
		rcd_lcore_destroy(engine->lcores[i]);
	rcd_closer_destroy(engine->closer);
	rcd_cm_host_destroy(engine);
	rcd_kaddr_close(engine);
	rcd_netlink_close(engine);
	rcd_neigh_destroy(engine->neighs);
	for (uint32_t i = 0; i < RTE_MAX_NUMA_NODES; i++)
		rte_mempool_free(engine->pools[i]);
	rte_ring_free(engine->notes);
	if (engine->note_fd >= 0)
		close(engine->note_fd);
	if (engine->epoll_fd >= 0)
		close(engine->epoll_fd);
	if (engine->spare_fd >= 0)
		close(engine->spare_fd);
	rcd_guard_fini();
	free(engine->qp_owner);
	free(engine->qp_high);
	free(engine);
}

int
rcd_engine_launch(struct rcd_engine *engine, uint32_t index, int (*loop)(void *arg), void *arg)
{
	struct rcd_lcore *lcore = engine->lcores[index];
	int err;

	if (lcore->lcore_id == rte_get_main_lcore())
		return -ENOTSUP;
	lcore->running = true;
	err = rte_eal_remote_launch(loop, arg, lcore->lcore_id);
	if (err != 0)
		lcore->running = false;
	else
		engine->started = true;
	return err;
}

int
rcd_engine_start(struct rcd_engine *engine)
{
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < engine->lcore_count; i++)
		err = rcd_engine_launch(engine, i, rcd_poll_main, engine->lcores[i]);
	return err;
}

struct each {
	void (*fn)(void *arg);
	void *arg;
};

static void
run_each(struct rcd_lcore *lcore, void *arg)
{
	const struct each *each = arg;

	(void)lcore;
	each->fn(each->arg);
}

void
rcd_engine_each_lcore(struct rcd_engine *engine, void (*fn)(void *arg), void *arg)
{
	struct each each = { .fn = fn, .arg = arg };

	rcd_lcore_call_all(engine, run_each, &each);
}

static void
take_notes(struct rcd_engine *engine)
{
	struct rcd_note note;
	uint64_t count;
	bool neighbours = false;

	if (read(engine->note_fd, &count, sizeof(count)) < 0) {
		/* Read before: the ring tells. */
	}
	for (uint32_t i = 0; rte_ring_dequeue_elem(engine->notes, &note, sizeof(note)) == 0; i++) {
		switch ((enum rcd_note_kind)note.kind) {
		case RCD_NOTE_EVENT: {
			struct rcd_session *session = rcd_session_find(engine, note.session);

			if (session != NULL)
				rcd_session_event(session, note.type, note.of, note.cookie);
			break;
		}
		case RCD_NOTE_NEIGH:
			if (note.session < RCD_DEVS_MAX && engine->devs[note.session] != NULL)
				neighbours |= rcd_neigh_learn(engine->devs[note.session],
					note.vlan_id, &note.gid, note.mac);
			break;
		case RCD_NOTE_QUERY:
			if (note.session < RCD_DEVS_MAX && engine->devs[note.session] != NULL)
				rcd_cma_queried(engine->cma, engine->devs[note.session]->serial);
			break;
		}
		/* The rest another time: lcores wake only for a ring that was empty. */
		if (i + 1 == NOTES_AT_ONCE) {
			rcd_engine_wake(engine);
			break;
		}
	}
	if (neighbours) {
		rcd_session_unpark(engine);
		rcd_cma_neighbours(engine->cma);
	}
}

/* One that is refused would have to be closed, with the descriptors that it may have brought. */
static bool
may_accept(const struct rcd_engine *engine)
{
	return rcd_closer_is_ready(engine->closer) &&
		(engine->guarded || rcd_closer_may_accept(engine->closer));
}

/* Leave new connections alone, or no longer. */
static void
accept_later(struct rcd_engine *engine, bool later)
{
	struct epoll_event event = { .events = later ? 0 : EPOLLIN,
		.data.u64 = (uint64_t)SOURCE_LISTEN << 32 };

	engine->accept_later = later;
	epoll_ctl(engine->epoll_fd, EPOLL_CTL_MOD, engine->listen_fd, &event);
}

static void
read_later(struct rcd_session *session, bool later)
{
	struct epoll_event event = { .events = EPOLLRDHUP | (later ? 0 : EPOLLIN),
		.data.u64 = session->serial };

	session->read_later = later;
	epoll_ctl(session->engine->epoll_fd, EPOLL_CTL_MOD, session->sock, &event);
}

void
rcd_engine_read_later(struct rcd_session *session)
{
	session->engine->read_later = true;
	read_later(session, true);
}

/* Who waited for the closer looks again. */
static void
read_again(struct rcd_engine *engine)
{
	struct rcd_session *session;

	engine->read_later = false;
	LIST_FOREACH(session, &engine->sessions, link)
		if (session->read_later)
			read_later(session, false);
}

static void
tick(struct rcd_engine *engine)
{
	uint64_t now_ns = rcd_clock_ns();

	if (now_ns < engine->next_tick_ns)
		return;
	engine->next_tick_ns = now_ns + TICK_NS;
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (engine->devs[i] != NULL && !engine->devs[i]->wire_waits)
			rcd_dev_check_link(engine->devs[i]);
	rcd_neigh_tick(engine, now_ns);
	rcd_kaddr_tick(engine, now_ns);
	rcd_follow(engine, now_ns);
	rcd_session_mem_check(engine);
	if (engine->accept_later && may_accept(engine))
		accept_later(engine, false);
	if (engine->read_later)
		read_again(engine);
	rcd_session_unpark(engine);
	rcd_cma_tick(engine->cma, now_ns);
}

static uint64_t
thread_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Clients that ask without end do not have the core of others by way of us. */
static void
rest(struct rcd_engine *engine)
{
	uint64_t rest_ns = rcd_pace_spend(&engine->pace, rcd_clock_ns(), engine->used_ns);
	struct timespec timeout = { .tv_nsec = (long)rest_ns };

	engine->used_ns = 0;
	if (rest_ns == 0)
		return;
	rcd_counter_add(&engine->counters, RCD_COUNTER_CONTROL_RESTS, 1);
	if (nanosleep(&timeout, NULL) != 0) {
		/* A signal: there may be something to do. */
	}
}

void
rcd_engine_step(struct rcd_engine *engine, int timeout_ms)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	uint64_t began_ns;
	int count;

	if (engine->yield && timeout_ms > 0)
		rest(engine);
	began_ns = engine->yield ? thread_ns() : 0;
	if (timeout_ms > (int)(TICK_NS / 1000000) &&
		(engine->client_count > 0 || engine->accept_later ||
			rcd_cma_connections(engine->cma) > 0))
		timeout_ms = TICK_NS / 1000000;
	if (engine->unfinished_count > 0)
		timeout_ms = 0;
	engine->work = 0;
	rcd_closer_reap(engine->closer);
	count = epoll_wait(engine->epoll_fd, events, EVENTS_AT_ONCE, timeout_ms);
	/* First, so that nobody has two turns in a step. */
	rcd_session_go_on(engine);
	for (int i = 0; i < count; i++) {
		uint32_t serial = (uint32_t)events[i].data.u64;
		struct rcd_session *session;

		switch ((enum source)(events[i].data.u64 >> 32)) {
		case SOURCE_SESSION:
			/* It may have ended because of an event before this one. */
			session = rcd_session_find(engine, serial);
			if (session == NULL)
				break;
			if ((events[i].events & EPOLLIN) && !session->parked)
				rcd_session_ready(session);
			else if (events[i].events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR))
				rcd_session_close(session);
			break;
		case SOURCE_LISTEN:
			if (may_accept(engine))
				rcd_session_accept(engine);
			else
				accept_later(engine, true);
			break;
		case SOURCE_NOTES:
			take_notes(engine);
			break;
		case SOURCE_NETLINK:
			rcd_netlink_ready(engine);
			rcd_session_unpark(engine);
			rcd_cma_neighbours(engine->cma);
			break;
		}
	}
	rcd_gsi_take(engine);
	if (engine->follow_soon)
		rcd_follow(engine, rcd_clock_ns());
	tick(engine);
	if (engine->work > engine->longest_work)
		engine->longest_work = engine->work;
	if (engine->yield)
		engine->used_ns += thread_ns() - began_ns;
}

void
rcd_engine_wake(struct rcd_engine *engine)
{
	uint64_t one = 1;

	if (write(engine->note_fd, &one, sizeof(one)) < 0) {
		/* Full: it does not wait. */
	}
}

uint32_t
rcd_engine_lcore_count(const struct rcd_engine *engine)
{
	return engine->lcore_count;
}

struct rcd_lcore *
rcd_engine_lcore(struct rcd_engine *engine, uint32_t index)
{
	return index < engine->lcore_count ? engine->lcores[index] : NULL;
}

bool
rcd_engine_stopping(const struct rcd_engine *engine)
{
	return engine->stopping;
}

uint32_t
rcd_engine_clients(const struct rcd_engine *engine)
{
	return engine->client_count;
}

uint32_t
rcd_engine_qps(const struct rcd_engine *engine)
{
	return engine->qp_used;
}
