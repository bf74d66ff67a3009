/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: events of the CM service wait for their client in bounds, a byte tells of each, and
 * memberships of groups are told to routers from an address that the device has. Method: one host
 * of tables, streams with as much room as a test says, and a clock of its own.
 */
#include <errno.h>
#include <string.h>

#include "cma_host.h"
#include "gid_text.h"
#include "rcd_bytes.h"
#include "rcd_tap.h"

#define PORT    7174
#define SECONDS UINT64_C(1000000000)

static struct cma_host host;
static struct cma_host_client alice;

static void
setup(void)
{
	cma_host_open_with(&host, "one", "10.0.0.1", &alice, 1000);
}

static void
teardown(void)
{
	cma_host_client_end(&alice);
	cma_host_close(&host);
}

/* An identifier of datagrams that knows the way to an address. */
static struct rcd_cmid *
resolved(const char *text)
{
	struct rcd_cmid *id = cma_host_id(&alice, RCD_CMA_SPACE_UDP, RCD_QP_UD);

	CU_ASSERT_EQUAL(cma_host_resolve(id, text, PORT), 0);
	return id;
}

/* Events of one identifier, of which nobody takes any. */
static void
fail_to_resolve(struct rcd_cmid *id, uint32_t times)
{
	struct rcd_ctrl_cm_resolve_req req = { .dst = cma_host_addr("10.0.0.9", PORT) };

	host.neighbour = -EAGAIN;
	for (uint32_t i = 0; i < times; i++) {
		CU_ASSERT_EQUAL(rcd_cmid_resolve_addr(id, &alice, &req), 0);
		cma_host_pass(&host, SECONDS / 10);
		CU_ASSERT_EQUAL_FATAL(id->state, RCD_CMA_BOUND);
	}
}

static void
bytes_tell_of_events(void)
{
	struct rcd_ctrl_cm_event_rep rep;
	struct rcd_cmid *ids[3];

	setup();
	host.room = 2;
	for (int i = 0; i < 3; i++) {
		ids[i] = cma_host_id(&alice, RCD_CMA_SPACE_TCP, RCD_QP_RC);
		CU_ASSERT_EQUAL(cma_host_resolve(ids[i], "10.0.0.9", PORT), 0);
	}
	CU_ASSERT_EQUAL(host.said, 2);
	/* What goes with its identifier: bytes that the client has, and not the untold one. */
	CU_ASSERT_EQUAL(rcd_cmid_destroy(ids[0]), 0);
	CU_ASSERT_EQUAL(rcd_cmid_destroy(ids[1]), 1);
	host.room = 1;
	CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), RCD_CMA_EVENT_ADDR_RESOLVED);
	CU_ASSERT_EQUAL(rep.id, ids[2]->handle);
	CU_ASSERT_EQUAL(host.said, 2);
	CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), -1);
	teardown();
}

/* No room even for the first byte: nothing would ever make the client look. */
static void
bytes_are_tried_again(void)
{
	struct rcd_ctrl_cm_event_rep rep;
	struct rcd_cmid *id;

	setup();
	host.room = 0;
	id = cma_host_id(&alice, RCD_CMA_SPACE_TCP, RCD_QP_RC);
	CU_ASSERT_EQUAL(cma_host_resolve(id, "10.0.0.9", PORT), 0);
	CU_ASSERT_EQUAL(rcd_cmid_resolve_route(id), 0);
	/* Less often when there is never room. */
	host.refused = 0;
	for (int i = 0; i < 1000; i++)
		cma_host_pass(&host, SECONDS / 100);
	CU_ASSERT(host.refused >= 10 && host.refused <= 20);
	CU_ASSERT_EQUAL(host.said, 0);
	host.room = 1;
	cma_host_pass(&host, 2 * SECONDS);
	CU_ASSERT_EQUAL(host.said, 1);
	/* Who has one comes, and then there is room for the next. */
	host.room = 1;
	cma_host_pass(&host, 2 * SECONDS);
	CU_ASSERT_EQUAL(host.said, 1);
	CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), RCD_CMA_EVENT_ADDR_RESOLVED);
	CU_ASSERT_EQUAL(host.said, 2);
	host.room = 0;
	CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), RCD_CMA_EVENT_ROUTE_RESOLVED);
	/* One that waits with its channel goes with it. */
	CU_ASSERT_EQUAL(cma_host_resolve(cma_host_id(&alice, RCD_CMA_SPACE_TCP, RCD_QP_RC),
				"10.0.0.9", PORT),
		0);
	teardown();
}

