/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of the command line and their answers, both JSON (rcd_admin_req.h, rcd_show.h).
 *
 *   link | dev | statistic [name] | resource [kind] | counters | engine | stop
 *   link_add name, and keys of rcd_link_key.def; link_set name, and keys of it that are LIVE
 *   link_del name
 *   addr_add name address; addr_del name address
 *
 * Of these a guest has link_add and link_del (rcd_guest.h).
 *
 * A request that can't be carried out is answered by {"error": "..."}.
 */
#include "rcd_admin.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_admin_req.h"
#include "rcd_away.h"
#include "rcd_bytes.h"
#include "rcd_dev.h"
#include "rcd_dev_conf.h"
#include "rcd_dev_set.h"
#include "rcd_dev_view.h"
#include "rcd_engine_priv.h"
#include "rcd_gid.h"
#include "rcd_groups.h"
#include "rcd_guest.h"
#include "rcd_lport.h"
#include "rcd_ports.h"
#include "rcd_show.h"
#include "rcd_thread.h"
#include "rcd_vlans.h"
#include "rcd_wr.h"

#define ANY "*" /**< keys of links, besides */

__attribute__((format(printf, 1, 2))) static json_t *
admin_error(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* What was cut, or the kernel said, may be no UTF-8. */
	for (char *at = text; *at != '\0'; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	return json_pack("{s:s}", "error", text);
}

/* What was asked for is done, or a sentence says why not. */
static json_t *
admin_done(int err, const char *text)
{
	return err == 0 ? json_object() : admin_error("%s", text);
}

/* All that can be shown, as JSON. */
static struct rcd_show
admin_shows(struct rcd_engine *engine, struct rcd_show_json *out)
{
	return (struct rcd_show){
		.ops = &rcd_show_json_ops, .out = out, .engine = engine, .all = true
	};
}

static json_t *
admin_each(struct rcd_engine *engine, const char *name,
	void (*fn)(const struct rcd_show *show, const struct rcd_dev *dev))
{
	struct rcd_show_json out = { .stack = { json_array() } };
	const struct rcd_show show = admin_shows(engine, &out);

	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		const struct rcd_dev *dev = engine->ports.devs[i];

		if (dev == NULL || (name != NULL && strcmp(dev->conf.name, name) != 0))
			continue;
		show.ops->object(show.out, NULL);
		fn(&show, dev);
		show.ops->end(show.out);
	}
	return out.stack[0];
}

static json_t *
admin_link(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	(void)req;
	return admin_each(engine, NULL, rcd_show_link);
}

static json_t *
admin_dev(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	(void)req;
	return admin_each(engine, NULL, rcd_show_dev);
}

static json_t *
admin_statistic(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	const char *name = rcd_admin_req_get(req, "name");

	if (name != NULL && rcd_dev_find(&engine->ports, name) == NULL)
		return admin_error("there is no link %s", name);
	return admin_each(engine, name, rcd_show_statistic);
}

static json_t *
admin_resource_kind(struct rcd_engine *engine, const char *kind)
{
	struct rcd_show_json out = { .stack = { json_array() } };
	const struct rcd_show show = admin_shows(engine, &out);

	if (strcmp(kind, "quota") == 0) {
		rcd_show_quota(&show);
	} else if (!rcd_show_objects(&show, kind)) {
		json_decref(out.stack[0]);
		return admin_error("no resources of kind %s; there are pd, cq, qp, mr, srq, ctx, "
				   "cm_id, quota",
			kind);
	}
	return out.stack[0];
}

static json_t *
admin_resource(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	const char *kind = rcd_admin_req_get(req, "kind");

	return kind == NULL ? admin_each(engine, NULL, rcd_show_resource)
			    : admin_resource_kind(engine, kind);
}

static json_t *
admin_counters(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	struct rcd_show_json out = { .stack = { json_array() } };
	const struct rcd_show show = admin_shows(engine, &out);

	(void)req;
	rcd_show_counters(&show);
	return out.stack[0];
}

static json_t *
admin_engine(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	struct rcd_show_json out = { .stack = { json_object() } };
	const struct rcd_show show = admin_shows(engine, &out);

	(void)req;
	rcd_show_engine(&show);
	return out.stack[0];
}

