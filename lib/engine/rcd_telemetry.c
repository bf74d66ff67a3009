/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * rte_telemetry: /rocade/links, /rocade/link,NAME, /rocade/statistic,NAME, /rocade/engine, with
 * what rcd_show.h has for any thread. Called in telemetry's thread, under a lock that keeps the
 * devices where they are.
 */
#include "rcd_telemetry.h"

#include <errno.h>
#include <pthread.h>
#include <rte_telemetry.h>
#include <rte_version.h>
#include <stdio.h>

#include "rcd_dev.h"
#include "rcd_engine_priv.h"
#include "rcd_lport.h"
#include "rcd_show.h"
#include "rcd_thread.h"

/* Its name since 23.03, which calls the older one deprecated. */
#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)
#define rte_tel_data_add_dict_uint rte_tel_data_add_dict_u64
#endif

static struct rcd_engine *the_engine;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void
rcd_telemetry_lock(void)
{
	pthread_mutex_lock(&lock);
}

void
rcd_telemetry_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static int
telemetry_links(const char *cmd, const char *params, struct rte_tel_data *data)
{
	(void)cmd;
	(void)params;
	rte_tel_data_start_array(data, RTE_TEL_STRING_VAL);
	rcd_telemetry_lock();
	for (uint32_t i = 0; the_engine != NULL && i < RCD_DEVS_MAX; i++)
		if (the_engine->ports.devs[i] != NULL)
			rte_tel_data_add_array_string(data, the_engine->ports.devs[i]->conf.name);
	rcd_telemetry_unlock();
	return 0;
}

/* A flat dictionary: what is in an item has the item's name and number before its own. */
struct telemetry_out {
	struct rte_tel_data *data;
	char prefix[32]; /* of the item at hand; items do not nest */
};

static const char *
telemetry_name(const struct telemetry_out *to, char *text, size_t size, const char *name)
{
	snprintf(text, size, "%s%s", to->prefix, name);
	return text;
}

static void
telemetry_text(void *out, const char *name, const char *val)
{
	const struct telemetry_out *to = out;
	char text[RTE_TEL_MAX_STRING_LEN];

	rte_tel_data_add_dict_string(to->data, telemetry_name(to, text, sizeof(text), name), val);
}

static void
telemetry_number(void *out, const char *name, uint64_t val)
{
	const struct telemetry_out *to = out;
	char text[RTE_TEL_MAX_STRING_LEN];

	rte_tel_data_add_dict_uint(to->data, telemetry_name(to, text, sizeof(text), name), val);
}

static void
telemetry_flag(void *out, const char *name, bool val)
{
	telemetry_number(out, name, val);
}

static void
telemetry_none(void *out, const char *name)
{
	(void)out;
	(void)name;
}

static void
telemetry_enter(void *out, const char *name)
{
	(void)out;
	(void)name;
}

static void
telemetry_item(void *out, const char *name, uint32_t number)
{
	struct telemetry_out *to = out;

	snprintf(to->prefix, sizeof(to->prefix), "%s%u_", name, number);
}

static void
telemetry_end(void *out)
{
	struct telemetry_out *to = out;

	to->prefix[0] = '\0';
}

static const struct rcd_show_ops telemetry_ops = {
	.text = telemetry_text,
	.number = telemetry_number,
	.flag = telemetry_flag,
	.none = telemetry_none,
	.list = telemetry_enter,
	.object = telemetry_enter,
	.item = telemetry_item,
	.end = telemetry_end,
};

static int
telemetry_dev(const char *name, struct rte_tel_data *data,
	void (*fn)(const struct rcd_show *show, const struct rcd_dev *dev))
{
	struct telemetry_out out = { .data = data };
	struct rcd_show show = { .ops = &telemetry_ops, .out = &out };
	const struct rcd_dev *dev;

	rcd_telemetry_lock();
	dev = the_engine != NULL && name != NULL ? rcd_dev_find(&the_engine->ports, name) : NULL;
	if (dev != NULL) {
		show.engine = the_engine;
		rte_tel_data_start_dict(data);
		fn(&show, dev);
	}
	rcd_telemetry_unlock();
	return dev != NULL ? 0 : -ENOENT;
}

/* Its name by both names: "name" is from before there was one list of what is shown. */
static void
telemetry_show_link(const struct rcd_show *show, const struct rcd_dev *dev)
{
	show->ops->text(show->out, "name", dev->conf.name);
	rcd_show_link(show, dev);
}

static int
telemetry_link_info(const char *cmd, const char *params, struct rte_tel_data *data)
{
	(void)cmd;
	return telemetry_dev(params, data, telemetry_show_link);
}

static int
telemetry_statistic(const char *cmd, const char *params, struct rte_tel_data *data)
{
	(void)cmd;
	return telemetry_dev(params, data, rcd_show_statistic);
}

static int
telemetry_engine_info(const char *cmd, const char *params, struct rte_tel_data *data)
{
	struct telemetry_out out = { .data = data };
	struct rcd_show show = { .ops = &telemetry_ops, .out = &out };

	(void)cmd;
	(void)params;
	rte_tel_data_start_dict(data);
	rcd_telemetry_lock();
	show.engine = the_engine;
	if (the_engine != NULL)
		rcd_show_engine(&show);
	rcd_telemetry_unlock();
	return 0;
}

void
rcd_telemetry_init(struct rcd_engine *engine)
{
	static bool registered;

	RCD_ON_CONTROL();
	rcd_telemetry_lock();
	the_engine = engine;
	rcd_telemetry_unlock();
	if (registered || engine == NULL)
		return;
	registered = true;
	rte_telemetry_register_cmd(
		"/rocade/links", telemetry_links, "Names of the links. No parameters");
	rte_telemetry_register_cmd(
		"/rocade/link", telemetry_link_info, "A link. Parameter: its name");
	rte_telemetry_register_cmd("/rocade/statistic", telemetry_statistic,
		"Counters of a link. Parameter: its name");
	rte_telemetry_register_cmd(
		"/rocade/engine", telemetry_engine_info, "The engine. No parameters");
}