/* The first attempt comes soon, however much was posted before it. */
static void
a_burst_waits_no_longer(void)
{
	setup();
	host.room = 0;
	for (int i = 0; i < 10; i++)
		resolved("10.0.0.9");
	host.refused = 0;
	cma_host_pass(&host, SECONDS / 25);
	CU_ASSERT_EQUAL(host.refused, 1);
	teardown();
}

/* Who takes without reading has no bytes to come of what it took. */
static void
bytes_of_what_is_taken(void)
{
	struct rcd_ctrl_cm_event_rep rep;

	setup();
	host.room = 0;
	for (int i = 0; i < 5; i++)
		resolved("10.0.0.9");
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), RCD_CMA_EVENT_ADDR_RESOLVED);
	host.room = 100;
	cma_host_pass(&host, 2 * SECONDS);
	CU_ASSERT_EQUAL(host.said, 2);
	host.room = 0;
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), RCD_CMA_EVENT_ADDR_RESOLVED);
	CU_ASSERT_EQUAL(rcd_alarms_next(&host.alarms), UINT64_MAX);
	teardown();
}

/* A client has so many that nobody takes, on whatever channels; the others are lost. */
static void
events_are_charged(void)
{
	struct rcd_ctrl_cm_event_rep rep;
	struct rcd_cmid *id;
	uint32_t other;
	int fd = -1;

	setup();
	host.book.client.cm_events = 20;
	id = cma_host_id(&alice, RCD_CMA_SPACE_TCP, RCD_QP_RC);
	CU_ASSERT_EQUAL(cma_host_bind(id, "10.0.0.1", PORT), 0);
	fail_to_resolve(id, 15);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_CM_EVENTS], 15);
	CU_ASSERT_EQUAL(rcd_cma_channel_create(alice.cma, &other, &fd), 0);
	rcd_cma_event_migrate(id, rcd_cma_channel_get(alice.cma, other));
	fail_to_resolve(id, 15);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_CM_EVENTS], 20);
	CU_ASSERT_EQUAL(host.counts[RCD_COUNTER_EVENTS_LOST], 10);
	CU_ASSERT_EQUAL(
		rcd_cma_event_take(alice.cma, rcd_cma_channel_get(alice.cma, other), &rep), 0);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_CM_EVENTS], 19);
	CU_ASSERT(rcd_cmid_destroy(id) > 0);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_CM_EVENTS], 0);
	teardown();
}

static void
groups(void)
{
	struct rcd_cmid *a, *b;
	uint32_t first, second, purged;

	setup();
	a = resolved("10.0.0.9");
	b = resolved("10.0.0.9");
	CU_ASSERT_EQUAL(cma_host_join(a, "10.0.0.3", &first), -EINVAL);
	CU_ASSERT_EQUAL(cma_host_join(a, "ff0e::1", &first), -EINVAL);
	CU_ASSERT_EQUAL(cma_host_join(a, "239.1.2.3", &first), 0);
	CU_ASSERT_EQUAL(cma_host_join(b, "239.1.2.3", &second), 0);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_GROUPS], 2);
	/* A router asks: at most once in a second. */
	host.joined = 0;
	rcd_cma_queried(host.cma, host.devs[0].serial);
	rcd_cma_queried(host.cma, host.devs[0].serial);
	CU_ASSERT_EQUAL(host.joined, 1);
	/* The last one to leave tells the routers. */
	CU_ASSERT_EQUAL(rcd_cmid_leave(a, first, &purged), 0);
	CU_ASSERT_EQUAL(purged, 1);
	CU_ASSERT_EQUAL(rcd_cmid_leave(a, first, &purged), -ENOENT);
	CU_ASSERT_EQUAL(host.left, 0);
	rcd_cmid_destroy(b);
	CU_ASSERT_EQUAL(host.left, 1);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_GROUPS], 0);
	cma_host_now_ns += 2 * SECONDS;
	teardown();
}

/* A group of one VLAN is none of another, and stays where it was joined. */
static void
groups_of_vlans(void)
{
	struct rcd_cmid *plain, *tagged;
	uint32_t handle;

	setup();
	cma_host_address(&host, "10.0.7.1", 24, 7);
	plain = cma_host_id(&alice, RCD_CMA_SPACE_UDP, RCD_QP_UD);
	tagged = cma_host_id(&alice, RCD_CMA_SPACE_UDP, RCD_QP_UD);
	CU_ASSERT_EQUAL(cma_host_bind(plain, "10.0.0.1", 0), 0);
	CU_ASSERT_EQUAL(cma_host_bind(tagged, "10.0.7.1", 0), 0);
	CU_ASSERT_EQUAL(cma_host_join(plain, "239.1.2.3", &handle), 0);
	CU_ASSERT_EQUAL(cma_host_join(tagged, "239.1.2.3", &handle), 0);
	rcd_cmid_destroy(tagged);
	CU_ASSERT_EQUAL(host.left, 1);
	CU_ASSERT_EQUAL(host.said_vlan_id, 7);
	rcd_cmid_destroy(plain);
	CU_ASSERT_EQUAL(host.left, 2);
	CU_ASSERT_EQUAL(host.said_vlan_id, 0);
	teardown();
}

