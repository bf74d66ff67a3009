/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Keys of a link that change while it is there. What a value may be is rcd_dev_conf.c's.
 */
#include "rcd_dev_set.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rcd_dev.h"
#include "rcd_ethdev.h"
#include "rcd_pause.h"
#include "rcd_port.h"
#include "rcd_ports.h"
#include "rcd_raw.h"
#include "rcd_thread.h"

__attribute__((format(printf, 4, 5))) static int
dev_set_refuse(int err, char *error, size_t error_len, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, error_len, format, args);
	va_end(args);
	return err;
}

/* Queue pairs that are connected keep the path MTU that they were told. */
static int
dev_set_mtu(struct rcd_dev *dev, uint32_t mtu, char *error, size_t error_len)
{
	const char *netdev = rcd_dev_conf_netdev(&dev->conf);
	uint32_t most;
	int err;

	if (netdev != NULL)
		return dev_set_refuse(-EINVAL, error, error_len,
			"mtu: the kernel has that of %s: ip link set %s mtu %u", netdev, netdev,
			mtu);
	err = rcd_port_mtu_max(dev->lport.port_id, &most);
	if (err == 0 && mtu > most)
		return dev_set_refuse(
			-EINVAL, error, error_len, "mtu: the port does %u at most", most);
	if (err == 0)
		err = rcd_ethdev_change_mtu(dev, (uint16_t)mtu);
	/* A wire takes any frame; its driver has nothing to change. */
	if (err != 0 && !dev->lport.wire)
		return dev_set_refuse(
			err, error, error_len, "mtu: the port keeps its own: %s", strerror(-err));
	rcd_dev_set_mtu(dev, mtu);
	return 0;
}

static int
dev_set_impair(struct rcd_dev *dev, const char *args, char *error, size_t error_len)
{
	char what[256] = "";
	int err;

	if (dev->conf.impair[0] == '\0')
		return dev_set_refuse(-EINVAL, error, error_len,
			"impair: %s is not impaired: add it with impair ARGS", dev->conf.name);
	if (args[0] == '\0')
		return dev_set_refuse(
			-EINVAL, error, error_len, "impair: seed=1 alone ends all of it");
	err = dev->ports->conf.impair_set(dev->lport.port_id, args, what, sizeof(what));
	if (err != 0)
		return dev_set_refuse(err, error, error_len, "impair: %s", what);
	return 0;
}

static int
dev_set_pause(struct rcd_dev *dev, enum rcd_pause pause, char *error, size_t error_len)
{
	int err = dev->reset_ns != 0 ? -EAGAIN : rcd_pause_tell(dev, pause);

	if (err != 0)
		return dev_set_refuse(
			err, error, error_len, "pause: the driver refuses: %s", strerror(-err));
	return 0;
}

static void
dev_set_state(struct rcd_dev *dev, bool down)
{
	dev->admin_down = down;
	rcd_dev_check_link(dev);
	if (dev->peer != NULL)
		rcd_dev_check_link(dev->peer);
}

int
rcd_dev_set(struct rcd_ports *ports, const char *name, const char *key, const char *val,
	char *error, size_t error_len)
{
	struct rcd_dev *dev = rcd_dev_find(ports, name);
	int which = rcd_link_key_find(key);
	enum rcd_link_key wrong;
	struct rcd_dev_conf conf;
	int err = 0;

	RCD_ON_CONTROL();
	if (dev == NULL)
		return dev_set_refuse(-ENOENT, error, error_len, "there is no link %.63s", name);
	if (which >= 0 && !rcd_link_key_live((enum rcd_link_key)which))
		return dev_set_refuse(
			-EINVAL, error, error_len, "%s: said when a link is added", key);
	conf = dev->conf;
	conf.given = 0;
	err = rcd_dev_conf_set(&conf, key, val, error, error_len);
	if (err == 0)
		err = rcd_dev_conf_check(&conf, &wrong, error, error_len);
	if (err != 0)
		return err;
	if (which == RCD_LINK_KEY_MTU)
		err = dev_set_mtu(dev, conf.mtu, error, error_len);
	else if (which == RCD_LINK_KEY_IMPAIR)
		err = dev_set_impair(dev, conf.impair, error, error_len);
	else if (which == RCD_LINK_KEY_PAUSE)
		err = dev_set_pause(dev, conf.pause, error, error_len);
	else if (which == RCD_LINK_KEY_STATE)
		dev_set_state(dev, conf.down);
	if (err != 0)
		return err;
	dev->conf.mtu = conf.mtu;
	dev->conf.down = conf.down;
	dev->conf.pause = conf.pause;
	dev->conf.raw = conf.raw;
	/* Sniffers that are there have nothing more when this returns, or go on. */
	if (which == RCD_LINK_KEY_RAW)
		rcd_raw_show(&dev->lport, dev->lport.flows, conf.raw == RCD_RAW_SNIFF);
	dev->conf.sack = conf.sack;
	dev->conf.tos = conf.tos;
	dev->conf.gateway4 = conf.gateway4;
	dev->conf.gateway6 = conf.gateway6;
	memcpy(dev->conf.cc, conf.cc, sizeof(conf.cc));
	memcpy(dev->conf.cc_class, conf.cc_class, sizeof(conf.cc_class));
	memcpy(dev->conf.sl_dscp, conf.sl_dscp, sizeof(conf.sl_dscp));
	if (which == RCD_LINK_KEY_IMPAIR)
		memcpy(dev->conf.impair, conf.impair, sizeof(conf.impair));
	return 0;
}
