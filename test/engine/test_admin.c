/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: links come, change and go as a request asks for, or a sentence says what is wrong with it;
 * one end of a wire alone is a name and no device.
 * Method: an engine without threads, clients or privileges, asked as the command line would and by
 * its functions.
 */
#include <errno.h>
#include <rte_eal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_admin.h"
#include "rcd_conn.h"
#include "rcd_conns.h"
#include "rcd_dev.h"
#include "rcd_dev_conf.h"
#include "rcd_engine.h"
#include "rcd_engine_priv.h"
#include "rcd_lport.h"
#include "rcd_tap.h"

/* What is reached from EAL's memory alone looks leaked to the sanitizer, which does not scan it. */
const char *
__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct rcd_engine *engine;
static char answer[65536]; /**< to the last request */

static const char *
ask(const char *request)
{
	int fd = rcd_admin(engine, NULL, NULL, request);
	ssize_t len;

	CU_ASSERT_FATAL(fd >= 0);
	len = pread(fd, answer, sizeof(answer) - 1, 0);
	answer[len > 0 ? len : 0] = '\0';
	close(fd);
	return answer;
}

static void
fine(const char *request)
{
	if (strcmp(ask(request), "{}") != 0)
		printf("# %s: %s\n", request, answer);
	CU_ASSERT_STRING_EQUAL(answer, "{}");
}

static void
wrong(const char *request, const char *what)
{
	ask(request);
	if (strncmp(answer, "{\"error\":\"", 10) != 0 || strstr(answer, what) == NULL)
		printf("# %s: %s\n", request, answer);
	CU_ASSERT_EQUAL(strncmp(answer, "{\"error\":\"", 10), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, what));
}

static void
shows(const char *what)
{
	ask("{\"op\":\"link\"}");
	if (strstr(answer, what) == NULL)
		printf("# %s is not in %s\n", what, answer);
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, what));
}

static int
add_end(const char *name, const char *peer)
{
	struct rcd_dev_conf conf = { .attach = RCD_ATTACH_WIRE };
	char error[200] = "";

	snprintf(conf.name, sizeof(conf.name), "%s", name);
	snprintf(conf.target, sizeof(conf.target), "%s", peer);
	return rcd_engine_dev_add(engine, &conf, error, sizeof(error));
}

static void
links_by_keys(void)
{
	fine("{\"op\":\"link_add\",\"name\":\"a\",\"type\":\"wire\",\"peer\":\"b\",\"mtu\":"
	     "\"1500\","
	     "\"address\":\"10.0.0.1/24, fd00::1/64@7\",\"gateway\":\"10.0.0.254\","
	     "\"gateway6\":\"fd00::fe\",\"state\":\"down\"}");
	shows("\"ifname\":\"a\",\"port\":1,\"state\":\"DOWN\"");
	shows("\"mtu\":1500,\"active_mtu\":1024");
	shows("\"gid\":\"fd00::1\",\"type\":\"RoCE v2\",\"vlan\":7");
	shows("\"gateway4\":\"::ffff:10.0.0.254\",\"gateway6\":\"fd00::fe\"");
	fine("{\"op\":\"link_set\",\"name\":\"a\",\"state\":\"up\"}");
	CU_ASSERT_PTR_NULL(strstr(ask("{\"op\":\"link\"}"), "DOWN"));
	fine("{\"op\":\"link_set\",\"name\":\"a\",\"mtu\":\"4K\",\"gateway4\":\"none\"}");
	shows("\"mtu\":4096,\"active_mtu\":2048");
	CU_ASSERT_PTR_NULL(strstr(ask("{\"op\":\"link\"}"), "gateway4"));
	/* The other end has its own. */
	shows("\"mtu\":1500,\"active_mtu\":1024");
	fine("{\"op\":\"addr_add\",\"name\":\"b\",\"address\":\"10.0.0.2/24@9\"}");
	shows("\"gid\":\"::ffff:10.0.0.2\",\"type\":\"RoCE v2\",\"vlan\":9");
	wrong("{\"op\":\"addr_add\",\"name\":\"b\",\"address\":\"10.0.0.2/24@9\"}", "exists");
	fine("{\"op\":\"addr_del\",\"name\":\"b\",\"address\":\"10.0.0.2\"}");
	fine("{\"op\":\"link_del\",\"name\":\"b\"}");
	CU_ASSERT_STRING_EQUAL(ask("{\"op\":\"link\"}"), "[]");
}

