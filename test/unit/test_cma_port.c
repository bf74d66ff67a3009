/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: ports of the CM service go to whom the kernel would give them: beside others, of a range,
 * of the privileged, and requests to who listens. Method: a row for each two that want one port,
 * and for each request; ranges and limits to their end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cma_host.h"
#include "gid_text.h"
#include "rcd_cma_port.h"
#include "rcd_tap.h"

#define PORT 7174

static struct cma_host host;
static struct cma_host_client alice, bob;

static void
setup(void)
{
	cma_host_open(&host);
	cma_host_dev(&host, "one");
	cma_host_address(&host, "10.0.0.1", 24, 0);
	cma_host_address(&host, "fd00::1", 64, 0);
	cma_host_dev(&host, "two");
	cma_host_address(&host, "10.0.1.1", 24, 0);
	cma_host_client(&host, &alice, 1000);
	cma_host_client(&host, &bob, 1001);
}

static void
teardown(void)
{
	cma_host_client_end(&alice);
	cma_host_client_end(&bob);
	cma_host_close(&host);
}

/* How somebody wants a port. */
struct want {
	const char *addr;
	bool reuse, afonly, listens;
};

static int
take(struct cma_host_client *client, const struct want *want, uint16_t port)
{
	struct rcd_cmid *id = cma_host_id(client, RCD_CMA_SPACE_TCP, RCD_QP_RC);
	struct rcd_ctrl_cm_addr addr = cma_host_addr(want->addr, port);
	int err;

	id->reuse = want->reuse;
	id->afonly = want->afonly;
	err = rcd_cmid_bind(id, id->client->owner, &addr);
	return err == 0 && want->listens ? rcd_cmid_listen(id, client, 1) : err;
}

static void
two_on_a_port(void)
{
	static const struct {
		struct want first, second;
		int err;
	} rows[] = {
		{ { "10.0.0.1" }, { "10.0.0.1" }, -EADDRINUSE },
		{ { "10.0.0.1" }, { "10.0.1.1" }, 0 },
		{ { "10.0.0.1" }, { "0.0.0.0" }, -EADDRINUSE },
		{ { "0.0.0.0" }, { "10.0.0.1" }, -EADDRINUSE },
		{ { "0.0.0.0" }, { "0.0.0.0" }, -EADDRINUSE },
		/* The wildcard of IPv6 is IPv4's too, unless it says otherwise. */
		{ { "::" }, { "10.0.0.1" }, -EADDRINUSE },
		{ { "10.0.0.1" }, { "::" }, -EADDRINUSE },
		{ { "::", .afonly = true }, { "10.0.0.1" }, 0 },
		{ { "10.0.0.1" }, { "::", .afonly = true }, 0 },
		{ { "::", .afonly = true }, { "fd00::1" }, -EADDRINUSE },
		{ { "fd00::1" }, { "10.0.0.1" }, 0 }, { { "fd00::1" }, { "0.0.0.0" }, 0 },
		/* Who shares shares with who shares, and with nobody who listens. */
		{ { "10.0.0.1", .reuse = true }, { "10.0.0.1", .reuse = true }, 0 },
		{ { "10.0.0.1", .reuse = true }, { "10.0.0.1" }, -EADDRINUSE },
		{ { "10.0.0.1" }, { "10.0.0.1", .reuse = true }, -EADDRINUSE },
		{ { "10.0.0.1", .reuse = true, .listens = true }, { "10.0.0.1", .reuse = true },
			-EADDRINUSE },
		{ { "10.0.0.1", .reuse = true }, { "10.0.0.1", .reuse = true, .listens = true },
			-EADDRINUSE },
		{ { "10.0.0.1", .listens = true }, { "10.0.1.1", .listens = true }, 0 },
		{ { "10.0.9.9" }, { "10.0.0.1" }, 0 }, /* nobody has the first address */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup();
		CU_ASSERT_EQUAL(take(&alice, &rows[i].first, PORT), i == 18 ? -ENODEV : 0);
		CU_ASSERT_EQUAL(take(&bob, &rows[i].second, PORT), rows[i].err);
		teardown();
	}
}

