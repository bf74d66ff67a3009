/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * EAL's thread sets a word, and the control thread looks at it when it looks at links: the kernel
 * has time. EAL's functions for this are experimental in all releases so far.
 */
#define ALLOW_EXPERIMENTAL_API
#include "rcd_unplug.h"

#include <errno.h>
#include <rte_common.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <unistd.h>

#include "rcd_dev.h"
#include "rcd_ethdev.h"
#include "rcd_log.h"
#include "rcd_thread.h"

/** Between two tries to end a watch whose function is running. */
#define AGAIN_US 100

static const enum rte_eth_event_type events[] = { RTE_ETH_EVENT_INTR_RMV,
	RTE_ETH_EVENT_INTR_RESET };

/* In EAL's thread. */
static void
unplug_hear(const char *name, enum rte_dev_event_type event, void *arg)
{
	struct rcd_dev *dev = arg;

	(void)name;
	if (event == RTE_DEV_EVENT_REMOVE)
		__atomic_store_n(&dev->unplug_asked, true, __ATOMIC_RELAXED);
}

/* Likewise: what drivers hear by themselves. */
static int
unplug_hear_port(uint16_t port_id, enum rte_eth_event_type type, void *arg, void *param)
{
	struct rcd_dev *dev = arg;

	(void)port_id;
	(void)param;
	__atomic_store_n(type == RTE_ETH_EVENT_INTR_RMV ? &dev->unplug_asked : &dev->reset_asked,
		true, __ATOMIC_RELAXED);
	return 0;
}

static void
unplug_watch_nic(struct rcd_dev *dev)
{
	const struct rte_device *nic = dev->wrapped;
	int err;

	if (!rcd_ethdev_is_nic(nic))
		nic = rcd_ethdev_nic(dev->lport.port_id);
	if (nic == NULL)
		return;
	err = rte_dev_event_callback_register(rte_dev_name(nic), unplug_hear, dev);
	if (err == 0)
		dev->unplug_watched = nic;
	else
		RCD_LOG(NOTICE, "%s: nobody will say that its NIC is taken away: %s",
			dev->conf.name, strerror(-err));
}

void
rcd_unplug_watch(struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	unplug_watch_nic(dev);
	dev->port_watched = true;
	for (size_t i = 0; i < RTE_DIM(events); i++)
		rte_eth_dev_callback_register(dev->lport.port_id, events[i], unplug_hear_port, dev);
}

static void
unplug_end_nic(struct rcd_dev *dev)
{
	int err = -EAGAIN;

	if (dev->unplug_watched == NULL)
		return;
	while (err == -EAGAIN) {
		err = rte_dev_event_callback_unregister(
			rte_dev_name(dev->unplug_watched), unplug_hear, dev);
		if (err == -EAGAIN)
			usleep(AGAIN_US);
	}
	dev->unplug_watched = NULL;
}

void
rcd_unplug_end(struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	unplug_end_nic(dev);
	if (!dev->port_watched)
		return;
	dev->port_watched = false;
	for (size_t i = 0; i < RTE_DIM(events); i++)
		while (rte_eth_dev_callback_unregister(
			       dev->lport.port_id, events[i], unplug_hear_port, dev) == -EAGAIN)
			usleep(AGAIN_US);
}

bool
rcd_unplug_reset_asked(struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	return __atomic_exchange_n(&dev->reset_asked, false, __ATOMIC_RELAXED);
}

bool
rcd_unplug_asked(const struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	return __atomic_load_n(&dev->unplug_asked, __ATOMIC_RELAXED);
}