static void
what_is_wrong_is_named(void)
{
	fine("{\"op\":\"link_add\",\"name\":\"a\",\"peer\":\"b\"}");
	wrong("{\"op\":\"cow\"}", "no such command: cow");
	wrong("{\"op\":\"link\",\"name\":\"a\"}", "link: knows no name");
	wrong("{\"op\":\"stop\",\"now\":\"1\"}", "stop: knows no now");
	wrong("{\"op\":\"link_add\",\"type\":\"wire\",\"peer\":\"b\"}", "name: a link's");
	wrong("{\"op\":\"link_add\",\"name\":\"x\",\"mtu\":\"12\"}", "mtu: bytes");
	wrong("{\"op\":\"link_add\",\"name\":\"x\",\"cow\":\"12\"}", "cow: no such key");
	wrong("{\"op\":\"link_add\",\"name\":\"x\"}", "peer: a wire needs one");
	wrong("{\"op\":\"link_add\",\"name\":\"x\",\"type\":\"netdev\",\"peer\":\"y\"}",
		"peer: a netdev has none");
	wrong("{\"op\":\"link_add\",\"name\":\"x y\",\"peer\":\"y\"}", "letters, digits");
	wrong("{\"op\":\"link_add\",\"name\":\"a\",\"peer\":\"y\"}", "a device of this name");
	wrong("{\"op\":\"link_add\",\"name\":\"x\",\"peer\":\"b\"}", "no free end");
	wrong("{\"op\":\"link_add\",\"name\":\"x\",\"peer\":\"x\"}", "a device of this name");
	wrong("{\"op\":\"link_set\",\"name\":\"x\",\"state\":\"up\"}", "no link x");
	wrong("{\"op\":\"link_set\",\"name\":\"a\"}", "needs a name, and what to set");
	wrong("{\"op\":\"link_set\",\"name\":\"a\",\"state\":\"on\"}", "state: one of up, down");
	wrong("{\"op\":\"link_set\",\"name\":\"a\",\"peer\":\"c\"}", "peer: said when");
	wrong("{\"op\":\"link_set\",\"name\":\"a\",\"cow\":\"c\"}", "cow: no such key");
	wrong("{\"op\":\"link_set\",\"name\":\"a\",\"mtu\":\"99999\"}", "mtu: bytes");
	wrong("{\"op\":\"link_set\",\"name\":\"a\",\"impair\":\"drop=1%\"}", "impair: a is not");
	wrong("{\"op\":\"link_set\",\"name\":\"a\",\"gateway4\":\"fe80::1\"}", "gateway4: an IPv4");
	wrong("{\"op\":\"addr_add\",\"name\":\"a\"}", "needs a name and an address");
	wrong("{\"op\":\"addr_add\",\"name\":\"a\",\"address\":\"10.0.0.1@5000\"}", "address: ");
	wrong("{\"op\":\"statistic\",\"name\":\"x\"}", "no link x");
	wrong("{\"op\":\"resource\",\"kind\":\"cow\"}", "no resources of kind cow");
	wrong("link set a up", "another version");
	wrong("{\"op\":\"\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4"
	      "\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4x\\u00e4\"}",
		"no such command: ??");
	fine("{\"op\":\"link_del\",\"name\":\"a\"}");
	wrong("{\"op\":\"link_del\",\"name\":\"a\"}", "no link a");
}

static void
one_end_waits(void)
{
	uint16_t port_id;

	CU_ASSERT_EQUAL(add_end("a", "b"), 0);
	/* It is a name that is taken, and nothing else. */
	CU_ASSERT_STRING_EQUAL(ask("{\"op\":\"link\"}"), "[]");
	CU_ASSERT_EQUAL(rcd_engine_dev_port(engine, "a", &port_id), -ENOENT);
	CU_ASSERT_EQUAL(add_end("a", "b"), -EEXIST);
	CU_ASSERT_EQUAL(add_end("c", "a"), -EINVAL);
	wrong("{\"op\":\"link_set\",\"name\":\"a\",\"state\":\"up\"}", "no link a");
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		CU_ASSERT_PTR_NULL(engine->ports.devs[i]);
	/* It goes by itself. */
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "a"), 0);
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "a"), -ENOENT);
	/* The other end makes a wire of it, in whichever way it comes. */
	CU_ASSERT_EQUAL(add_end("a", "b"), 0);
	CU_ASSERT_EQUAL(add_end("b", "a"), 0);
	CU_ASSERT_EQUAL(rcd_engine_dev_port(engine, "a", &port_id), 0);
	CU_ASSERT_TRUE(rcd_dev_find(&engine->ports, "a")->lport.serial <
		rcd_dev_find(&engine->ports, "b")->lport.serial);
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "a"), 0);
	CU_ASSERT_EQUAL(add_end("a", "b"), 0);
	fine("{\"op\":\"link_add\",\"name\":\"b\",\"peer\":\"a\"}");
	CU_ASSERT_PTR_EQUAL(
		rcd_dev_find(&engine->ports, "a")->peer, rcd_dev_find(&engine->ports, "b"));
	fine("{\"op\":\"link_del\",\"name\":\"b\"}");
	CU_ASSERT_STRING_EQUAL(ask("{\"op\":\"link\"}"), "[]");
}