static json_t *
admin_stop(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	(void)req;
	__atomic_store_n(&engine->stopping, true, __ATOMIC_RELAXED);
	return json_object();
}

/*
 * Both ends of a wire are added together. The other one is alike, and impairs what it sends, but
 * has no addresses yet.
 */
static int
admin_add_wire(
	struct rcd_engine *engine, const struct rcd_dev_conf *conf, char *text, size_t text_len)
{
	struct rcd_dev_conf peer = *conf;
	int err;

	memcpy(peer.name, conf->target, sizeof(peer.name));
	snprintf(peer.target, sizeof(peer.target), "%s", conf->name);
	peer.addr_count = 0;
	peer.gateway4 = peer.gateway6 = (struct rcd_gid){ .raw = { 0 } };
	peer.down = false;
	err = rcd_ports_add(&engine->ports, conf, NULL, text, text_len);
	/* It is there at once when its other end was waiting for it. */
	if (err != 0 || rcd_dev_find(&engine->ports, conf->name) != NULL)
		return err;
	err = rcd_ports_add(&engine->ports, &peer, NULL, text, text_len);
	if (err != 0)
		rcd_ports_del(&engine->ports, conf->name);
	return err;
}

static json_t *
admin_link_add(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	const char *name = rcd_admin_req_get(req, "name");
	struct rcd_dev_conf conf = { .addr_count = 0 };
	enum rcd_link_key key;
	char text[512] = "";
	int err = 0;

	if (name == NULL || strlen(name) >= sizeof(conf.name))
		return admin_error("name: a link's, of 1 to %d characters", RCD_NAME_LEN - 1);
	snprintf(conf.name, sizeof(conf.name), "%s", name);
	for (uint32_t i = 0; err == 0 && i < req->count; i++)
		if (strcmp(req->members[i].key, "name") != 0)
			err = rcd_dev_conf_set(&conf, req->members[i].key, req->members[i].val,
				text, sizeof(text));
	if (err == 0)
		err = rcd_dev_conf_check(&conf, &key, text, sizeof(text));
	if (err == 0 && conf.attach == RCD_ATTACH_WIRE)
		err = admin_add_wire(engine, &conf, text, sizeof(text));
	else if (err == 0) {
		err = rcd_ports_add(&engine->ports, &conf, req->away, text, sizeof(text));
		req->away = NULL;
	}
	return admin_done(err, text);
}

static json_t *
admin_link_del(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	const char *name = rcd_admin_req_get(req, "name");

	if (name == NULL || rcd_ports_del(&engine->ports, name) != 0)
		return admin_error("there is no link %s", name != NULL ? name : "without a name");
	return json_object();
}

/* One after another, up to one that can't be. */
static json_t *
admin_link_set(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	const char *name = rcd_admin_req_get(req, "name");
	char text[512] = "";
	int err = 0;

	if (name == NULL || req->count < 2)
		return admin_error("link_set: needs a name, and what to set");
	for (uint32_t i = 0; err == 0 && i < req->count; i++)
		if (strcmp(req->members[i].key, "name") != 0)
			err = rcd_dev_set(&engine->ports, name, req->members[i].key,
				req->members[i].val, text, sizeof(text));
	return admin_done(err, text);
}

static json_t *
admin_addr(struct rcd_engine *engine, const struct rcd_admin_req *req, bool add)
{
	const char *name = rcd_admin_req_get(req, "name");
	const char *address = rcd_admin_req_get(req, "address");
	struct rcd_addr addr = { .vlan_id = 0 };
	struct rcd_dev *dev;
	int err;

	if (name == NULL || address == NULL)
		return admin_error("%s: needs a name and an address", req->op);
	dev = rcd_dev_find(&engine->ports, name);
	if (dev == NULL)
		return admin_error("there is no link %s", name);
	if (!dev->lport.answers)
		return admin_error("%s has the addresses of %s: use ip addr", dev->conf.name,
			rcd_dev_conf_netdev(&dev->conf));
	if (rcd_addr_parse(address, &addr) != 0)
		return admin_error("address: %s is none; VLAN identifiers are 1 to 4094", address);
	err = add ? rcd_dev_view_addr_add(dev, &addr) : rcd_dev_view_addr_del(dev, &addr.gid);
	if (err != 0)
		return admin_error("%s: %s", address, strerror(-err));
	rcd_groups_follow(dev);
	rcd_vlans_follow(dev);
	rcd_dev_event(dev, RCD_EVENT_GID_CHANGE);
	return json_object();
}