/* Who is in another network namespace is in nobody's way, and hears nothing of others. */
static void
namespaces(void)
{
	static const struct want any = { "0.0.0.0", .listens = true };
	static const struct want one = { "10.0.0.1", .listens = true };
	struct rcd_gid dst = gid_text("10.0.0.1");
	struct rcd_cmid *found;

	setup();
	cma_host_address(&host, "10.0.0.1", 24, 0);
	host.devs[1].netns = bob.netns = 7;
	CU_ASSERT_EQUAL(take(&alice, &any, PORT), 0);
	CU_ASSERT_EQUAL(take(&bob, &any, PORT), 0);
	CU_ASSERT_EQUAL(take(&alice, &any, PORT), -EADDRINUSE);
	CU_ASSERT_EQUAL(take(&bob, &any, PORT), -EADDRINUSE);
	CU_ASSERT_EQUAL(take(&alice, &one, PORT + 1), 0);
	CU_ASSERT_EQUAL(take(&bob, &one, PORT + 1), 0);
	for (uint16_t port = PORT; port <= PORT + 1; port++) {
		for (uint32_t dev = 0; dev < 2; dev++) {
			found = rcd_cma_port_find(
				host.cma, &host.devs[dev], RCD_CMA_SPACE_TCP, port, &dst);
			CU_ASSERT_PTR_NOT_NULL_FATAL(found);
			CU_ASSERT_PTR_EQUAL(found->client, dev == 0 ? alice.cma : bob.cma);
		}
	}
	/* One that others fill is free here. */
	for (int i = 0; i < RCD_CMA_PORT_SHARE; i++) {
		const struct want share = { "10.0.0.1", .reuse = true };

		CU_ASSERT_EQUAL(take(&alice, &share, PORT + 2), 0);
	}
	CU_ASSERT_EQUAL(take(&bob, &one, PORT + 2), 0);
	/* Namespaces are made by anybody: one without a device has no ports. */
	bob.netns = 8;
	CU_ASSERT_EQUAL(take(&bob, &any, PORT + 3), -ENODEV);
	CU_ASSERT_EQUAL(take(&bob, &any, 0), -ENODEV);
	CU_ASSERT_EQUAL(take(&bob, &one, PORT + 3), -ENODEV);
	host.devs[1].netns = 8;
	CU_ASSERT_EQUAL(take(&bob, &any, PORT), 0);
	teardown();
}

/* Who goes from one namespace leaves who has the port in another. */
static void
namespaces_go(void)
{
	static const struct want one = { "10.0.0.1" };
	struct rcd_ctrl_cm_addr addr = cma_host_addr("10.0.0.1", PORT);
	struct rcd_cmid *id;

	setup();
	cma_host_address(&host, "10.0.0.1", 24, 0);
	host.devs[1].netns = bob.netns = 7;
	for (int i = 0; i < 2; i++) {
		struct cma_host_client *goes = i == 0 ? &alice : &bob;
		struct cma_host_client *stays = i == 0 ? &bob : &alice;

		addr.port = (uint16_t)(PORT + i);
		id = cma_host_id(goes, RCD_CMA_SPACE_TCP, RCD_QP_RC);
		CU_ASSERT_EQUAL(rcd_cmid_bind(id, id->client->owner, &addr), 0);
		CU_ASSERT_EQUAL(take(stays, &one, addr.port), 0);
		/* Wherever its client is by then. */
		goes->netns = 9;
		rcd_cmid_destroy(id);
		goes->netns = goes == &bob ? 7 : 0;
		CU_ASSERT_EQUAL(take(stays, &one, addr.port), -EADDRINUSE);
		CU_ASSERT_EQUAL(take(goes, &one, addr.port), 0);
	}
	teardown();
}