/* Ends that wait take the place that they are going to need. */
static void
no_more_than_fit(void)
{
	char name[16], peer[16];

	for (int i = 0; i < RCD_DEVS_MAX; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		snprintf(peer, sizeof(peer), "b%d", i);
		CU_ASSERT_EQUAL(add_end(name, peer), 0);
	}
	CU_ASSERT_EQUAL(add_end("more", "than"), -ENOSPC);
	CU_ASSERT_EQUAL(add_end("b0", "a0"), -ENOSPC);
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "a7"), 0);
	CU_ASSERT_EQUAL(add_end("b0", "a0"), 0);
	CU_ASSERT_EQUAL(add_end("b1", "a1"), -ENOSPC);
	for (int i = 0; i < RCD_DEVS_MAX; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, name), i == 7 ? -ENOENT : 0);
	}
	CU_ASSERT_STRING_EQUAL(ask("{\"op\":\"link\"}"), "[]");
}

static void
listings(void)
{
	fine("{\"op\":\"link_add\",\"name\":\"a\",\"peer\":\"b\"}");
	CU_ASSERT_PTR_NOT_NULL(strstr(ask("{\"op\":\"dev\"}"), "\"node_type\":\"ca\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(ask("{\"op\":\"statistic\",\"name\":\"b\"}"),
		"\"ifname\":\"b\",\"port\":1,\"counters\":{"));
	CU_ASSERT_PTR_NULL(strstr(ask("{\"op\":\"statistic\",\"name\":\"b\"}"), "\"a\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(ask("{\"op\":\"resource\"}"), "\"cm_id\":0,\"mr\":0,"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ask("{\"op\":\"counters\"}"), "\"description\":\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(ask("{\"op\":\"engine\"}"), "\"lcores\":[{\"lcore\":"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ask("{\"op\":\"engine\"}"), "\"kernel_addresses\":null"));
	CU_ASSERT_FALSE(rcd_engine_stopping(engine));
	fine("{\"op\":\"stop\"}");
	CU_ASSERT_TRUE(rcd_engine_stopping(engine));
}

/* After all numbers were used, the next one is nobody else's. */
static void
connections_keep_their_numbers(void)
{
	int socks[2][2];
	struct rcd_conn *conn;

	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks[i]), 0);
		engine->conns.next_serial = UINT32_MAX;
		CU_ASSERT_EQUAL_FATAL(rcd_conns_adopt(&engine->conns, socks[i][0]), 0);
		conn = rcd_conns_find(&engine->conns, i == 0 ? UINT32_MAX : 1);
		CU_ASSERT_PTR_NOT_NULL_FATAL(conn);
		CU_ASSERT_EQUAL(conn->sock, socks[i][0]);
	}
	CU_ASSERT_EQUAL(rcd_conns_find(&engine->conns, UINT32_MAX)->sock, socks[0][0]);
	CU_ASSERT_PTR_NULL(rcd_conns_find(&engine->conns, 0));
	for (int i = 0; i < 2; i++)
		close(socks[i][1]);
	for (int i = 0; i < 10 && engine->conns.count > 0; i++)
		rcd_engine_step(engine, 0);
	CU_ASSERT_EQUAL(engine->conns.count, 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(links_by_keys),
		RCD_TEST(what_is_wrong_is_named),
		RCD_TEST(one_end_waits),
		RCD_TEST(no_more_than_fit),
		RCD_TEST(listings),
		RCD_TEST(connections_keep_their_numbers),
	};
	static char prefix[40];
	char *args[] = { (char *)(uintptr_t) "admin", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t) "128",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-telemetry",
		(char *)(uintptr_t) "-a", (char *)(uintptr_t) "0000:00:00.0",
		(char *)(uintptr_t) "--log-level=critical", (char *)(uintptr_t) "-l",
		(char *)(uintptr_t) "0", (char *)(uintptr_t) "--file-prefix", prefix };
	struct rcd_engine_conf conf;
	char error[200] = "";
	int status;

	snprintf(prefix, sizeof(prefix), "rcdadmin%d", (int)getpid());
	if (rte_eal_init(sizeof(args) / sizeof(args[0]), args) < 0)
		return 1;
	rcd_engine_conf_init(&conf);
	conf.socket[0] = '\0';
	conf.mbufs = 2047;
	engine = rcd_engine_create(&conf, error, sizeof(error));
	if (engine == NULL)
		return 1;
	status = rcd_tap_run("admin", tests, sizeof(tests) / sizeof(tests[0]));
	/* One end that waits goes with the engine. */
	if (add_end("last", "one") != 0)
		status = 1;
	rcd_engine_destroy(engine);
	return status;
}
