/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Devices come and go, wires with both of their ends; and what all of them share, as a whole.
 */
#include "rcd_ports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_attach.h"
#include "rcd_away.h"
#include "rcd_clock.h"
#include "rcd_dev.h"
#include "rcd_dev_view.h"
#include "rcd_groups.h"
#include "rcd_hop.h"
#include "rcd_kaddr.h"
#include "rcd_lcore_ctl.h"
#include "rcd_lcores.h"
#include "rcd_link.h"
#include "rcd_log.h"
#include "rcd_neigh.h"
#include "rcd_netlink.h"
#include "rcd_note.h"
#include "rcd_route.h"
#include "rcd_rtnl.h"
#include "rcd_steer.h"
#include "rcd_thread.h"
#include "rcd_vlans.h"

/* It is of the sockets' network namespace: those for groups are there already. */
static void
ports_set_away(struct rcd_dev *dev, struct rcd_away *away)
{
	dev->away = away;
	dev->lport.netns = away->netns;
	for (int i = 0; i < 2; i++) {
		dev->hold[i] = away->groups[i];
		away->groups[i] = -1;
	}
}

/* @param index  the first place that it may have */
static struct rcd_dev *
ports_new(struct rcd_ports *ports, const struct rcd_dev_conf *conf, uint32_t index, uint32_t serial)
{
	static const struct rcd_gid_table no_gids;
	struct rcd_dev *dev;

	while (index < RCD_DEVS_MAX && ports->devs[index] != NULL)
		index++;
	if (index == RCD_DEVS_MAX)
		return NULL;
	dev = calloc(1, sizeof(*dev));
	if (dev == NULL)
		return NULL;
	dev->ports = ports;
	dev->conf = *conf;
	dev->gids = &no_gids;
	dev->lport = (struct rcd_lport){
		.index = index,
		.serial = serial,
		.wire = conf->attach == RCD_ATTACH_WIRE,
		.answers = rcd_dev_conf_netdev(conf) == NULL,
		.impaired = conf->impair[0] != '\0',
	};
	dev->hold[0] = dev->hold[1] = -1;
	dev->link_up = true;
	dev->admin_down = conf->down;
	return dev;
}

static void
ports_free_one(struct rcd_dev *dev)
{
	if (dev->ports->devs[dev->lport.index] == dev)
		dev->ports->devs[dev->lport.index] = NULL;
	if (dev->conf.attach == RCD_ATTACH_WIRE)
		rcd_detach_wire_rings(dev);
	rcd_lport_fini(&dev->lport);
	rcd_groups_fini(&dev->groups);
	rcd_away_free(dev->away);
	free(dev);
}

static void
ports_take_down(struct rcd_dev *dev);

/* Take a device away, and the other end of its wire with it. */
static void
ports_remove(struct rcd_dev *dev)
{
	struct rcd_dev *peer = dev->peer;

	ports_take_down(dev);
	if (peer != NULL)
		ports_take_down(peer);
	rcd_detach(dev);
	if (peer != NULL) {
		rcd_detach(peer);
		ports_free_one(peer);
	}
	ports_free_one(dev);
}

/* Attach one device and show it to the lcores. */
static int
ports_bring_up(struct rcd_dev *dev, char *error, size_t error_len)
{
	int err;

	if (rcd_lport_init(&dev->lport, dev->ports->conf.lcores) != 0) {
		snprintf(error, error_len, "%s: no memory", dev->conf.name);
		return -ENOMEM;
	}
	err = rcd_attach(dev, error, error_len);
	if (err != 0)
		return err;
	rcd_dev_set_mtu(dev, dev->mtu);
	err = rcd_dev_view_begin(dev);
	if (err != 0) {
		snprintf(error, error_len, "%s: no memory", dev->conf.name);
		return err;
	}
	rcd_lport_show(&dev->lport);
	if (dev->lport.wire)
		rcd_kaddr_sync(dev->ports);
	if (rcd_dev_conf_netdev(&dev->conf) != NULL)
		rcd_netlink_sync(dev);
	rcd_groups_look(dev);
	rcd_vlans_follow(dev);
	rcd_dev_check_link(dev);
	RCD_LOG(NOTICE, "%s: added, driver %s, port %u, path MTU %u, steering %s", dev->conf.name,
		dev->driver, dev->lport.port_id, dev->path_mtu, rcd_steer_name(dev->steer.kind));
	return 0;
}

