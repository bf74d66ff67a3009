/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine as a whole: its making, the control thread's event loop, its end.
 */
#include "rcd_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "rcd_alarm.h"
#include "rcd_capacity.h"
#include "rcd_chores.h"
#include "rcd_clock.h"
#include "rcd_closer.h"
#include "rcd_cm_host.h"
#include "rcd_cma.h"
#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_counter.h"
#include "rcd_ctrl.h"
#include "rcd_dev.h"
#include "rcd_engine_dev.h"
#include "rcd_engine_priv.h"
#include "rcd_gsi.h"
#include "rcd_guard.h"
#include "rcd_guest.h"
#include "rcd_hop.h"
#include "rcd_hqp.h"
#include "rcd_idle.h"
#include "rcd_inbox.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_lport.h"
#include "rcd_neigh.h"
#include "rcd_note.h"
#include "rcd_pace.h"
#include "rcd_poll.h"
#include "rcd_ports.h"
#include "rcd_quota.h"
#include "rcd_stage.h"
#include "rcd_telemetry.h"
#include "rcd_thread.h"
#include "rcd_xqp.h"
#include "rcd_wr.h"

#define EVENTS_AT_ONCE  32
#define NOTES_AT_ONCE   1024
#define ALARMS_AT_ONCE  256
#define WAITERS_AT_ONCE 64 /**< each may be a request that is served */

/* One of a process: it has a handler of signals, and names in EAL. */
static bool engine_there;

static int
engine_watch(struct rcd_engine *engine, int fd, enum rcd_source source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)source << 32 };

	return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static void
engine_rx_gsi(void *arg, struct rcd_lcore *lcore, const struct rcd_lport *lport,
	const struct rcd_pkt *pkt, uint16_t vlan_id)
{
	const struct rcd_engine *engine = arg;

	rcd_gsi_rx(engine->cm.gsi, lcore, lport, pkt, vlan_id);
}

static bool
engine_wants_neighbour(
	void *arg, const struct rcd_lport *lport, uint16_t vlan_id, const struct rcd_gid *gid)
{
	const struct rcd_engine *engine = arg;

	return rcd_ports_want(&engine->ports, lport, vlan_id, gid);
}

static const struct rcd_lcore_ops lcore_ops = {
	.rx_gsi = engine_rx_gsi,
	.wants_neighbour = engine_wants_neighbour,
};

/* Applications that poll want cores too: two for each lcore, and one for everything else. */
static bool
engine_cores_scarce(const struct rcd_engine *engine)
{
	return sysconf(_SC_NPROCESSORS_ONLN) < 2 * (long)engine->lcores.count + 1;
}

/* In a signal handler of any thread. */
static void
engine_on_fault(void *arg)
{
	struct rcd_engine *engine = arg;

	__atomic_store_n(&engine->faulted, true, __ATOMIC_RELEASE);
	rcd_lcores_wake_control(&engine->lcores);
}

/* Places for clients, with what is there now. @return 0 or -ENOMEM */
static int
engine_make_clients(struct rcd_engine *engine)
{
	const struct rcd_conns_conf conns = {
		.engine = engine,
		.limits = &engine->conf,
		.book = &engine->book,
		.closer = engine->closer,
		.counters = &engine->counters,
		.alarms = &engine->alarms,
		.ports = &engine->ports,
		.cm = &engine->cm,
		.epoll_fd = engine->epoll_fd,
		.secret = engine->secret[1],
		.work = &engine->work,
	};
	const struct rcd_contexts_conf contexts = {
		.lcores = &engine->lcores,
		.ports = &engine->ports,
		.qpns = &engine->qpns,
		.cm = &engine->cm,
		.closer = engine->closer,
		.counters = &engine->counters,
		.quota = &engine->conf.quota,
		.generation = engine->generation,
		.work = &engine->work,
	};

	const struct rcd_cm_host_conf cm = {
		.ports = &engine->ports,
		.lcores = &engine->lcores,
		.alarms = &engine->alarms,
		.random = &engine->random,
		.counters = &engine->counters,
		.secret = &engine->secret[2],
		.guid = engine->generation,
	};

	rcd_conns_init(&engine->conns, &conns);
	rcd_contexts_init(&engine->contexts, &contexts);
	return rcd_cm_host_init(&engine->cm, &cm);
}

