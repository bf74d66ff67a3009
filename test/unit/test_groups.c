/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a list of groups that a driver refuses for reasons of its own is given again, now and then,
 * until it takes it; one that it has no room for is not. Method: the driver is the test's, which
 * has looks go by.
 */
#include "rcd_groups.h"

#include <errno.h>
#include <rte_ethdev.h>

#include "rcd_dev.h"
#include "rcd_tap.h"

#define LOOKS 16 /* between two tries */
#define OWN   2  /* groups of a host without addresses of IPv6 */

static struct driver {
	int list_err;    /* 0: it takes lists... */
	uint32_t room;   /* ...that are no longer than this */
	bool knows_mode; /* promiscuous */
	bool hears_all;  /* in that mode */
	uint32_t asked;  /* lists that it was given */
	uint32_t all;    /* times that it was told to hear all groups */
	uint32_t has;    /* groups */
} driver;

int
__wrap_rte_eth_allmulticast_enable(uint16_t port);
int
__wrap_rte_eth_promiscuous_enable(uint16_t port);
int
__wrap_rte_eth_promiscuous_disable(uint16_t port);
int
__wrap_rte_eth_dev_set_mc_addr_list(uint16_t port, struct rte_ether_addr *list, uint32_t count);

int
__wrap_rte_eth_allmulticast_enable(uint16_t port)
{
	(void)port;
	driver.all++;
	return -ENOTSUP;
}

static int
set_mode(bool on)
{
	if (!driver.knows_mode)
		return -ENOTSUP;
	driver.hears_all = on;
	return 0;
}

int
__wrap_rte_eth_promiscuous_enable(uint16_t port)
{
	(void)port;
	return set_mode(true);
}

int
__wrap_rte_eth_promiscuous_disable(uint16_t port)
{
	(void)port;
	return set_mode(false);
}

int
__wrap_rte_eth_dev_set_mc_addr_list(uint16_t port, struct rte_ether_addr *list, uint32_t count)
{
	(void)port;
	(void)list;
	driver.asked++;
	if (driver.list_err == 0 && count <= driver.room)
		driver.has = count;
	return driver.list_err != 0 ? driver.list_err : count <= driver.room ? 0 : -ENOSPC;
}

static struct rcd_dev dev;

/* One that answers by itself, on a port that took what it was told. */
static void
begin(bool knows_mode)
{
	static const struct rcd_gid_table none;

	driver = (struct driver){ .room = 64, .knows_mode = knows_mode };
	dev = (struct rcd_dev){ .lport.answers = true, .gids = &none, .started = true };
	dev.conf.attach = RCD_ATTACH_PORT;
	rcd_groups_tell(&dev);
	CU_ASSERT_EQUAL(dev.groups.kind, RCD_GROUPS_LISTED);
	CU_ASSERT_EQUAL(driver.has, OWN);
}

static void
join(uint8_t number)
{
	struct rcd_gid group = rcd_gid_from_ipv4((const uint8_t[]){ 239, 1, 1, number });

	CU_ASSERT_EQUAL(rcd_groups_join(&dev, &group), 0);
	rcd_groups_look(&dev);
}

static void
look(uint32_t times)
{
	while (times-- > 0)
		rcd_groups_look(&dev);
}

static void
refused_for_a_while(void)
{
	for (int mode = 0; mode < 2; mode++) {
		uint32_t tries;

		begin(mode);
		driver.list_err = -EIO;
		driver.has = 0;
		join(1);
		CU_ASSERT_EQUAL(dev.groups.kind, mode ? RCD_GROUPS_CROWDED : RCD_GROUPS_LISTED);
		CU_ASSERT_EQUAL(dev.groups.unheard, mode ? 0 : OWN + 1);
		CU_ASSERT_EQUAL(driver.hears_all, mode);
		/* Again, and not with each look. */
		tries = driver.asked;
		look(LOOKS - 1);
		CU_ASSERT_EQUAL(driver.asked, tries);
		look(1);
		CU_ASSERT(driver.asked > tries);
		driver.list_err = 0;
		look(LOOKS);
		CU_ASSERT_EQUAL(dev.groups.kind, RCD_GROUPS_LISTED);
		CU_ASSERT_EQUAL(dev.groups.unheard, 0);
		CU_ASSERT_EQUAL(driver.has, OWN + 1);
		CU_ASSERT(!driver.hears_all);
		tries = driver.asked;
		look(4 * LOOKS);
		CU_ASSERT_EQUAL(driver.asked, tries);
		rcd_groups_fini(&dev.groups);
	}
}

static void
without_room(void)
{
	for (int mode = 0; mode < 2; mode++) {
		uint32_t tries;

		begin(mode);
		driver.room = OWN;
		join(1);
		CU_ASSERT_EQUAL(dev.groups.unheard, mode ? 0 : 1);
		CU_ASSERT_EQUAL(driver.hears_all, mode);
		CU_ASSERT_EQUAL(driver.has, OWN);
		tries = driver.asked;
		look(4 * LOOKS);
		CU_ASSERT_EQUAL(driver.asked, tries);
		rcd_groups_fini(&dev.groups);
	}
}

/* The kernel's sockets hear what is joined: a driver of theirs is told of nothing. */
static void
by_udp(void)
{
	driver = (struct driver){ .room = 64 };
	dev = (struct rcd_dev){ .started = true };
	dev.conf.attach = RCD_ATTACH_NETDEV;
	dev.mode = RCD_NETDEV_UDP;
	rcd_groups_tell(&dev);
	look(LOOKS);
	CU_ASSERT_EQUAL(driver.all + driver.asked, 0);
	CU_ASSERT_EQUAL(dev.groups.kind, RCD_GROUPS_UNTOLD);
	dev.mode = RCD_NETDEV_PACKET;
	rcd_groups_tell(&dev);
	CU_ASSERT_EQUAL(driver.all, 1);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(refused_for_a_while),
		RCD_TEST(without_room),
		RCD_TEST(by_udp),
	};

	return rcd_tap_run("groups", tests, sizeof(tests) / sizeof(tests[0]));
}