/* What is bound goes its way by the devices of the namespace that it has its port in. */
static void
another_namespace(void)
{
	struct rcd_ctrl_cm_resolve_req req = { .dst = cma_host_addr("10.0.0.1", PORT) };
	struct rcd_ctrl_cm_addr any = cma_host_addr("0.0.0.0", PORT);
	struct rcd_cmid *id;

	setup();
	cma_host_address(&host, "10.0.0.1", 24, 0);
	id = cma_host_id(&bob, RCD_CMA_SPACE_TCP, RCD_QP_RC);
	CU_ASSERT_EQUAL(rcd_cmid_bind(id, id->client->owner, &any), 0);
	host.devs[1].netns = bob.netns = 7;
	CU_ASSERT_EQUAL(rcd_cmid_resolve_addr(id, id->client->owner, &req), 0);
	CU_ASSERT_EQUAL(id->dev, host.devs[0].serial);
	teardown();
}

static void
comes_back(void)
{
	static const struct want want = { "10.0.0.1" };
	struct rcd_ctrl_cm_addr addr = cma_host_addr("10.0.0.1", PORT);
	struct rcd_cmid *id;

	setup();
	id = cma_host_id(&alice, RCD_CMA_SPACE_TCP, RCD_QP_RC);
	CU_ASSERT_EQUAL(rcd_cmid_bind(id, id->client->owner, &addr), 0);
	CU_ASSERT_EQUAL(take(&bob, &want, PORT), -EADDRINUSE);
	rcd_cmid_destroy(id);
	CU_ASSERT_EQUAL(take(&bob, &want, PORT), 0);
	/* Another space has ports of its own. */
	id = cma_host_id(&alice, RCD_CMA_SPACE_UDP, RCD_QP_UD);
	CU_ASSERT_EQUAL(rcd_cmid_bind(id, id->client->owner, &addr), 0);
	teardown();
}

static void
spaces(void)
{
	static const struct {
		uint32_t space;
		bool valid;
	} rows[] = {
		{ RCD_CMA_SPACE_TCP, true },
		{ RCD_CMA_SPACE_UDP, true },
		{ RCD_CMA_SPACE_IB, true },
		{ RCD_CMA_SPACE_IPOIB, true },
		{ 0, false },
		{ 1, false },
		{ 0x0107, false },
		{ UINT32_MAX, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CU_ASSERT_EQUAL(rcd_cma_space_valid(rows[i].space), rows[i].valid);
}

/* Where the kernel's privileged ports end; ours are below 1024 in any case. */
static uint32_t
unprivileged_start(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
	char line[16] = "1024";

	if (file != NULL && fgets(line, sizeof(line), file) == NULL)
		line[0] = '\0';
	if (file != NULL)
		fclose(file);
	return (uint32_t)strtoul(line, NULL, 10);
}

static void
privileged_ports(void)
{
	static const uint16_t ports[] = { 1, 80, 1023, 1024, 65535 };
	static const struct want want = { "10.0.0.1" };
	uint32_t start = unprivileged_start();

	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		bool privileged = ports[i] < 1024 && ports[i] < start;

		setup();
		CU_ASSERT_EQUAL(take(&alice, &want, ports[i]), privileged ? -EACCES : 0);
		host.privileged = true;
		CU_ASSERT_EQUAL(take(&bob, &want, ports[i]), privileged ? 0 : -EADDRINUSE);
		teardown();
	}
}

static void
any_port(void)
{
	static const struct want want = { "10.0.0.1" };
	static uint8_t seen[UINT16_MAX + 1];
	struct cma_host_client *owner[2] = { &alice, &bob };
	struct rcd_ctrl_cm_addr addr = cma_host_addr("10.0.0.1", 0);
	struct rcd_cmid *last = NULL;
	uint16_t port;

	setup();
	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < RCD_CMA_EPHEMERAL_COUNT; i++) {
		last = cma_host_id(owner[i % 2], RCD_CMA_SPACE_TCP, RCD_QP_RC);
		CU_ASSERT_EQUAL_FATAL(rcd_cmid_bind(last, last->client->owner, &addr), 0);
		CU_ASSERT_FATAL(last->src.port >= RCD_CMA_EPHEMERAL_FIRST);
		CU_ASSERT_FATAL(last->src.port - RCD_CMA_EPHEMERAL_FIRST < RCD_CMA_EPHEMERAL_COUNT);
		CU_ASSERT_FALSE_FATAL(seen[last->src.port]);
		seen[last->src.port] = 1;
	}
	CU_ASSERT_EQUAL(take(&alice, &want, 0), -EADDRNOTAVAIL);
	port = last->src.port;
	rcd_cmid_destroy(last);
	last = cma_host_id(&alice, RCD_CMA_SPACE_TCP, RCD_QP_RC);
	CU_ASSERT_EQUAL(rcd_cmid_bind(last, last->client->owner, &addr), 0);
	CU_ASSERT_EQUAL(last->src.port, port);
	teardown();
}

