/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: an lcore never sees half a change of a device, nor memory that was freed, and nobody waits
 * for an lcore that does not look. Method: engines whose lcores are polled by a loop of the test
 * that looks at a view for long, by threads that sleep, and by nobody; the control thread changes
 * addresses meanwhile.
 */
#include <malloc.h>
#include <rte_eal.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rcd_clock.h"
#include "rcd_dev.h"
#include "rcd_dev_conf.h"
#include "rcd_dev_view.h"
#include "rcd_engine.h"
#include "rcd_engine_priv.h"
#include "rcd_eth.h"
#include "rcd_idle.h"
#include "rcd_lcore.h"
#include "rcd_limits.h"
#include "rcd_lport.h"
#include "rcd_poll.h"
#include "rcd_tap.h"

#define CHANGES 100
#define LOOKS   200                  /**< at one view, between two polls */
#define NAPS_NS UINT64_C(5000000000) /**< much shorter than a nap for each change */

/* What is reached from EAL's memory alone looks leaked to the sanitizer, which does not scan it. */
const char *
__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct rcd_engine *engine;
static uint32_t wrong;
static uint32_t looked;

static void
begin(enum rcd_idle idle)
{
	struct rcd_engine_conf conf;
	char error[200] = "";

	rcd_engine_conf_init(&conf);
	conf.socket[0] = '\0';
	conf.mbufs = 2047;
	conf.idle = idle;
	engine = rcd_engine_create(&conf, error, sizeof(error));
	CU_ASSERT_PTR_NOT_NULL_FATAL(engine);
}

static struct rcd_dev *
add(enum rcd_attach_type attach, const char *name, const char *target, bool no_shortcut)
{
	struct rcd_dev_conf conf = { .attach = attach, .no_shortcut = no_shortcut };
	char error[200] = "";

	snprintf(conf.name, sizeof(conf.name), "%s", name);
	snprintf(conf.target, sizeof(conf.target), "%s", target);
	CU_ASSERT_EQUAL(rcd_engine_dev_add(engine, &conf, error, sizeof(error)), 0);
	return rcd_dev_find(&engine->ports, name);
}

static void
add_wire(void)
{
	add(RCD_ATTACH_WIRE, "w0", "w1", false);
	add(RCD_ATTACH_WIRE, "w1", "w0", false);
}

/* An address comes and goes, and the MAC is another one: three views each time. */
static void
change(uint32_t times)
{
	struct rcd_dev *dev = rcd_dev_find(&engine->ports, "w0");
	struct rcd_addr addr = { .prefix_len = 24 };
	uint8_t mac[RCD_MAC_LEN];

	CU_ASSERT_EQUAL(rcd_addr_parse("192.0.2.1/24", &addr), 0);
	memcpy(mac, dev->mac, RCD_MAC_LEN);
	for (uint32_t i = 0; i < times; i++) {
		mac[5] = (uint8_t)i;
		CU_ASSERT_EQUAL(rcd_dev_view_addr_add(dev, &addr), 0);
		CU_ASSERT_EQUAL(rcd_dev_view_set_mac(dev, mac), 0);
		CU_ASSERT_EQUAL(rcd_dev_view_addr_del(dev, &addr.gid), 0);
	}
}

/* Looks at a view for as long as an lcore may: from one end of a poll to the next. */
static int
look_for_long(void *arg)
{
	struct rcd_lcore *lcore = arg;

	while (!rcd_lcore_stopping(lcore)) {
		const struct rcd_txq *txq = lcore->txq_of[0];
		const struct rcd_lport_view *view = NULL;
		struct rcd_lport_view before;

		if (txq != NULL) {
			view = rcd_lport_view(txq->lport);
			before = *view;
			__atomic_fetch_add(&looked, 1, __ATOMIC_RELAXED);
		}
		for (uint32_t i = 0; view != NULL && i < LOOKS; i++) {
			sched_yield();
			if (memcmp(view, &before, sizeof(before)) != 0)
				__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		}
		rcd_lcore_poll(lcore, rcd_clock_ns(), RCD_BURST_MAX);
	}
	return 0;
}

