/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * EAL's thread sets a word, and the control thread looks at it when it looks at links: the kernel
 * has time. EAL's functions for this are experimental in all releases so far.
 */
#define ALLOW_EXPERIMENTAL_API
#include "rcd_unplug.h"

#include <errno.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <string.h>
#include <unistd.h>

#include "rcd_dev.h"
#include "rcd_ethdev.h"
#include "rcd_log.h"
#include "rcd_thread.h"

/** Between two tries to end a watch whose function is running. */
#define AGAIN_US 100

/* In EAL's thread. */
static void
unplug_hear(const char *name, enum rte_dev_event_type event, void *arg)
{
	struct rcd_dev *dev = arg;

	(void)name;
	if (event == RTE_DEV_EVENT_REMOVE)
		__atomic_store_n(&dev->unplug_asked, true, __ATOMIC_RELAXED);
}

void
rcd_unplug_watch(struct rcd_dev *dev)
{
	const struct rte_device *nic = dev->wrapped;
	int err;

	RCD_ON_CONTROL();
	if (nic == NULL || strcmp(rte_bus_name(rte_dev_bus(nic)), "pci") != 0)
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
rcd_unplug_end(struct rcd_dev *dev)
{
	int err = -EAGAIN;

	RCD_ON_CONTROL();
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

bool
rcd_unplug_asked(const struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	return __atomic_load_n(&dev->unplug_asked, __ATOMIC_RELAXED);
}
