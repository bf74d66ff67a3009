/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of the command line, in words, and answers in JSON with the keys of iproute2's rdma:
 *
 *   link | dev | resource [pd|cq|qp|mr|srq|ctx|cm_id|quota] | statistic [NAME] | counters | engine
 *   stop
 *   link add NAME wire PEER | netdev DEV [auto|xdp|packet] | port DEVARGS, then [impair ARGS]
 *   link del NAME; link set NAME up|down; link set NAME impair ARGS
 *   addr add NAME ADDRESS/LENGTH [vlan ID]; addr del NAME ADDRESS
 *
 * A request that can't be carried out is answered by {"error": "..."}.
 */
#include "rcd_engine_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <rte_ethdev.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_admin.h"
#include "rcd_closer.h"
#include "rcd_cma.h"
#include "rcd_kaddr.h"

#define WORDS_MAX 12

struct command {
	struct rcd_engine *engine;
	char *words[WORDS_MAX];
	uint32_t count;
};

__attribute__((format(printf, 1, 2))) static json_t *
error(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return json_pack("{s:s}", "error", text);
}

static bool
is(const struct command *command, uint32_t place, const char *word)
{
	return place < command->count && strcmp(command->words[place], word) == 0;
}

static json_t *
mac_text(const uint8_t *mac)
{
	return json_sprintf(
		"%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

json_t *
rcd_gid_json(const struct rcd_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid->raw, text, sizeof(text));
	return json_string(text);
}

static const char *
attach_name(enum rcd_attach attach)
{
	switch (attach) {
	case RCD_ATTACH_WIRE:
		return "wire";
	case RCD_ATTACH_NETDEV:
		return "netdev";
	case RCD_ATTACH_PORT:
		return "port";
	}
	return "?";
}

static json_t *
link_json(const struct rcd_dev *dev)
{
	json_t *gids = json_array();
	json_t *link = json_pack(
		"{s:i, s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:o, s:o}", "ifindex",
		(int)dev->serial, "ifname", dev->conf.name, "port", 1, "state",
		dev->up ? "ACTIVE" : "DOWN", "physical_state", dev->up ? "LINK_UP" : "DISABLED",
		"type", attach_name(dev->conf.attach), "driver", dev->driver, "link_layer",
		"Ethernet", "dpdk_port", dev->port_id, "mtu", (int)dev->mtu, "active_mtu",
		(int)dev->path_mtu, "mac", mac_text(dev->mac), "gids", gids);

	if (dev->conf.attach == RCD_ATTACH_NETDEV)
		json_object_set_new(link, "netdev", json_string(dev->conf.target));
	if (dev->peer != NULL)
		json_object_set_new(link, "peer", json_string(dev->peer->conf.name));
	if (dev->conf.impair[0] != '\0')
		json_object_set_new(link, "impair", json_string(dev->conf.impair));
	if (dev->pool != NULL)
		json_object_set_new(link, "buffers_free",
			json_integer((json_int_t)rte_mempool_avail_count(dev->pool)));
	for (uint32_t i = 0; i < dev->gids->count; i++)
		if (dev->gids->entries[i].used)
			json_array_append_new(gids,
				json_pack("{s:i, s:o, s:s, s:i}", "index", (int)i, "gid",
					rcd_gid_json(&dev->gids->entries[i].gid), "type", "RoCE v2",
					"vlan", (int)dev->gids->entries[i].vlan_id));
	return link;
}

static json_t *
dev_json(const struct rcd_dev *dev)
{
	const uint8_t *mac = dev->mac;
	json_t *guid = json_sprintf("%02x%02x:%02xff:fe%02x:%02x%02x", mac[0] ^ 2, mac[1], mac[2],
		mac[3], mac[4], mac[5]);

	return json_pack("{s:i, s:s, s:s, s:s, s:O, s:o}", "ifindex", (int)dev->serial, "ifname",
		dev->conf.name, "node_type", "ca", "fw", RCD_RELEASE, "node_guid", guid,
		"sys_image_guid", guid);
}

static json_t *
each_dev(const struct command *command, json_t *(*show)(const struct rcd_dev *dev))
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		const struct rcd_dev *dev = command->engine->devs[i];

		if (dev != NULL && !dev->wire_waits)
			json_array_append_new(list, show(dev));
	}
	return list;
}

