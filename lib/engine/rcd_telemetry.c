/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * rte_telemetry: /rocade/links, /rocade/link,NAME, /rocade/statistic,NAME, /rocade/engine. Called
 * in telemetry's thread: it reads what may be read by any thread, under a lock that keeps the
 * devices where they are.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <pthread.h>
#include <rte_telemetry.h>
#include <rte_version.h>

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
links(const char *cmd, const char *params, struct rte_tel_data *data)
{
	(void)cmd;
	(void)params;
	rte_tel_data_start_array(data, RTE_TEL_STRING_VAL);
	rcd_telemetry_lock();
	for (uint32_t i = 0; the_engine != NULL && i < RCD_DEVS_MAX; i++)
		if (the_engine->devs[i] != NULL && !the_engine->devs[i]->wire_waits)
			rte_tel_data_add_array_string(data, the_engine->devs[i]->conf.name);
	rcd_telemetry_unlock();
	return 0;
}

static struct rcd_dev *
named(const char *params)
{
	struct rcd_dev *dev = NULL;

	if (the_engine != NULL && params != NULL)
		dev = rcd_dev_find(the_engine, params);
	return dev != NULL && !dev->wire_waits ? dev : NULL;
}

static int
link_info(const char *cmd, const char *params, struct rte_tel_data *data)
{
	const struct rcd_dev *dev;
	int err = -ENOENT;

	(void)cmd;
	rcd_telemetry_lock();
	dev = named(params);
	if (dev != NULL) {
		rte_tel_data_start_dict(data);
		rte_tel_data_add_dict_string(data, "name", dev->conf.name);
		rte_tel_data_add_dict_string(data, "state", dev->up ? "ACTIVE" : "DOWN");
		rte_tel_data_add_dict_string(data, "driver", dev->driver);
		rte_tel_data_add_dict_int(data, "dpdk_port", dev->port_id);
		rte_tel_data_add_dict_int(data, "mtu", (int)dev->mtu);
		rte_tel_data_add_dict_int(data, "active_mtu", (int)dev->path_mtu);
		err = 0;
	}
	rcd_telemetry_unlock();
	return err;
}

static int
statistic(const char *cmd, const char *params, struct rte_tel_data *data)
{
	const struct rcd_dev *dev;
	int err = -ENOENT;

	(void)cmd;
	rcd_telemetry_lock();
	dev = named(params);
	if (dev != NULL) {
		rte_tel_data_start_dict(data);
		for (int i = 0; i < RCD_COUNTER_COUNT; i++) {
			enum rcd_counter id = (enum rcd_counter)i;

			rte_tel_data_add_dict_uint(
				data, rcd_counter_name(id), rcd_dev_sum(dev, id));
		}
		err = 0;
	}
	rcd_telemetry_unlock();
	return err;
}

static int
engine_info(const char *cmd, const char *params, struct rte_tel_data *data)
{
	(void)cmd;
	(void)params;
	rte_tel_data_start_dict(data);
	rcd_telemetry_lock();
	if (the_engine != NULL) {
		rte_tel_data_add_dict_string(data, "version", RCD_RELEASE);
		rte_tel_data_add_dict_int(data, "clients", (int)the_engine->client_count);
		rte_tel_data_add_dict_int(data, "queue_pairs", (int)the_engine->qp_used);
		rte_tel_data_add_dict_uint(data, "longest_step_work", the_engine->longest_work);
		for (uint32_t i = 0; i < the_engine->lcore_count; i++) {
			char name[40];

			snprintf(name, sizeof(name), "lcore%u_polls",
				the_engine->lcores[i]->lcore_id);
			rte_tel_data_add_dict_uint(
				data, name, rcd_lcore_tally(&the_engine->lcores[i]->polls));
			snprintf(name, sizeof(name), "lcore%u_busy_polls",
				the_engine->lcores[i]->lcore_id);
			rte_tel_data_add_dict_uint(
				data, name, rcd_lcore_tally(&the_engine->lcores[i]->busy_polls));
			snprintf(name, sizeof(name), "lcore%u_longest_poll_work",
				the_engine->lcores[i]->lcore_id);
			rte_tel_data_add_dict_uint(
				data, name, rcd_lcore_tally(&the_engine->lcores[i]->longest_work));
		}
	}
	rcd_telemetry_unlock();
	return 0;
}

void
rcd_telemetry_init(struct rcd_engine *engine)
{
	static bool registered;

	rcd_telemetry_lock();
	the_engine = engine;
	rcd_telemetry_unlock();
	if (registered || engine == NULL)
		return;
	registered = true;
	rte_telemetry_register_cmd("/rocade/links", links, "Names of the links. No parameters");
	rte_telemetry_register_cmd("/rocade/link", link_info, "A link. Parameter: its name");
	rte_telemetry_register_cmd(
		"/rocade/statistic", statistic, "Counters of a link. Parameter: its name");
	rte_telemetry_register_cmd("/rocade/engine", engine_info, "The engine. No parameters");
}
