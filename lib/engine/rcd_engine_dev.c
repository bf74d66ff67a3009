/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Devices as programs ask for them, and the engine as host of lib/port.
 */
#include "rcd_engine_dev.h"

#include <errno.h>

#include "rcd_cma.h"
#include "rcd_contexts.h"
#include "rcd_counter.h"
#include "rcd_dev.h"
#include "rcd_dev_set.h"
#include "rcd_engine.h"
#include "rcd_engine_priv.h"
#include "rcd_gsi.h"
#include "rcd_lport.h"
#include "rcd_netns.h"
#include "rcd_ports.h"
#include "rcd_telemetry.h"
#include "rcd_thread.h"

static void
engine_dev_event(void *arg, struct rcd_dev *dev, uint32_t type)
{
	struct rcd_engine *engine = arg;

	rcd_contexts_event(&engine->contexts, dev, type);
}

static void
engine_dev_gone(void *arg, struct rcd_dev *dev)
{
	struct rcd_engine *engine = arg;

	rcd_contexts_end(&engine->contexts, dev);
	rcd_cma_dev_gone(engine->cm.cma, dev->lport.serial);
	rcd_cm_host_flush(&engine->cm);
}

const struct rcd_ports_ops rcd_engine_dev_ops = {
	.event = engine_dev_event,
	.gone = engine_dev_gone,
};

/* It looks again when it has to do something next. */
static void
engine_dev_done(struct rcd_engine *engine)
{
	rcd_engine_let_go(engine);
	rcd_engine_wake(engine);
}

int
rcd_engine_dev_add_place(struct rcd_engine *engine, const struct rcd_dev_conf *conf,
	uint32_t *index, uint32_t *serial, char *error, size_t error_len)
{
	struct rcd_away *away = NULL;
	const struct rcd_dev *dev;
	int err = 0;

	rcd_engine_take_over();
	if (conf->netns[0] != '\0' && engine->conf.netns_fd >= 0)
		err = rcd_netns_fetch(engine->conf.netns_fd, conf->netns, engine->lcores.count,
			&away, error, error_len);
	if (err == 0)
		err = rcd_ports_add(&engine->ports, conf, away, error, error_len);
	/* The first end of a wire has no place before the second one comes. */
	dev = err == 0 ? rcd_dev_find(&engine->ports, conf->name) : NULL;
	*index = dev != NULL ? dev->lport.index : 0;
	*serial = dev != NULL ? dev->lport.serial : 0;
	engine_dev_done(engine);
	return err;
}

int
rcd_engine_dev_add(
	struct rcd_engine *engine, const struct rcd_dev_conf *conf, char *error, size_t error_len)
{
	uint32_t index, serial;

	return rcd_engine_dev_add_place(engine, conf, &index, &serial, error, error_len);
}

int
rcd_engine_dev_del(struct rcd_engine *engine, const char *name)
{
	int err;

	rcd_engine_take_over();
	err = rcd_ports_del(&engine->ports, name);
	engine_dev_done(engine);
	return err;
}

int
rcd_engine_dev_del_serial(struct rcd_engine *engine, uint32_t serial)
{
	const struct rcd_dev *dev;
	int err = -ENOENT;

	rcd_engine_take_over();
	dev = rcd_dev_by_serial(&engine->ports, serial);
	if (dev != NULL)
		err = rcd_ports_del(&engine->ports, dev->conf.name);
	engine_dev_done(engine);
	return err;
}

int
rcd_engine_dev_set_mtu_serial(struct rcd_engine *engine, uint32_t serial, uint32_t mtu)
{
	struct rcd_dev *dev;

	if (mtu < RCD_DEV_MTU_MIN || mtu > RCD_DEV_MTU_MAX)
		return -EINVAL;
	rcd_engine_take_over();
	dev = rcd_dev_by_serial(&engine->ports, serial);
	if (dev != NULL) {
		dev->conf.mtu = mtu;
		rcd_dev_set_mtu(dev, mtu);
	}
	engine_dev_done(engine);
	return dev != NULL ? 0 : -ENODEV;
}

int
rcd_engine_dev_set(struct rcd_engine *engine, const char *name, const char *key, const char *val,
	char *error, size_t error_len)
{
	int err;

	rcd_engine_take_over();
	err = rcd_dev_set(&engine->ports, name, key, val, error, error_len);
	engine_dev_done(engine);
	return err;
}

uint64_t
rcd_engine_dev_count(struct rcd_engine *engine, const char *name, enum rcd_counter counter)
{
	const struct rcd_dev *dev = rcd_dev_find(&engine->ports, name);

	return dev != NULL ? rcd_lport_sum(&dev->lport, counter) : 0;
}

int
rcd_engine_dev_port(struct rcd_engine *engine, const char *name, uint16_t *port_id)
{
	const struct rcd_dev *dev = rcd_dev_find(&engine->ports, name);

	if (dev == NULL)
		return -ENOENT;
	*port_id = dev->lport.port_id;
	return 0;
}