/* The kernel refuses a netdev that is gone: nothing is left, and nothing charged. */
static void
a_join_that_the_kernel_refuses(void)
{
	struct rcd_cmid *id;
	uint32_t handle;

	setup();
	host.devs[0].answers = false;
	host.devs[0].ifindex = INT32_MAX;
	id = cma_host_id(&alice, RCD_CMA_SPACE_UDP, RCD_QP_UD);
	CU_ASSERT_EQUAL(cma_host_bind(id, "10.0.0.1", 0), 0);
	CU_ASSERT(cma_host_join(id, "239.1.2.3", &handle) < 0);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_GROUPS], 0);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_DESCRIPTORS], 0);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_CM_EVENTS], 0);
	teardown();
}

/* The address of who joined first goes: another one of the kind speaks, or nobody does. */
static void
who_speaks_for_a_group(void)
{
	struct rcd_gid second = gid_text("10.0.0.2");
	struct rcd_gid_table *gids;
	struct rcd_cmid *id;
	uint32_t handle;

	setup();
	cma_host_address(&host, "fd00::1", 64, 0);
	cma_host_address(&host, "10.0.0.2", 24, 0);
	gids = &host.gids[0];
	id = cma_host_id(&alice, RCD_CMA_SPACE_UDP, RCD_QP_UD);
	CU_ASSERT_EQUAL(cma_host_bind(id, "10.0.0.1", 0), 0);
	CU_ASSERT_EQUAL(cma_host_join(id, "239.1.2.3", &handle), 0);
	CU_ASSERT(rcd_gid_eq(&host.said_source, &gids->entries[0].gid));
	memset(&gids->entries[0], 0, sizeof(gids->entries[0]));
	cma_host_now_ns += 2 * SECONDS;
	rcd_cma_queried(host.cma, host.devs[0].serial);
	CU_ASSERT(rcd_gid_eq(&host.said_source, &second));
	gids->entries[2].vlan_id = 7;
	cma_host_now_ns += 2 * SECONDS;
	host.joined = 0;
	rcd_cma_queried(host.cma, host.devs[0].serial);
	CU_ASSERT_EQUAL(host.joined, 0);
	teardown();
}

/* Who asks on one link is not heard on another. */
static void
queries_of_two_links(void)
{
	struct rcd_cmid *near, *far;
	uint32_t handle;

	setup();
	cma_host_dev(&host, "two");
	cma_host_address(&host, "10.0.1.1", 24, 0);
	near = cma_host_id(&alice, RCD_CMA_SPACE_UDP, RCD_QP_UD);
	far = cma_host_id(&alice, RCD_CMA_SPACE_UDP, RCD_QP_UD);
	CU_ASSERT_EQUAL(cma_host_bind(near, "10.0.0.1", 0), 0);
	CU_ASSERT_EQUAL(cma_host_bind(far, "10.0.1.1", 0), 0);
	CU_ASSERT_EQUAL(cma_host_join(near, "239.1.2.3", &handle), 0);
	CU_ASSERT_EQUAL(cma_host_join(far, "239.1.2.3", &handle), 0);
	host.joined = 0;
	for (int i = 0; i < 10; i++)
		rcd_cma_queried(host.cma, host.devs[0].serial);
	CU_ASSERT_EQUAL(host.joined, 1);
	rcd_cma_queried(host.cma, host.devs[1].serial);
	CU_ASSERT_EQUAL(host.joined, 2);
	cma_host_now_ns += 2 * SECONDS;
	teardown();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(bytes_tell_of_events),
		RCD_TEST(bytes_are_tried_again),
		RCD_TEST(a_burst_waits_no_longer),
		RCD_TEST(bytes_of_what_is_taken),
		RCD_TEST(events_are_charged),
		RCD_TEST(groups),
		RCD_TEST(groups_of_vlans),
		RCD_TEST(a_join_that_the_kernel_refuses),
		RCD_TEST(who_speaks_for_a_group),
		RCD_TEST(queries_of_two_links),
	};

	return rcd_tap_run("cma_event", tests, RCD_ARRAY_COUNT(tests));
}