static void
ports_take_down(struct rcd_dev *dev)
{
	const struct rcd_ports *ports = dev->ports;

	ports->conf.ops->gone(ports->conf.arg, dev);
	if (!dev->shown)
		return;
	rcd_neigh_flush(ports->neighs, dev->lport.serial);
	rcd_dev_view_end(dev);
	RCD_LOG(NOTICE, "%s: removed", dev->conf.name);
}

/* A wire has two ends, which come and go together, each with its own conf. */
static int
ports_add_wire(struct rcd_dev *dev, struct rcd_dev *peer, char *error, size_t error_len)
{
	int err;

	dev->peer = peer;
	peer->peer = dev;
	err = rcd_attach_wire_rings(dev, error, error_len);
	if (err == 0)
		err = ports_bring_up(peer, error, error_len);
	return err;
}

/* The first end waits for the second, named but without a port. */
static int
ports_add_end(
	struct rcd_ports *ports, const struct rcd_dev_conf *conf, char *error, size_t error_len)
{
	int err = rcd_wire_end_add(&ports->wire_ends, conf, ports->next_serial);

	if (err == 0)
		ports->next_serial++;
	else
		snprintf(error, error_len, "%s: no memory", conf->name);
	return err;
}

/* The end that waits for this one, or NULL. @return 0, or -EINVAL: the name is another's */
static int
ports_find_end(struct rcd_ports *ports, const struct rcd_dev_conf *conf, struct rcd_wire_end **end,
	char *error, size_t error_len)
{
	*end = NULL;
	if (conf->attach != RCD_ATTACH_WIRE)
		return 0;
	*end = rcd_wire_end_find(&ports->wire_ends, conf->target);
	if (*end == NULL ? rcd_dev_find(ports, conf->target) == NULL
			 : strcmp((*end)->conf.target, conf->name) == 0)
		return 0;
	snprintf(error, error_len, "%s: %s is no free end of a wire to it", conf->name,
		conf->target);
	return -EINVAL;
}

/* Names are of one device each, and what clients of a namespace know its devices by, too. */
static bool
ports_name_taken(struct rcd_ports *ports, const char *name, const struct rcd_away *away)
{
	char plain[RCD_NAME_LEN];

	for (uint32_t i = 0; away != NULL && i < RCD_DEVS_MAX; i++) {
		if (ports->devs[i] == NULL || ports->devs[i]->lport.netns != away->netns)
			continue;
		rcd_dev_plain_name(ports->devs[i], plain);
		if (strlen(plain) == strcspn(name, "@") && strncmp(plain, name, strlen(plain)) == 0)
			return true;
	}
	return rcd_dev_find(ports, name) != NULL ||
		rcd_wire_end_find(&ports->wire_ends, name) != NULL;
}

static uint32_t
ports_places(const struct rcd_ports *ports)
{
	uint32_t places = RCD_DEVS_MAX - ports->wire_ends.count;

	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		places -= ports->devs[i] != NULL;
	return places;
}

/* A guest's has an "@" and what makes it the only one behind it: no other has that. */
static bool
ports_name_valid(const char *name, const struct rcd_away *away)
{
	size_t len = strnlen(name, RCD_NAME_LEN);

	if (len == 0 || len == RCD_NAME_LEN)
		return false;
	if (away != NULL && away->guest)
		len = strcspn(name, "@");
	if (len == 0)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!(name[i] >= 'a' && name[i] <= 'z') && !(name[i] >= 'A' && name[i] <= 'Z') &&
			!(name[i] >= '0' && name[i] <= '9') && strchr("_-.", name[i]) == NULL)
			return false;
	return true;
}

/* Whether it says a network namespace, and has the sockets of one. */
static int
ports_check_away(const struct rcd_ports *ports, const struct rcd_dev_conf *conf,
	const struct rcd_away *away, char *error, size_t error_len)
{
	const char *what = NULL;

	if (away != NULL && away->netns == ports->netns)
		what = "that is the engine's own network namespace: leave it out";
	else if ((away != NULL) != (conf->netns[0] != '\0'))
		what = "its sockets come with it: \"rocade link add\" hands them over, or rocaded "
		       "makes them at start";
	if (what == NULL)
		return 0;
	snprintf(error, error_len, "netns: %s", what);
	return -EINVAL;
}