/* When all is there that the engine needs: what is left is theirs. */
static int
engine_hear_clients(struct rcd_engine *engine, char *error, size_t error_len)
{
	struct rcd_quota total;

	if (engine->conf.netns_links > 0)
		engine_watch(engine, engine->conf.netns_fd, RCD_SOURCE_NETNS);
	rcd_capacity_measure(
		engine->conf.clients, engine->lcores.count, &engine->conf.user_quota, &total);
	rcd_quota_open(&engine->book, &engine->conf.quota, &engine->conf.user_quota, &total);
	if (engine->conf.netns_exclusive && engine->ports.netns == 0) {
		snprintf(error, error_len,
			"netns = exclusive: this kernel does not tell whose a socket is (Linux "
			"5.14)");
		return -EOPNOTSUPP;
	}
	return rcd_conns_listen(&engine->conns, error, error_len);
}

static int
engine_setup(struct rcd_engine *engine, char *error, size_t error_len)
{
	struct rcd_ports_conf ports = {
		.ops = &rcd_engine_dev_ops,
		.arg = engine,
		.lcores = &engine->lcores,
		.pools = engine->pools,
		.seed = engine->secret,
		.impair_set = engine->conf.impair_set,
		.kernel_addresses = engine->conf.kernel_addresses,
		.exclusive = engine->conf.netns_exclusive,
	};
	int err = rcd_guard_init();

	if (err != 0) {
		snprintf(error, error_len, "no addresses for client memory: %s", strerror(-err));
		return err;
	}
	if (getentropy(engine->secret, sizeof(engine->secret)) != 0 ||
		getentropy(&engine->generation, sizeof(engine->generation)) != 0) {
		err = -errno;
		snprintf(error, error_len, "no random numbers: %s", strerror(-err));
		return err;
	}
	engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	engine->closer = rcd_closer_create(engine->epoll_fd, &engine->book);
	if (engine->epoll_fd < 0 || engine->closer == NULL ||
		rcd_ports_open(&engine->ports, &ports) != 0 ||
		rcd_lcores_init(&engine->lcores, &lcore_ops, engine) != 0 ||
		rcd_qpns_init(&engine->qpns, &engine->lcores, &engine->random) != 0) {
		snprintf(error, error_len, "not enough memory for the engine");
		return -ENOMEM;
	}
	rcd_guard_tell(engine_on_fault, engine);
	engine->lcores.hop_macs = rcd_hops_macs(engine->ports.hops);
	err = engine_make_clients(engine);
	if (err != 0) {
		snprintf(error, error_len, "not enough memory for connection management");
		return err;
	}
	err = rcd_engine_eal_begin(engine);
	if (err != 0) {
		snprintf(error, error_len,
			"not enough memory for buffers; give EAL more (-m), or hugepages");
		return err;
	}
	engine->yield = engine_cores_scarce(engine);
	engine->lcores.idle = engine->conf.idle;
	engine->lcores.sleeps_late = engine->conf.idle == RCD_IDLE_AUTO;
	if (engine->lcores.sleeps_late)
		engine->lcores.idle = engine->yield ? RCD_IDLE_YIELD : RCD_IDLE_POLL;
	engine_watch(engine, engine->lcores.note_fd, RCD_SOURCE_NOTES);
	err = rcd_ports_begin(&engine->ports);
	if (err != 0) {
		snprintf(error, error_len, "can't listen to the kernel: %s", strerror(-err));
		return err;
	}
	engine_watch(engine, rcd_ports_fd(&engine->ports), RCD_SOURCE_NETLINK);
	return engine_hear_clients(engine, error, error_len);
}

struct rcd_engine *
rcd_engine_create(const struct rcd_engine_conf *conf, char *error, size_t error_len)
{
	struct rcd_engine *engine;

	if (conf->clients == 0 || conf->clients > RCD_CLIENTS_MAX) {
		snprintf(error, error_len, "clients: a number from 1 to %d", RCD_CLIENTS_MAX);
		return NULL;
	}
	if (conf->netns_links > RCD_GUEST_LINKS) {
		snprintf(error, error_len, "netns_links: a number up to %d", RCD_GUEST_LINKS);
		return NULL;
	}
	/* With shared devices a link that anybody makes would take those away from others there. */
	if (conf->netns_links > 0 && (!conf->netns_exclusive || conf->netns_fd < 0)) {
		snprintf(error, error_len, "netns_links: needs %s",
			conf->netns_exclusive ? "who makes sockets (netns_fd)"
					      : "netns = exclusive");
		return NULL;
	}
	if (__atomic_exchange_n(&engine_there, true, __ATOMIC_ACQ_REL)) {
		snprintf(error, error_len, "there is an engine in this process");
		return NULL;
	}
	engine = calloc(1, sizeof(*engine));
	if (engine == NULL) {
		snprintf(error, error_len, "not enough memory for the engine");
		__atomic_store_n(&engine_there, false, __ATOMIC_RELEASE);
		return NULL;
	}
	rcd_thread_be_control();
	engine->conf = *conf;
	engine->creator = geteuid();
	rcd_lcores_clear(&engine->lcores);
	engine->epoll_fd = -1;
	rcd_conns_clear(&engine->conns);
	engine->started_ns = rcd_clock_ns();
	rcd_alarms_init(&engine->alarms, engine->started_ns);
	rcd_alarms_init(&engine->chore_alarms, engine->started_ns);
	rcd_chores_open(engine);
	if (engine_setup(engine, error, error_len) != 0) {
		rcd_engine_destroy(engine);
		return NULL;
	}
	rcd_telemetry_init(engine);
	return engine;
}