/* What net_impair did: the extended statistics of the port that are its own. */
static void
add_impair_counters(const struct rcd_dev *dev, json_t *counters)
{
	struct rte_eth_xstat_name names[128];
	struct rte_eth_xstat stats[128];
	int count = rte_eth_xstats_get_names(dev->port_id, names, RTE_DIM(names));

	if (count < 0 || count > (int)RTE_DIM(names) ||
		rte_eth_xstats_get(dev->port_id, stats, RTE_DIM(stats)) != count)
		return;
	for (int i = 0; i < count; i++)
		if (strstr(names[i].name, "_impair_") != NULL)
			json_object_set_new(
				counters, names[i].name, json_integer((json_int_t)stats[i].value));
}

static json_t *
statistic_json(const struct rcd_dev *dev)
{
	json_t *counters = json_object();

	for (int i = 0; i < RCD_COUNTER_COUNT; i++)
		json_object_set_new(counters, rcd_counter_name((enum rcd_counter)i),
			json_integer((json_int_t)rcd_dev_sum(dev, (enum rcd_counter)i)));
	if (dev->conf.impair[0] != '\0')
		add_impair_counters(dev, counters);
	return json_pack("{s:i, s:s, s:i, s:o}", "ifindex", (int)dev->serial, "ifname",
		dev->conf.name, "port", 1, "counters", counters);
}

/* What belongs to no device: offences of clients, and what an lcore meets. */
static json_t *
engine_counters(struct rcd_engine *engine)
{
	json_t *counters = json_object();

	for (int i = 0; i < RCD_COUNTER_COUNT; i++) {
		enum rcd_counter id = (enum rcd_counter)i;
		uint64_t total = rcd_counter_get(&engine->counters, id);
		struct rcd_session *session;

		for (uint32_t k = 0; k < engine->lcore_count; k++)
			total += rcd_counter_get(&engine->lcores[k]->counters, id);
		LIST_FOREACH(session, &engine->sessions, link)
			total += rcd_counter_get(&session->counters, id);
		if (total > 0)
			json_object_set_new(
				counters, rcd_counter_name(id), json_integer((json_int_t)total));
	}
	return counters;
}

static json_t *
engine_json(const struct command *command)
{
	struct rcd_engine *engine = command->engine;
	static const char *const idle[] = { "auto", "poll", "yield", "sleep" };
	json_t *lcores = json_array();

	for (uint32_t i = 0; i < engine->lcore_count; i++) {
		const struct rcd_lcore *lcore = engine->lcores[i];

		json_array_append_new(lcores,
			json_pack("{s:i, s:I, s:I, s:I, s:i, s:i}", "lcore", (int)lcore->lcore_id,
				"polls", (json_int_t)rcd_lcore_tally(&lcore->polls), "busy_polls",
				(json_int_t)rcd_lcore_tally(&lcore->busy_polls),
				"longest_poll_work",
				(json_int_t)rcd_lcore_tally(&lcore->longest_work), "sessions",
				(int)lcore->session_count, "numa_node", lcore->socket_id));
	}
	return json_pack("{s:s, s:i, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:i, s:b, s:o, s:o, s:o}",
		"version", RCD_RELEASE, "pid", (int)getpid(), "runtime_dir",
		rte_eal_get_runtime_dir(), "idle", idle[engine->conf.idle], "clients",
		(int)engine->client_count, "queue_pairs", (int)engine->qp_used, "neighbours",
		(int)rcd_neigh_count(engine), "uptime_ns",
		(json_int_t)(rcd_clock_ns() - engine->started_ns), "longest_step_work",
		(json_int_t)engine->longest_work, "closing", (int)rcd_closer_held(engine->closer),
		"hugepages", rte_eal_has_hugepages(), "kernel_addresses", rcd_kaddr_json(engine),
		"lcores", lcores, "counters", engine_counters(engine));
}

static json_t *
resource_json(const struct rcd_dev *dev)
{
	uint32_t pd = 0, cq = 0, qp = 0, mr = 0, srq = 0, ctx = 0;
	const struct rcd_session *session;

	LIST_FOREACH(session, &dev->engine->sessions, link) {
		if (session->dev != dev)
			continue;
		ctx++;
		pd += session->pds.used;
		cq += session->cqs.used;
		qp += session->hqps.used;
		mr += session->umem.umr_count;
		srq += session->srqs.used;
	}
	return json_pack("{s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "ifindex",
		(int)dev->serial, "ifname", dev->conf.name, "pd", (int)pd, "cq", (int)cq, "qp",
		(int)qp, "cm_id", (int)rcd_cmid_count(dev->engine->cma, dev->serial), "mr", (int)mr,
		"ctx", (int)ctx, "srq", (int)srq);
}