/* @param away  the device's if 0 is returned */
static int
ports_add(struct rcd_ports *ports, const struct rcd_dev_conf *conf, struct rcd_away **away,
	char *error, size_t error_len)
{
	struct rcd_wire_end *end;
	struct rcd_dev *dev, *peer = NULL;
	int err = ports_check_away(ports, conf, *away, error, error_len);

	if (err != 0)
		return err;
	if (!ports_name_valid(conf->name, *away)) {
		snprintf(error, error_len, "a device's name has letters, digits and _-. only");
		return -EINVAL;
	}
	if (ports_name_taken(ports, conf->name, *away)) {
		snprintf(error, error_len, "%s: there is a device of this name", conf->name);
		return -EEXIST;
	}
	err = ports_find_end(ports, conf, &end, error, error_len);
	if (err != 0)
		return err;
	if (ports_places(ports) == 0) {
		snprintf(error, error_len, "%s: no room for another device", conf->name);
		return -ENOSPC;
	}
	if (conf->attach == RCD_ATTACH_WIRE && end == NULL)
		return ports_add_end(ports, conf, error, error_len);
	if (end != NULL) {
		peer = ports_new(ports, &end->conf, 0, end->serial);
		rcd_wire_end_del(&ports->wire_ends, end);
	}
	dev = ports_new(
		ports, conf, peer != NULL ? peer->lport.index + 1 : 0, ports->next_serial++);
	if (dev == NULL || (peer == NULL && conf->attach == RCD_ATTACH_WIRE)) {
		snprintf(error, error_len, "%s: no memory", conf->name);
		if (dev != NULL || peer != NULL)
			ports_free_one(dev != NULL ? dev : peer);
		return -ENOMEM;
	}
	if (*away != NULL) {
		ports->served_others = true;
		ports_set_away(dev, *away);
	}
	*away = NULL;
	err = peer != NULL ? ports_add_wire(dev, peer, error, error_len) : 0;
	if (err == 0)
		err = ports_bring_up(dev, error, error_len);
	if (err != 0)
		ports_remove(dev);
	return err;
}

int
rcd_ports_add(struct rcd_ports *ports, const struct rcd_dev_conf *conf, struct rcd_away *away,
	char *error, size_t error_len)
{
	int err;

	RCD_ON_CONTROL();
	err = ports_add(ports, conf, &away, error, error_len);
	rcd_away_free(away);
	return err;
}

int
rcd_ports_del(struct rcd_ports *ports, const char *name)
{
	struct rcd_wire_end *end = rcd_wire_end_find(&ports->wire_ends, name);
	struct rcd_dev *dev = rcd_dev_find(ports, name);

	RCD_ON_CONTROL();
	if (end != NULL)
		rcd_wire_end_del(&ports->wire_ends, end);
	else if (dev != NULL)
		ports_remove(dev);
	else
		return -ENOENT;
	return 0;
}

/* What an lcore asks the link. */
struct question {
	struct rcd_dev *dev;
	struct rcd_gid source;
	struct rcd_gid target;
	uint16_t vlan_id;
};

static int
ports_ask_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct question *question = arg;

	rcd_link_solicit(lcore, &question->dev->lport, &question->source, &question->target,
		question->vlan_id);
	return 0;
}

static void
ports_ask(void *arg, const struct rcd_neigh_target *target)
{
	struct rcd_ports *ports = arg;
	struct question question = {
		.dev = rcd_dev_by_serial(ports, target->key.dev),
		.target = target->key.gid,
		.vlan_id = (uint16_t)target->key.vlan_id,
	};

	if (question.dev == NULL)
		return;
	if (!target->ours) {
		rcd_netlink_probe(question.dev, &target->key.gid);
		return;
	}
	if ((uint32_t)target->sgid_index >= question.dev->gids->count)
		return;
	question.source = question.dev->gids->entries[target->sgid_index].gid;
	rcd_lcore_call(ports->conf.lcores->lcore[0], ports_ask_on_lcore, &question);
}