static void
limits(void)
{
	static const struct want shared = { "10.0.0.1", .reuse = true }, want = { "10.0.0.1" };

	/* So many share a port. */
	setup();
	for (int i = 0; i < RCD_CMA_PORT_SHARE; i++)
		CU_ASSERT_EQUAL_FATAL(take(&alice, &shared, PORT), 0);
	CU_ASSERT_EQUAL(take(&alice, &shared, PORT), -EADDRINUSE);
	CU_ASSERT_EQUAL(take(&alice, &shared, PORT + 1), 0);
	teardown();
	/* A quota of ports: who is refused one has none. */
	setup();
	host.book.client.cm_ports = 2;
	CU_ASSERT_EQUAL(take(&alice, &want, PORT), 0);
	CU_ASSERT_EQUAL(take(&alice, &want, PORT + 1), 0);
	CU_ASSERT_EQUAL(take(&alice, &want, PORT + 2), -EADDRNOTAVAIL);
	CU_ASSERT_EQUAL(take(&bob, &want, PORT + 2), 0);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_CM_PORTS], 2);
	teardown();
}

static void
who_listens(void)
{
	/* All of them listen on the port, or are bound to it and don't. */
	static const struct want wants[] = {
		{ "0.0.0.0", .listens = true },
		{ "::", .afonly = true, .listens = true },
		{ "::", .listens = true },
		{ "10.0.0.1", .listens = true },
		{ "10.0.0.1", .listens = false },
		{ "fd00::1", .listens = true },
	};
	static const struct {
		int want;        /**< who of them */
		const char *dst; /**< of the request */
		uint32_t dev;    /**< by which it came */
		bool found;
	} rows[] = {
		{ 0, "10.0.0.1", 100, true },
		{ 0, "10.0.1.1", 101, true },
		{ 0, "fd00::1", 100, false },
		{ 1, "10.0.0.1", 100, false },
		{ 1, "fd00::1", 100, true },
		{ 2, "10.0.0.1", 100, true },
		{ 2, "fd00::1", 100, true },
		{ 3, "10.0.0.1", 100, true },
		{ 3, "10.0.0.1", 101, false },
		{ 3, "10.0.1.1", 101, false },
		{ 4, "10.0.0.1", 100, false },
		{ 5, "fd00::1", 100, true },
		{ 5, "10.0.0.1", 100, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rcd_gid dst = gid_text(rows[i].dst);
		struct rcd_cma_dev dev = { .netns = 0 };

		setup();
		CU_ASSERT_EQUAL(take(&alice, &wants[rows[i].want], PORT), 0);
		dev.serial = rows[i].dev;
		CU_ASSERT_EQUAL(
			rcd_cma_port_find(host.cma, &dev, RCD_CMA_SPACE_TCP, PORT, &dst) != NULL,
			rows[i].found);
		CU_ASSERT_PTR_NULL(
			rcd_cma_port_find(host.cma, &dev, RCD_CMA_SPACE_TCP, PORT + 1, &dst));
		CU_ASSERT_PTR_NULL(
			rcd_cma_port_find(host.cma, &dev, RCD_CMA_SPACE_UDP, PORT, &dst));
		teardown();
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(two_on_a_port),
		RCD_TEST(namespaces),
		RCD_TEST(another_namespace),
		RCD_TEST(namespaces_go),
		RCD_TEST(comes_back),
		RCD_TEST(spaces),
		RCD_TEST(privileged_ports),
		RCD_TEST(any_port),
		RCD_TEST(limits),
		RCD_TEST(who_listens),
	};

	return rcd_tap_run("cma_port", tests, sizeof(tests) / sizeof(tests[0]));
}
