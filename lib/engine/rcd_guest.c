/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Links that clients of other network namespaces make for themselves.
 */
#include "rcd_guest.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "rcd_admin_req.h"
#include "rcd_away.h"
#include "rcd_clock.h"
#include "rcd_conn.h"
#include "rcd_conns.h"
#include "rcd_ctrl.h"
#include "rcd_dev.h"
#include "rcd_dev_conf.h"
#include "rcd_engine_priv.h"
#include "rcd_lcores.h"
#include "rcd_log.h"
#include "rcd_netns.h"
#include "rcd_pauses.h"
#include "rcd_ports.h"
#include "rcd_thread.h"

#define NAME_MAX_LEN     40                   /**< behind it are "@" and a number */
#define SOCKETS_NS       UINT64_C(10000000)   /**< that making sockets takes, by another process */
#define MESSAGES_AT_ONCE (2 * RCD_LCORES_MAX) /**< of what was made */

static_assert(RCD_GUEST_LINKS == RCD_DEVS_MAX / 2, "half of all links");

static struct rcd_engine *
guest_engine(const struct rcd_conn *conn)
{
	return conn->all->conf.engine;
}

bool
rcd_guest_is(const struct rcd_conn *conn)
{
	const struct rcd_engine *engine = guest_engine(conn);

	RCD_ON_CONTROL();
	return engine->conf.netns_links > 0 && conn->netns != 0 &&
		conn->netns != engine->ports.netns;
}

bool
rcd_guest_turn(const struct rcd_conn *conn)
{
	RCD_ON_CONTROL();
	return rcd_pauses_over(&guest_engine(conn)->guests.pauses, conn->uid, rcd_clock_ns());
}

void
rcd_guest_spent(const struct rcd_conn *conn, uint64_t began_ns)
{
	RCD_ON_CONTROL();
	rcd_pauses_begin(&guest_engine(conn)->guests.pauses, conn->uid, began_ns, rcd_clock_ns());
}

int
rcd_guest_ask(struct rcd_conn *conn, int fd)
{
	const struct rcd_engine *engine = guest_engine(conn);
	int err = 0;

	RCD_ON_CONTROL();
	/* Whatever comes of one before is not for this one. */
	rcd_away_free(rcd_conn_away_give(conn));
	conn->asked_number++;
	if (!rcd_netns_is_one(fd))
		err = -EINVAL;
	else if (engine->guests.ended)
		err = -EPIPE;
	else if (!rcd_guest_turn(conn))
		err = -EAGAIN;
	if (err == 0)
		err = rcd_netns_ask(engine->conf.netns_fd, conn->serial, conn->asked_number,
			engine->lcores.count, NULL, fd);
	if (err == 0)
		rcd_guest_spent(conn, rcd_clock_ns() - SOCKETS_NS);
	conn->asked = err == 0 ? -EINPROGRESS : err;
	return err;
}

/* Four of a guest's sockets. What it has named may be another's namespace. */
static void
guest_take(struct rcd_conn *conn, const struct rcd_netns_rep *rep, struct rcd_ctrl_fds *fds)
{
	/* Of the process's rights, not of the client's. */
	int err = rep->err == -EPERM ? -EACCES : rep->err;

	if (err == 0) {
		err = rcd_conn_away_take(conn, fds->fds);
		/* All are taken, or none. */
		if (err == 0)
			fds->count = 0;
	}
	if (err == 0 && conn->away->netns != conn->netns)
		err = -EXDEV;
	if (err != 0)
		rcd_away_free(rcd_conn_away_give(conn));
	if (err != 0 || rep->left == 0)
		conn->asked = err;
}

/* Who made sockets is no more: nobody waits for some. */
static void
guest_end(struct rcd_engine *engine)
{
	struct rcd_conn *conn;

	RCD_LOG(ERR, "netns_links: who makes sockets ended, and with it new links of pods");
	engine->guests.ended = true;
	epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, engine->conf.netns_fd, NULL);
	/* Whoever still sends there is not to wait for us. */
	shutdown(engine->conf.netns_fd, SHUT_RDWR);
	LIST_FOREACH(conn, &engine->conns.list, link)
		if (conn->asked == -EINPROGRESS) {
			rcd_away_free(rcd_conn_away_give(conn));
			conn->asked = -EPIPE;
		}
}

void
rcd_guest_ready(struct rcd_engine *engine)
{
	RCD_ON_CONTROL();
	for (int i = 0; i < MESSAGES_AT_ONCE; i++) {
		struct rcd_netns_rep rep;
		struct rcd_ctrl_fds fds;
		struct rcd_conn *conn;
		int err = rcd_netns_take(engine->conf.netns_fd, &rep, &fds);

		if (err == -EAGAIN)
			return;
		if (err != 0) {
			guest_end(engine);
			return;
		}
		conn = rcd_conns_find(&engine->conns, rep.who);
		if (conn != NULL && conn->asked == -EINPROGRESS && conn->asked_number == rep.number)
			guest_take(conn, &rep, &fds);
		rcd_ctrl_fds_close(&fds);
	}
}