int
rcd_ports_open(struct rcd_ports *ports, const struct rcd_ports_conf *conf)
{
	static const struct rcd_neigh_ops neigh_ops = { .now_ns = rcd_clock_ns, .ask = ports_ask };

	RCD_ON_CONTROL();
	ports->conf = *conf;
	ports->watch_fd = -1;
	ports->next_serial = 1;
	return rcd_route_open(ports, &neigh_ops);
}

/* Any socket of ours tells it. */
static uint64_t
ports_find_netns(void)
{
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t netns = rcd_away_netns(sock);

	if (sock >= 0)
		close(sock);
	return netns;
}

int
rcd_ports_begin(struct rcd_ports *ports)
{
	RCD_ON_CONTROL();
	ports->netns = ports_find_netns();
	ports->watch_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ports->watch_fd < 0)
		return -errno;
	ports->rtnl = rcd_rtnl_open(NULL);
	if (ports->rtnl != NULL)
		ports->netlink = rcd_netlink_open(ports, NULL);
	if (ports->netlink == NULL)
		RCD_LOG(WARNING, "no rtnetlink: kernel netdevs can't be attached");
	return ports->conf.kernel_addresses ? rcd_kaddr_open(ports) : 0;
}

void
rcd_ports_end(struct rcd_ports *ports)
{
	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (ports->devs[i] != NULL)
			ports_remove(ports->devs[i]);
	rcd_wire_ends_fini(&ports->wire_ends);
}

void
rcd_ports_close(struct rcd_ports *ports)
{
	RCD_ON_CONTROL();
	rcd_kaddr_close(ports);
	rcd_netlink_close(ports->netlink);
	rcd_rtnl_close(ports->rtnl);
	rcd_route_close(ports);
	if (ports->watch_fd >= 0)
		close(ports->watch_fd);
	ports->watch_fd = -1;
	ports->netlink = NULL;
	ports->rtnl = NULL;
}

int
rcd_ports_fd(const struct rcd_ports *ports)
{
	RCD_ON_CONTROL();
	return ports->watch_fd;
}

void
rcd_ports_ready(struct rcd_ports *ports)
{
	RCD_ON_CONTROL();
	if (ports->netlink != NULL)
		rcd_netlink_ready(ports->netlink);
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (ports->devs[i] != NULL && ports->devs[i]->away != NULL)
			rcd_netlink_ready(ports->devs[i]->away->netlink);
}

bool
rcd_ports_unsure(const struct rcd_ports *ports)
{
	bool unsure = rcd_netlink_unsure(ports->netlink);

	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (ports->devs[i] != NULL && ports->devs[i]->away != NULL)
			unsure |= rcd_netlink_unsure(ports->devs[i]->away->netlink);
	return unsure;
}

struct rcd_rtnl *
rcd_ports_rtnl(const struct rcd_ports *ports, uint64_t netns)
{
	RCD_ON_CONTROL();
	if (netns == 0)
		return ports->rtnl;
	/* Any device there has one. */
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (ports->devs[i] != NULL && ports->devs[i]->lport.netns == netns)
			return ports->devs[i]->away->rtnl;
	return NULL;
}

uint64_t
rcd_ports_netns(const struct rcd_ports *ports, uint64_t netns)
{
	RCD_ON_CONTROL();
	if (netns == 0 || netns == ports->netns)
		return 0;
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (ports->devs[i] != NULL && ports->devs[i]->lport.netns == netns)
			return netns;
	return ports->conf.exclusive ? netns : 0;
}

bool
rcd_ports_serve_others(const struct rcd_ports *ports)
{
	RCD_ON_CONTROL();
	return ports->conf.exclusive || ports->served_others;
}

void
rcd_ports_learn(struct rcd_ports *ports, const struct rcd_note *note)
{
	const struct rcd_dev *dev = note->whom < RCD_DEVS_MAX ? ports->devs[note->whom] : NULL;
	struct rcd_hop_key key;

	RCD_ON_CONTROL();
	if (dev == NULL)
		return;
	key = rcd_dev_hop_key(&dev->lport, note->vlan_id, &note->gid);
	rcd_neigh_learn(ports->neighs, &key, note->mac);
}

bool
rcd_ports_want(const struct rcd_ports *ports, const struct rcd_lport *lport, uint16_t vlan_id,
	const struct rcd_gid *gid)
{
	struct rcd_hop_key key = rcd_dev_hop_key(lport, vlan_id, gid);

	return rcd_neigh_wanted(ports->neighs, &key);
}