static void
seen_whole(void)
{
	begin(RCD_IDLE_YIELD);
	/* What is freed is overwritten. */
	mallopt(M_PERTURB, 0x5a);
	CU_ASSERT_EQUAL(
		rcd_engine_launch(engine, 0, look_for_long, rcd_engine_lcore(engine, 0)), 0);
	add_wire();
	change(CHANGES);
	rcd_engine_destroy(engine);
	CU_ASSERT(looked >= CHANGES);
	CU_ASSERT_EQUAL(wrong, 0);
}

static void
sleeps(void)
{
	uint64_t began_ns;

	begin(RCD_IDLE_SLEEP);
	CU_ASSERT_EQUAL(rcd_engine_start(engine), 0);
	add_wire();
	usleep(20000);
	began_ns = rcd_clock_ns();
	change(CHANGES);
	CU_ASSERT(rcd_clock_ns() - began_ns < NAPS_NS);
	rcd_engine_destroy(engine);
}

/* In the thread of the program, which polls or does not. */
static void
has_no_thread(void)
{
	struct rcd_lcore *lcore;

	begin(RCD_IDLE_YIELD);
	lcore = rcd_engine_lcore(engine, 0);
	add_wire();
	change(CHANGES);
	rcd_lcore_poll(lcore, rcd_clock_ns(), RCD_BURST_MAX);
	change(CHANGES);
	rcd_engine_destroy(engine);
}

/* Whether packets of one device to the MAC of another get there without a port. */
static bool
reaches(const struct rcd_dev *dev, const struct rcd_dev *other)
{
	return rcd_lport_view_local(rcd_lport_view(&dev->lport), other->mac) ==
		(int)other->lport.index;
}

static void
knows_the_others(void)
{
	const uint8_t another[RCD_MAC_LEN] = { 2, 3, 4, 5, 6, 7 };
	struct rcd_dev *first, *second, *third, *end;
	uint8_t old[RCD_MAC_LEN];

	begin(RCD_IDLE_YIELD);
	add_wire();
	end = rcd_dev_find(&engine->ports, "w0");
	first = add(RCD_ATTACH_PORT, "n0", "net_null0", false);
	second = add(RCD_ATTACH_PORT, "n1", "net_null1", false);
	third = add(RCD_ATTACH_PORT, "n2", "net_null2", true);
	CU_ASSERT(reaches(first, first) && reaches(first, second) && reaches(first, third));
	CU_ASSERT(reaches(second, first));
	CU_ASSERT(reaches(third, third) && !reaches(third, first));
	CU_ASSERT(reaches(end, end) && !reaches(end, first) && !reaches(first, end));
	CU_ASSERT(!reaches(end, rcd_dev_find(&engine->ports, "w1")));
	memcpy(old, second->mac, RCD_MAC_LEN);
	CU_ASSERT_EQUAL(rcd_dev_view_set_mac(second, another), 0);
	CU_ASSERT(reaches(first, second) && reaches(second, second));
	CU_ASSERT_EQUAL(rcd_lport_view_local(rcd_lport_view(&first->lport), old), -1);
	CU_ASSERT_EQUAL(memcmp(rcd_lport_view(&second->lport)->mac, another, RCD_MAC_LEN), 0);
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "n1"), 0);
	CU_ASSERT_EQUAL(rcd_lport_view_local(rcd_lport_view(&first->lport), another), -1);
	CU_ASSERT(reaches(first, third));
	rcd_engine_destroy(engine);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "an lcore that looks at a view for long sees it whole", seen_whole },
		{ "an lcore that sleeps is not waited for", sleeps },
		{ "an lcore that the program polls is not waited for", has_no_thread },
		{ "a view has the MACs that are reached without a port", knows_the_others },
	};
	static char prefix[40];
	char *args[] = { (char *)(uintptr_t) "view", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t) "192",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-telemetry",
		(char *)(uintptr_t) "-a", (char *)(uintptr_t) "0000:00:00.0",
		(char *)(uintptr_t) "--log-level=critical", (char *)(uintptr_t) "--lcores",
		(char *)(uintptr_t) "(0-1)@0", (char *)(uintptr_t) "--file-prefix", prefix };

	snprintf(prefix, sizeof(prefix), "rcdview%d", (int)getpid());
	if (rte_eal_init(sizeof(args) / sizeof(args[0]), args) < 0)
		return 1;
	return rcd_tap_run("view", tests, sizeof(tests) / sizeof(tests[0]));
}