/** Links of guests that there are. */
struct guest_links {
	uint32_t all, of_netns, of_user;
};

static struct guest_links
guest_count(const struct rcd_conn *conn)
{
	const struct rcd_ports *ports = &guest_engine(conn)->ports;
	struct guest_links links = { .all = 0 };

	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		const struct rcd_away *away = ports->devs[i] != NULL ? ports->devs[i]->away : NULL;

		if (away == NULL || !away->guest)
			continue;
		links.all++;
		links.of_netns += away->netns == conn->netns;
		links.of_user += away->uid == conn->uid;
	}
	return links;
}

/* A user may have any number of namespaces: three quarters of what others leave, as of quotas. */
static int
guest_check_count(const struct rcd_conn *conn, char *error, size_t error_len)
{
	struct guest_links links = guest_count(conn);
	uint32_t left = RCD_GUEST_LINKS - (links.all - links.of_user);
	const char *whose = NULL;

	if (left == 0)
		whose = "clients of other network namespaces have";
	else if (links.of_netns >= guest_engine(conn)->conf.netns_links)
		whose = "this network namespace has";
	else if (links.of_user >= left - left / 4)
		whose = "this user has";
	if (whose == NULL)
		return 0;
	snprintf(error, error_len, "netns_links: %s as many links as the engine allows", whose);
	return -EDQUOT;
}

/* What a guest may say of a link. */
static int
guest_configure(
	struct rcd_dev_conf *conf, const struct rcd_admin_req *req, char *error, size_t error_len)
{
	static const char *const keys[] = { "type", "netdev", "mtu" };
	enum rcd_link_key key;
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < req->count; i++) {
		const char *name = req->members[i].key;
		bool known = false;

		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
			known |= strcmp(keys[k], name) == 0;
		if (known)
			err = rcd_dev_conf_set(conf, name, req->members[i].val, error, error_len);
		else if (strcmp(name, "name") != 0)
			err = -EPERM;
	}
	if (err == -EPERM || (err == 0 && !conf->udp)) {
		snprintf(error, error_len,
			"from another network namespace: links of type udp alone, by netdev and "
			"mtu");
		return -EPERM;
	}
	return err != 0 ? err : rcd_dev_conf_check(conf, &key, error, error_len);
}

int
rcd_guest_link_add(
	const struct rcd_conn *conn, struct rcd_admin_req *req, char *error, size_t error_len)
{
	const char *name = rcd_admin_req_get(req, "name");
	struct rcd_dev_conf conf = { .addr_count = 0 };
	struct rcd_away *away = req->away;
	int err;

	RCD_ON_CONTROL();
	if (name == NULL || strlen(name) > NAME_MAX_LEN || strchr(name, '@') != NULL) {
		snprintf(error, error_len, "name: a link's, of 1 to %d characters, without an @",
			NAME_MAX_LEN);
		return -EINVAL;
	}
	err = guest_configure(&conf, req, error, error_len);
	if (err == 0 && (conn->asked != 0 || away == NULL || away->netns != conn->netns)) {
		snprintf(error, error_len, "ask for sockets first (NETNS)");
		err = -EINVAL;
	}
	if (err == 0)
		err = guest_check_count(conn, error, error_len);
	if (err != 0)
		return err;
	/* Of all namespaces: what others call theirs is nothing that this one could learn. */
	snprintf(conf.name, sizeof(conf.name), "%s@%" PRIu64, name, conn->netns);
	snprintf(conf.netns, sizeof(conf.netns), "@%" PRIu64, conn->netns);
	away->guest = true;
	away->uid = conn->uid;
	req->away = NULL;
	return rcd_ports_add(&guest_engine(conn)->ports, &conf, away, error, error_len);
}

/* Root, or who started the engine: his are the user namespaces of its guests. */
static bool
guest_keeps_order(const struct rcd_conn *conn)
{
	return conn->uid == 0 || conn->uid == guest_engine(conn)->creator;
}

int
rcd_guest_link_del(
	const struct rcd_conn *conn, const struct rcd_admin_req *req, char *error, size_t error_len)
{
	struct rcd_ports *ports = &guest_engine(conn)->ports;
	const char *name = rcd_admin_req_get(req, "name");
	char full[RCD_NAME_LEN] = "";
	const struct rcd_dev *dev;

	RCD_ON_CONTROL();
	if (name != NULL && strlen(name) <= NAME_MAX_LEN)
		snprintf(full, sizeof(full), "%s@%" PRIu64, name, conn->netns);
	dev = rcd_dev_find(ports, full);
	if (dev == NULL || dev->away == NULL || !dev->away->guest ||
		(dev->away->uid != conn->uid && !guest_keeps_order(conn))) {
		snprintf(error, error_len,
			"there is no link %s that this user made in this network namespace",
			name != NULL ? name : "without a name");
		return -ENOENT;
	}
	return rcd_ports_del(ports, full);
}
