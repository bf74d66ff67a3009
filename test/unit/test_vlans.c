/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a filter of VLANs that is full is asked a few times, however many it lacks, and has as many
 * as it has room for. Method: the driver is the test's, and the kernel has netdevs of all VLANs.
 */
#include "rcd_vlans.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <string.h>

#include "rcd_dev.h"
#include "rcd_tap.h"

#define ROOM     64u
#define REFUSALS 20 /* at a change: two goes of eight, and priorities without a VLAN */

static struct driver {
	bool has[RCD_VLANS];
	uint32_t count;
	uint32_t asked, refused;
	int offloads;
} driver;

int
__wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info);
int
__wrap_rte_eth_dev_get_vlan_offload(uint16_t port);
int
__wrap_rte_eth_dev_set_vlan_offload(uint16_t port, int offloads);
int
__wrap_rte_eth_dev_vlan_filter(uint16_t port, uint16_t id, int on);

int
__wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info)
{
	(void)port;
	memset(info, 0, sizeof(*info));
	info->rx_offload_capa = RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	return 0;
}

int
__wrap_rte_eth_dev_get_vlan_offload(uint16_t port)
{
	(void)port;
	return driver.offloads;
}

int
__wrap_rte_eth_dev_set_vlan_offload(uint16_t port, int offloads)
{
	(void)port;
	driver.offloads = offloads;
	return 0;
}

int
__wrap_rte_eth_dev_vlan_filter(uint16_t port, uint16_t id, int on)
{
	(void)port;
	driver.asked++;
	if (on && !driver.has[id] && driver.count == ROOM) {
		driver.refused++;
		return -ENOSPC;
	}
	driver.count += (uint32_t)(on != 0) - driver.has[id];
	driver.has[id] = on != 0;
	return 0;
}

static struct rcd_dev dev;

/* Its kernel's netdev is only looked for. */
static void
begin(void)
{
	driver = (struct driver){ 0 };
	dev = (struct rcd_dev){ .tuntap = (struct rcd_tuntap *)&driver, .started = true };
	for (uint16_t id = 1; id < ROOM; id++)
		rcd_vlans_set_kernels(&dev, id, true);
	rcd_vlans_tell(&dev);
	CU_ASSERT(driver.has[0] && driver.count == ROOM && driver.refused == 0);
}

/* Priorities without a VLAN leave their place to one. */
static void
all_there_are(void)
{
	begin();
	for (uint16_t id = 1; id < RCD_VLANS - 1; id++)
		rcd_vlans_set_kernels(&dev, id, true);
	driver.asked = driver.refused = 0;
	rcd_vlans_follow(&dev);
	CU_ASSERT(driver.refused > 0 && driver.refused <= REFUSALS);
	CU_ASSERT(driver.asked <= REFUSALS + ROOM);
	CU_ASSERT_EQUAL(driver.count, ROOM);
	CU_ASSERT(!driver.has[0]);
	/* What it lacks may get through all the same. */
	CU_ASSERT_EQUAL(driver.offloads, 0);
}

/* With each change those that it lacks are tried again: what went made room for one. */
static void
one_goes(void)
{
	all_there_are();
	rcd_vlans_set_kernels(&dev, 7, false);
	driver.refused = 0;
	rcd_vlans_follow(&dev);
	CU_ASSERT(driver.refused > 0 && driver.refused <= REFUSALS);
	CU_ASSERT(!driver.has[7] && driver.has[ROOM + 1]);
	CU_ASSERT_EQUAL(driver.count, ROOM);
	driver.asked = 0;
	rcd_vlans_follow(&dev);
	CU_ASSERT_EQUAL(driver.asked, 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(all_there_are),
		RCD_TEST(one_goes),
	};

	return rcd_tap_run("vlans", tests, sizeof(tests) / sizeof(tests[0]));
}