static json_t *
resource(const struct command *command)
{
	json_t *list;

	if (command->count < 2)
		return each_dev(command, resource_json);
	if (is(command, 1, "quota"))
		return rcd_admin_quota(command->engine);
	list = rcd_admin_objects(command->engine, command->words[1]);
	return list != NULL ? list
			    : error("no resources of kind %s; there are pd, cq, qp, mr, srq, ctx, "
				    "cm_id, quota",
				      command->words[1]);
}

/* What every counter is called and counts, for those who show all of them. */
static json_t *
counter_list(void)
{
	json_t *list = json_array();

	for (int i = 0; i < RCD_COUNTER_COUNT; i++) {
		enum rcd_counter id = (enum rcd_counter)i;

		json_array_append_new(list,
			json_pack("{s:s, s:s, s:s}", "name", rcd_counter_name(id), "unit",
				rcd_counter_unit(id), "description", rcd_counter_description(id)));
	}
	return list;
}

static json_t *
statistic(const struct command *command)
{
	struct rcd_dev *dev;

	if (command->count < 2)
		return each_dev(command, statistic_json);
	dev = rcd_dev_find(command->engine, command->words[1]);
	if (dev == NULL || dev->wire_waits)
		return error("there is no link %s", command->words[1]);
	return json_pack("[o]", statistic_json(dev));
}

/* Both ends of a wire are added together; each impairs what it sends. */
static json_t *
wire_add(const struct command *command, struct rcd_dev_conf *conf)
{
	struct rcd_dev_conf peer = *conf;
	char text[400] = "";
	int err;

	if (strlen(conf->target) >= sizeof(peer.name))
		return error("%s: too long a name", conf->target);
	conf->attach = peer.attach = RCD_ATTACH_WIRE;
	memcpy(peer.name, conf->target, sizeof(peer.name));
	snprintf(peer.target, sizeof(peer.target), "%s", conf->name);
	err = rcd_engine_dev_add(command->engine, conf, text, sizeof(text));
	if (err == 0) {
		err = rcd_engine_dev_add(command->engine, &peer, text, sizeof(text));
		if (err != 0)
			rcd_engine_dev_del(command->engine, conf->name);
	}
	return err == 0 ? json_object() : error("%s", text);
}

static json_t *
link_add(struct command *command)
{
	struct rcd_dev_conf conf = { .addr_count = 0 };
	char text[400] = "";
	int err;

	if (command->count > 6 && is(command, command->count - 2, "impair")) {
		command->count -= 2;
		if (strlen(command->words[command->count + 1]) >= sizeof(conf.impair))
			return error("too much to impair");
		snprintf(
			conf.impair, sizeof(conf.impair), "%s", command->words[command->count + 1]);
	}
	if (command->count < 5)
		return error("link add NAME wire PEER | netdev DEV [auto|xdp|packet] | "
			     "port DEVARGS, then [impair ARGS]");
	snprintf(conf.name, sizeof(conf.name), "%s", command->words[2]);
	snprintf(conf.target, sizeof(conf.target), "%s", command->words[4]);
	if (is(command, 3, "wire"))
		return wire_add(command, &conf);
	if (is(command, 3, "netdev"))
		conf.attach = RCD_ATTACH_NETDEV;
	else if (is(command, 3, "port"))
		conf.attach = RCD_ATTACH_PORT;
	else
		return error("no link type %s; there are wire, netdev, port", command->words[3]);
	if (is(command, 5, "xdp"))
		conf.mode = RCD_NETDEV_XDP;
	else if (is(command, 5, "packet"))
		conf.mode = RCD_NETDEV_PACKET;
	err = rcd_engine_dev_add(command->engine, &conf, text, sizeof(text));
	return err == 0 ? json_object() : error("%s", text);
}

static json_t *
link_impair(struct rcd_dev *dev, const char *args)
{
	char text[256] = "";

	if (dev->conf.impair[0] == '\0')
		return error("%s is not impaired: add it with impair ARGS", dev->conf.name);
	if (strlen(args) >= sizeof(dev->conf.impair))
		return error("too much to impair");
	if (dev->engine->conf.impair_set(dev->port_id, args, text, sizeof(text)) != 0)
		return error("%s: %s", dev->conf.name, text);
	snprintf(dev->conf.impair, sizeof(dev->conf.impair), "%s", args);
	return json_object();
}

static json_t *
link_set(const struct command *command, struct rcd_dev *dev)
{
	if (is(command, 3, "impair") && command->count == 5)
		return link_impair(dev, command->words[4]);
	if (command->count != 4 || (!is(command, 3, "up") && !is(command, 3, "down")))
		return error("link set NAME up|down | impair ARGS");
	dev->admin_down = is(command, 3, "down");
	rcd_dev_check_link(dev);
	if (dev->peer != NULL)
		rcd_dev_check_link(dev->peer);
	return json_object();
}