void
rcd_engine_destroy(struct rcd_engine *engine)
{
	if (engine == NULL)
		return;
	rcd_thread_be_control();
	rcd_telemetry_init(NULL);
	rcd_conns_unlisten(&engine->conns);
	rcd_contexts_end(&engine->contexts, NULL);
	while (!LIST_EMPTY(&engine->conns.list))
		rcd_inbox_close(LIST_FIRST(&engine->conns.list));
	if (engine->lcores.count > 0 && engine->ports.neighs != NULL)
		rcd_ports_end(&engine->ports);
	rcd_lcores_stop(&engine->lcores);
	rcd_lcores_fini(&engine->lcores);
	rcd_closer_destroy(engine->closer);
	rcd_cm_host_fini(&engine->cm);
	rcd_ports_close(&engine->ports);
	rcd_engine_eal_end(engine);
	if (engine->epoll_fd >= 0)
		close(engine->epoll_fd);
	rcd_conns_fini(&engine->conns);
	rcd_guard_fini();
	rcd_qpns_fini(&engine->qpns);
	free(engine);
	rcd_thread_end_control();
	__atomic_store_n(&engine_there, false, __ATOMIC_RELEASE);
}

void
rcd_engine_end_loops(struct rcd_engine *engine)
{
	RCD_ON_CONTROL();
	rcd_lcores_stop(&engine->lcores);
}

int
rcd_engine_launch(struct rcd_engine *engine, uint32_t index, int (*loop)(void *arg), void *arg)
{
	RCD_ON_CONTROL();
	return rcd_lcores_launch(&engine->lcores, index, loop, arg);
}

void
rcd_engine_measure(struct rcd_engine *engine, uint32_t index, struct rcd_stages *stages)
{
	RCD_ON_CONTROL();
	rcd_stage_measure(engine->lcores.lcore[index], stages);
}

int
rcd_engine_start(struct rcd_engine *engine)
{
	int err = 0;

	RCD_ON_CONTROL();
	for (uint32_t i = 0; err == 0 && i < engine->lcores.count; i++)
		err = rcd_engine_launch(engine, i, rcd_poll_main, engine->lcores.lcore[i]);
	return err;
}

struct each {
	void (*fn)(void *arg);
	void *arg;
};

static int
engine_run_each(struct rcd_lcore *lcore, void *arg)
{
	const struct each *each = arg;

	(void)lcore;
	each->fn(each->arg);
	return 0;
}

void
rcd_engine_each_lcore(struct rcd_engine *engine, void (*fn)(void *arg), void *arg)
{
	struct each each = { .fn = fn, .arg = arg };

	RCD_ON_CONTROL();
	rcd_lcores_call(&engine->lcores, engine_run_each, &each);
}

static void
engine_take_notes(struct rcd_engine *engine)
{
	struct rcd_note note;
	uint64_t count;

	if (read(engine->lcores.note_fd, &count, sizeof(count)) < 0) {
		/* Read before: the ring tells. */
	}
	for (uint32_t i = 0; i < NOTES_AT_ONCE && rcd_note_take(&engine->lcores, &note); i++) {
		switch ((enum rcd_note_kind)note.kind) {
		case RCD_NOTE_EVENT: {
			struct rcd_conn *conn = rcd_conns_find(&engine->conns, note.whom);

			if (conn != NULL)
				rcd_conn_event(conn, note.type, note.of, note.cookie);
			else if (note.whom == 0 && note.of == RCD_CTRL_EVENT_QP)
				rcd_xqp_event(
					&engine->contexts, &engine->conns, note.cookie, note.type);
			break;
		}
		case RCD_NOTE_NEIGH:
			rcd_ports_learn(&engine->ports, &note);
			break;
		case RCD_NOTE_QUERY:
			if (note.whom < RCD_DEVS_MAX && engine->ports.devs[note.whom] != NULL)
				rcd_cma_queried(engine->cm.cma,
					engine->ports.devs[note.whom]->lport.serial);
			break;
		case RCD_NOTE_AGREED:
			rcd_hqp_lend_sack(&engine->lcores, note.whom);
			break;
		}
	}
	rcd_lcores_look_again(&engine->lcores, engine->lcores.notes);
}

