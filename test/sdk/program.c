/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A program of somebody who has installed Rocade, and no source of it: an engine with an embedded
 * wire, which the program polls itself until it is told to end. Then it says what was counted. C
 * and C++ alike.
 *
 *     program EAL_OPTION... -- SOCKET
 */
#include <errno.h>
#include <inttypes.h>
#include <rcd_clock.h>
#include <rcd_engine.h>
#include <rcd_poll.h>
#include <rcd_version.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define RUN_NS UINT64_C(60000000000) /**< it ends by itself, too */
#define BUDGET 32

static char error[256];
static volatile sig_atomic_t stop;

static void
program_on_signal(int signal)
{
	(void)signal;
	stop = 1;
}

static int
program_say(const char *what)
{
	fprintf(stderr, "program: %s: %s\n", what, error);
	return -1;
}

static int
program_add(struct rcd_engine *engine, const char *name, const char *peer, const char *address)
{
	struct rcd_dev_conf conf;
	enum rcd_link_key wrong;

	memset(&conf, 0, sizeof(conf));
	snprintf(conf.name, sizeof(conf.name), "%s", name);
	conf.no_shortcut = true;
	if (rcd_dev_conf_set(&conf, "type", "wire", error, sizeof(error)) != 0 ||
		rcd_dev_conf_set(&conf, "peer", peer, error, sizeof(error)) != 0 ||
		rcd_dev_conf_set(&conf, "address", address, error, sizeof(error)) != 0 ||
		rcd_dev_conf_check(&conf, &wrong, error, sizeof(error)) != 0 ||
		rcd_engine_dev_add(engine, &conf, error, sizeof(error)) != 0)
		return program_say(name);
	return 0;
}

static int
program_run(struct rcd_engine *engine)
{
	struct rcd_lcore *lcore = rcd_engine_lcore(engine, 0);
	uint64_t began_ns = rcd_clock_ns();
	uint64_t now_ns;
	uint16_t port_id;

	if (program_add(engine, "left", "right", "10.9.0.1/24") != 0)
		return -1;
	if (rcd_engine_dev_port(engine, "left", &port_id) != -ENOENT)
		return program_say("an end of a wire has a port, and no peer");
	if (program_add(engine, "right", "left", "10.9.0.2/24") != 0)
		return -1;
	if (rcd_engine_dev_port(engine, "left", &port_id) != 0)
		return program_say("no port");
	if (rcd_engine_lcore_count(engine) != 1 || rcd_engine_start(engine) != -ENOTSUP)
		return program_say("somebody else polls");
	printf("ready\n");
	fflush(stdout);
	do {
		rcd_engine_step(engine, 0);
		now_ns = rcd_clock_ns();
		if (rcd_lcore_poll(lcore, now_ns, BUDGET) == 0)
			sched_yield();
	} while (now_ns - began_ns < RUN_NS && !stop && !rcd_engine_stopping(engine));
	for (int i = 0; i < RCD_COUNTER_COUNT; i++) {
		enum rcd_counter counter = (enum rcd_counter)i;

		printf("%s %" PRIu64 " %" PRIu64 "\n", rcd_counter_name(counter),
			rcd_engine_dev_count(engine, "left", counter),
			rcd_engine_dev_count(engine, "right", counter));
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct rcd_engine_conf conf;
	struct rcd_engine *engine;
	int err, eal_words;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, program_on_signal);
	if (rcd_engine_version_num() != RCD_ENGINE_VERSION_NUM)
		return 2;
	printf("release %s\n", rcd_engine_version());
	eal_words = rte_eal_init(argc, argv);
	if (eal_words < 0 || eal_words + 1 >= argc) {
		fprintf(stderr, "program: EAL: %s\n", rte_strerror(rte_errno));
		return 2;
	}
	rcd_engine_conf_init(&conf);
	snprintf(conf.socket, sizeof(conf.socket), "%s", argv[eal_words + 1]);
	conf.mbufs = 4096;
	engine = rcd_engine_create(&conf, error, sizeof(error));
	if (engine == NULL) {
		program_say("no engine");
		return 2;
	}
	err = rcd_engine_create(&conf, NULL, 0) == NULL ? 0 : program_say("two engines");
	if (err == 0)
		err = program_run(engine);
	rcd_engine_destroy(engine);
	/* And again, without clients: the first one left nothing. */
	conf.socket[0] = '\0';
	engine = rcd_engine_create(&conf, error, sizeof(error));
	if (engine == NULL)
		err = program_say("no second engine");
	rcd_engine_destroy(engine);
	rte_eal_cleanup();
	return err == 0 ? 0 : 1;
}