static json_t *
link_command(struct command *command)
{
	struct rcd_dev *dev;

	if (command->count < 2)
		return each_dev(command, link_json);
	if (is(command, 1, "add"))
		return link_add(command);
	dev = command->count > 2 ? rcd_dev_find(command->engine, command->words[2]) : NULL;
	if (dev == NULL)
		return error("there is no link %s",
			command->count > 2 ? command->words[2] : "without a name");
	if (is(command, 1, "del")) {
		rcd_engine_dev_del(command->engine, command->words[2]);
		return json_object();
	}
	if (is(command, 1, "set") && !dev->wire_waits)
		return link_set(command, dev);
	return error("link [show | add | del | set NAME up|down | set NAME impair ARGS]");
}

static json_t *
addr_command(const struct command *command)
{
	struct rcd_addr addr = { .vlan_id = 0 };
	struct rcd_dev *dev;
	int err;

	if (command->count < 4 || (!is(command, 1, "add") && !is(command, 1, "del")))
		return error("addr add NAME ADDRESS/LENGTH [vlan ID] | addr del NAME ADDRESS");
	dev = rcd_dev_find(command->engine, command->words[2]);
	if (dev == NULL || dev->wire_waits)
		return error("there is no link %s", command->words[2]);
	if (!dev->answers)
		return error("%s has the addresses of %s: use ip addr", dev->conf.name,
			dev->conf.target);
	if (rcd_addr_parse(command->words[3], &addr) != 0)
		return error("%s is no address", command->words[3]);
	if (is(command, 4, "vlan") && command->count > 5) {
		unsigned long vlan = strtoul(command->words[5], NULL, 10);

		if (vlan < 1 || vlan > 4094)
			return error("VLAN identifiers are 1 to 4094");
		addr.vlan_id = (uint16_t)vlan;
	}
	err = is(command, 1, "add") ? rcd_dev_addr_add(dev, &addr)
				    : rcd_dev_addr_del(dev, &addr.gid);
	if (err != 0)
		return error("%s: %s", command->words[3], strerror(-err));
	rcd_dev_event(dev, RCD_EVENT_GID_CHANGE);
	return json_object();
}

static json_t *
carry_out(struct command *command)
{
	if (is(command, 0, "link"))
		return link_command(command);
	if (is(command, 0, "addr"))
		return addr_command(command);
	if (is(command, 0, "dev"))
		return each_dev(command, dev_json);
	if (is(command, 0, "resource"))
		return resource(command);
	if (is(command, 0, "statistic"))
		return statistic(command);
	if (is(command, 0, "counters"))
		return counter_list();
	if (is(command, 0, "engine"))
		return engine_json(command);
	if (is(command, 0, "stop")) {
		command->engine->stopping = true;
		return json_object();
	}
	return error("no such command: %s", command->count > 0 ? command->words[0] : "");
}

int
rcd_addr_parse(const char *text, struct rcd_addr *addr)
{
	char host[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
	uint8_t bytes[16];
	unsigned long most, prefix;
	char *end;

	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (inet_pton(AF_INET, host, bytes) == 1) {
		addr->gid = rcd_gid_from_ipv4(bytes);
		most = 32;
	} else if (inet_pton(AF_INET6, host, bytes) == 1) {
		addr->gid = rcd_gid_from_ipv6(bytes);
		most = 128;
	} else {
		return -EINVAL;
	}
	prefix = most;
	if (slash != NULL) {
		prefix = strtoul(slash + 1, &end, 10);
		if (end == slash + 1 || *end != '\0' || prefix > most)
			return -EINVAL;
	}
	addr->prefix_len = (uint8_t)prefix;
	return 0;
}

int
rcd_admin(struct rcd_engine *engine, const char *line)
{
	struct command command = { .engine = engine };
	char *copy = strdup(line);
	char *save = NULL;
	json_t *answer;
	int fd, err = 0;

	if (copy == NULL)
		return -ENOMEM;
	for (char *word = strtok_r(copy, " ", &save); word != NULL && command.count < WORDS_MAX;
		word = strtok_r(NULL, " ", &save))
		command.words[command.count++] = word;
	answer = carry_out(&command);
	free(copy);
	if (answer == NULL)
		return -ENOMEM;
	fd = memfd_create("rocade-answer", MFD_CLOEXEC);
	if (fd < 0)
		err = -errno;
	else if (json_dumpfd(answer, fd, JSON_COMPACT) != 0)
		err = -EIO;
	json_decref(answer);
	if (err != 0 && fd >= 0)
		close(fd);
	return err != 0 ? err : fd;
}