static json_t *
admin_addr_add(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	return admin_addr(engine, req, true);
}

static json_t *
admin_addr_del(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	return admin_addr(engine, req, false);
}

static const struct {
	const char *op;
	json_t *(*serve)(struct rcd_engine *engine, struct rcd_admin_req *req);
	const char *members[2]; /* that it may have */
} admin_ops[] = {
	{ "link", admin_link, { NULL } },
	{ "link_add", admin_link_add, { ANY } },
	{ "link_del", admin_link_del, { "name" } },
	{ "link_set", admin_link_set, { ANY } },
	{ "addr_add", admin_addr_add, { "name", "address" } },
	{ "addr_del", admin_addr_del, { "name", "address" } },
	{ "dev", admin_dev, { NULL } },
	{ "resource", admin_resource, { "kind" } },
	{ "statistic", admin_statistic, { "name" } },
	{ "counters", admin_counters, { NULL } },
	{ "engine", admin_engine, { NULL } },
	{ "stop", admin_stop, { NULL } },
};

/* @return a member that an operation has not, or NULL */
static const char *
admin_stranger(const struct rcd_admin_req *req, const char *const *members)
{
	for (uint32_t i = 0; i < req->count; i++) {
		bool known = false;

		for (int k = 0; k < 2 && members[k] != NULL; k++)
			known |= strcmp(members[k], ANY) == 0 ||
				strcmp(members[k], req->members[i].key) == 0;
		if (!known)
			return req->members[i].key;
	}
	return NULL;
}

static json_t *
admin_carry_out(struct rcd_engine *engine, struct rcd_admin_req *req)
{
	for (size_t i = 0; i < RCD_ARRAY_COUNT(admin_ops); i++) {
		const char *stranger;

		if (strcmp(req->op, admin_ops[i].op) != 0)
			continue;
		stranger = admin_stranger(req, admin_ops[i].members);
		if (stranger != NULL)
			return admin_error("%s: knows no %.40s", req->op, stranger);
		return admin_ops[i].serve(engine, req);
	}
	return admin_error("no such command: %.40s", req->op);
}

/* @return NULL: it is nothing for guests */
static json_t *
admin_carry_out_for(const struct rcd_conn *guest, struct rcd_admin_req *req)
{
	char text[512] = "";

	if (strcmp(req->op, "link_add") == 0)
		return admin_done(rcd_guest_link_add(guest, req, text, sizeof(text)), text);
	if (strcmp(req->op, "link_del") == 0)
		return admin_done(rcd_guest_link_del(guest, req, text, sizeof(text)), text);
	return NULL;
}

int
rcd_admin(struct rcd_engine *engine, const struct rcd_conn *guest, struct rcd_away *away,
	const char *text)
{
	struct rcd_admin_req req;
	char what[256] = "";
	json_t *answer = NULL;
	int err, fd;

	RCD_ON_CONTROL();
	err = rcd_admin_req_parse(&req, text, what, sizeof(what));
	req.away = away;
	if (err == -EINVAL)
		answer = admin_error("%s", what);
	else if (err == 0)
		answer = guest != NULL ? admin_carry_out_for(guest, &req)
				       : admin_carry_out(engine, &req);
	if (err == 0)
		rcd_admin_req_free(&req);
	rcd_away_free(req.away);
	if (answer == NULL)
		return err == 0 && guest != NULL ? -EPERM : -ENOMEM;
	fd = memfd_create("rocade-answer", MFD_CLOEXEC);
	err = fd < 0 ? -errno : 0;
	if (err == 0 && json_dumpfd(answer, fd, JSON_COMPACT) != 0)
		err = -EIO;
	json_decref(answer);
	if (err != 0 && fd >= 0)
		close(fd);
	return err != 0 ? err : fd;
}