static uint64_t
engine_thread_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Clients that ask without end do not have the core of others by way of us. */
static void
engine_rest(struct rcd_engine *engine)
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
rcd_engine_take_over(void)
{
	rcd_telemetry_lock();
	rcd_thread_be_control();
}

void
rcd_engine_let_go(struct rcd_engine *engine)
{
	RCD_ON_CONTROL();
	rcd_cm_host_flush(&engine->cm);
	rcd_telemetry_unlock();
}

void
rcd_engine_step(struct rcd_engine *engine, int timeout_ms)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	uint64_t began_ns;
	int count;

	if (engine->yield && timeout_ms > 0)
		engine_rest(engine);
	began_ns = engine->yield ? engine_thread_ns() : 0;
	rcd_engine_take_over();
	rcd_chores_plan(engine);
	timeout_ms = rcd_alarms_wait_ms(&engine->alarms, rcd_clock_ns(), timeout_ms);
	timeout_ms = rcd_alarms_wait_ms(&engine->chore_alarms, rcd_clock_ns(), timeout_ms);
	if (!TAILQ_EMPTY(&engine->conns.inbox.unfinished) || engine->told_left)
		timeout_ms = 0;
	engine->work = 0;
	rcd_closer_reap(engine->closer);
	rcd_engine_let_go(engine);
	count = epoll_wait(engine->epoll_fd, events, EVENTS_AT_ONCE, timeout_ms);
	rcd_engine_take_over();
	/* First, so that nobody has two turns in a step. */
	rcd_inbox_go_on(&engine->conns);
	for (int i = 0; i < count; i++) {
		uint32_t serial = (uint32_t)events[i].data.u64;
		struct rcd_conn *conn;

		switch ((enum rcd_source)(events[i].data.u64 >> 32)) {
		case RCD_SOURCE_CONN:
			/* It may have ended because of an event before this one. */
			conn = rcd_conns_find(&engine->conns, serial);
			if (conn == NULL)
				break;
			if ((events[i].events & EPOLLIN) && !conn->parked)
				rcd_inbox_ready(conn);
			else if (events[i].events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR))
				rcd_inbox_close(conn);
			break;
		case RCD_SOURCE_LISTEN:
			rcd_conns_accept(&engine->conns);
			break;
		case RCD_SOURCE_NOTES:
			engine_take_notes(engine);
			break;
		case RCD_SOURCE_NETLINK:
			rcd_ports_ready(&engine->ports);
			break;
		case RCD_SOURCE_NETNS:
			rcd_guest_ready(engine);
			break;
		}
	}
	engine->work += rcd_gsi_take(engine->cm.gsi, engine->cm.cma);
	/* Not behind alarms of clients, who may set thousands for one moment. */
	rcd_alarms_run(&engine->chore_alarms, rcd_clock_ns(), RCD_CHORES);
	rcd_alarms_run(&engine->alarms, rcd_clock_ns(), ALARMS_AT_ONCE);
	engine->told_left = rcd_neigh_call(engine->ports.neighs, WAITERS_AT_ONCE);
	if (engine->work > engine->longest_work)
		engine->longest_work = engine->work;
	rcd_engine_let_go(engine);
	if (engine->yield)
		engine->used_ns += engine_thread_ns() - began_ns;
}

void
rcd_engine_wake(struct rcd_engine *engine)
{
	rcd_lcores_wake_control(&engine->lcores);
}

uint32_t
rcd_engine_lcore_count(const struct rcd_engine *engine)
{
	return engine->lcores.count;
}

struct rcd_lcore *
rcd_engine_lcore(struct rcd_engine *engine, uint32_t index)
{
	return index < engine->lcores.count ? engine->lcores.lcore[index] : NULL;
}

bool
rcd_engine_stopping(const struct rcd_engine *engine)
{
	return __atomic_load_n(&engine->stopping, __ATOMIC_RELAXED);
}

int
rcd_engine_adopt(struct rcd_engine *engine, int sock)
{
	RCD_ON_CONTROL();
	return rcd_conns_adopt(&engine->conns, sock);
}
