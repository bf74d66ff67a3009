/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine daemon: options, EAL with or without hugepages, signals, and the loop of the control
 * thread. What an engine does is in lib/engine.
 */
#include <errno.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_pdump.h>
#include <rte_version.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "conf.h"
#include "eal_start.h"
#include "netns.h"
#include "options.h"
#include "rights.h"
#include "version.h"
#ifdef ROCADE_NET_IMPAIR
#include "rcd_pmd_impair.h"
#endif

#define STEP_MS  1000
#define KEYS_MAX 16
#define SLICE_NS 100000u /**< the shortest there is */

struct options {
	const char *config;
	const char *socket;
	const char *keys[KEYS_MAX]; /**< KEY=VALUE of [engine] */
	uint32_t key_count;
	bool check;
	bool embedded_wire;
};

static volatile sig_atomic_t stop;
static struct rcd_engine *running;

static void
rocaded_main_on_signal(int signo)
{
	(void)signo;
	stop = 1;
	if (running != NULL)
		rcd_engine_wake(running);
}

enum {
	OPT_CHECK = 256,
	OPT_WIRE,
};

static const struct option_info option_list[] = {
#define OPTION(letter, name, argument, what) { letter, name, argument, what },
#include "options.def"
};

static void
rocaded_main_usage(FILE *out)
{
	fputs("usage: rocaded [EAL options] [-- OPTIONS]\n\n", out);
	options_print(out, option_list, RTE_DIM(option_list));
	fputs("\n"
	      "Without EAL options: one polling lcore on the last core, hugepages when there are\n"
	      "some, --file-prefix rocade.\n",
		out);
}

static int
rocaded_main_parse_options(int argc, char **argv, struct options *options)
{
	struct option_table table;
	int opt;

	options_table(option_list, RTE_DIM(option_list), &table);
	optind = 1;
	while ((opt = getopt_long(argc, argv, table.letters, table.longs, NULL)) != -1) {
		switch (opt) {
		case 'c':
			options->config = optarg;
			break;
		case OPT_CHECK:
			options->check = true;
			break;
		case 's':
			options->socket = optarg;
			break;
		case 'o':
			if (options->key_count == KEYS_MAX) {
				fprintf(stderr, "rocaded: too many options\n");
				return -EINVAL;
			}
			options->keys[options->key_count++] = optarg;
			break;
		case OPT_WIRE:
			options->embedded_wire = true;
			break;
		case 'h':
			rocaded_main_usage(stdout);
			exit(0);
		case 'V':
			version_print("rocaded", rte_version());
			exit(0);
		default:
			rocaded_main_usage(stderr);
			return -EINVAL;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "rocaded: what is %s?\n", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

/* Whom the daemon becomes, whom the socket belongs to, and who administers. */
static int
rocaded_main_find_names(struct conf *conf, struct rights_user *user)
{
	struct rights_user admin;
	gid_t gid;

	if (conf->user[0] != '\0' && rights_find_user(conf->user, user) != 0)
		return -EINVAL;
	if (conf->group[0] != '\0') {
		if (rights_find_group(conf->group, &gid) != 0)
			return -EINVAL;
		conf->engine.socket_gid = gid;
	}
	if (conf->admin_user[0] != '\0') {
		if (rights_find_user(conf->admin_user, &admin) != 0)
			return -EINVAL;
		conf->engine.admin_uid = admin.uid;
	}
	if (conf->admin_group[0] != '\0') {
		if (rights_find_group(conf->admin_group, &gid) != 0)
			return -EINVAL;
		conf->engine.admin_gid = gid;
	}
	return 0;
}

/* The folder of the socket. One that is made here belongs to whom the daemon becomes. */
static void
rocaded_main_make_folder(const struct conf *conf, const struct rights_user *user)
{
	char path[sizeof(conf->engine.socket)];
	char *slash;

	snprintf(path, sizeof(path), "%s", conf->engine.socket);
	slash = strrchr(path, '/');
	if (slash == NULL || slash == path)
		return;
	*slash = '\0';
	if (mkdir(path, 0755) != 0) {
		if (errno != EEXIST)
			fprintf(stderr, "rocaded: can't make %s: %s\n", path, strerror(errno));
		return;
	}
	if (user != NULL && chown(path, user->uid, user->gid) != 0)
		fprintf(stderr, "rocaded: can't give %s away: %s\n", path, strerror(errno));
}

/* What must be removed in the end belongs to whom the daemon becomes. */
static void
rocaded_main_hand_over(const struct conf *conf, const struct rights_user *user)
{
	const char *const paths[] = { conf->engine.socket, rte_eal_get_runtime_dir() };
	char path[512];
	char *slash;

	/* EAL makes the folder above its own for root alone. Each in it has rights of its own. */
	snprintf(path, sizeof(path), "%s", rte_eal_get_runtime_dir());
	slash = strrchr(path, '/');
	if (slash != NULL) {
		*slash = '\0';
		chmod(path, 0711);
	}
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (lchown(paths[i], user->uid, (gid_t)-1) != 0)
			fprintf(stderr, "rocaded: can't give %s away: %s\n", paths[i],
				strerror(errno));
}

/** What the filter of an lcore is, and how its making went. */
struct lcore_filter {
	enum filter_mode mode;
	int err;
};

/*
 * A program that waits by looking at memory makes no call in which it would leave its core to an
 * lcore that has work. With a short slice the lcore gets it at the scheduler's next tick. Kernels
 * before 6.12 know no slices and pass over it.
 */
static void
rocaded_main_shorten_slice(void *arg)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} attr = { .size = sizeof(attr), .runtime_ns = SLICE_NS };

	(void)arg;
	if (sched_getscheduler(0) != SCHED_OTHER)
		return;
	attr.nice = getpriority(PRIO_PROCESS, 0);
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void
rocaded_main_filter_on_lcore(void *arg)
{
	struct lcore_filter *filter = arg;
	int err = filter_lcore(filter->mode);

	if (err != 0)
		filter->err = err;
}

/* From here on the daemon can do what it takes to run, and no more. */
static int
rocaded_main_confine(
	struct rcd_engine *engine, const struct conf *conf, const struct rights_user *user)
{
	struct lcore_filter filter = { .mode = conf->calls };

	if (user != NULL)
		rocaded_main_hand_over(conf, user);
	if (rights_drop(user, conf->core_dumps) != 0)
		return -EPERM;
	if (conf->engine.idle != RCD_IDLE_POLL)
		rcd_engine_each_lcore(engine, rocaded_main_shorten_slice, NULL);
	filter.err = filter_all(conf->calls);
	if (filter.err == 0)
		rcd_engine_each_lcore(engine, rocaded_main_filter_on_lcore, &filter);
	if (filter.err != 0)
		fprintf(stderr,
			"rocaded: no filter of system calls: %s (seccomp = off does without)\n",
			strerror(-filter.err));
	return filter.err;
}

/* Who makes sockets of other network namespaces, where some are wanted. @return 0 or -errno */
static int
rocaded_main_begin_netns(struct conf *conf)
{
	bool wanted = conf->engine.netns_links > 0;
	int sock;

	for (uint32_t i = 0; i < conf->dev_count; i++)
		wanted |= conf->devs[i].netns[0] != '\0';
	if (!wanted)
		return 0;
	sock = netns_begin();
	if (sock < 0) {
		fprintf(stderr, "rocaded: no process for network namespaces: %s\n",
			strerror(-sock));
		return sock;
	}
	conf->engine.netns_fd = sock;
	return 0;
}

static int
rocaded_main_add_devices(struct rcd_engine *engine, const struct conf *conf)
{
	char error[512] = "";

	for (uint32_t i = 0; i < conf->dev_count; i++) {
		if (rcd_engine_dev_add(engine, &conf->devs[i], error, sizeof(error)) != 0) {
			fprintf(stderr, "rocaded: %s\n", error);
			return -1;
		}
	}
	/* For those alone it was there, and has rights that nobody needs any more. */
	if (conf->engine.netns_fd >= 0 && conf->engine.netns_links == 0)
		netns_end(conf->engine.netns_fd);
	else if (conf->engine.netns_fd >= 0)
		netns_settle(conf->engine.netns_fd);
	return 0;
}

static int
rocaded_main_run(struct conf *conf, const struct rights_user *user)
{
	struct sigaction action = { .sa_handler = rocaded_main_on_signal };
	struct rcd_engine *engine;
	char error[512] = "";
	int status = 1;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	rocaded_main_make_folder(conf, user);
#ifdef ROCADE_NET_IMPAIR
	conf->engine.impair_set = rcd_pmd_impair_set;
#endif
	engine = rcd_engine_create(&conf->engine, error, sizeof(error));
	if (engine == NULL) {
		fprintf(stderr, "rocaded: %s\n", error);
		return 1;
	}
	running = engine;
	if (rte_pdump_init() != 0)
		fprintf(stderr, "rocaded: no packet capture: %s\n", rte_strerror(rte_errno));
	if (rcd_engine_start(engine) != 0) {
		fprintf(stderr, "rocaded: needs a worker lcore besides the main one (-l 0,1)\n");
	} else if (rocaded_main_add_devices(engine, conf) == 0 &&
		rocaded_main_confine(engine, conf, user) == 0) {
		sd_notify(0, "READY=1");
		while (!stop && !rcd_engine_stopping(engine)) {
			rcd_engine_step(engine, STEP_MS);
			filter_tell();
		}
		sd_notify(0, "STOPPING=1");
		status = 0;
	}
	rte_pdump_uninit();
	running = NULL;
	rcd_engine_destroy(engine);
	filter_tell();
	return status;
}

static int
rocaded_main_take_keys(struct conf *conf, const struct options *options)
{
	for (uint32_t i = 0; i < options->key_count; i++) {
		const char *what = conf_option(conf, options->keys[i]);

		if (what != NULL) {
			fprintf(stderr, "rocaded: %s: %s\n", options->keys[i], what);
			return -EINVAL;
		}
	}
	return 0;
}

/* Whether an option is one of ours. Of letters those alone that EAL has no other meaning for. */
static bool
rocaded_main_is_own(const char *word)
{
	static const char *const letters[] = { "-h", "-V", "-s", "-o" };

	for (size_t i = 0; i < RTE_DIM(letters); i++)
		if (strcmp(word, letters[i]) == 0)
			return true;
	for (size_t i = 0; i < RTE_DIM(option_list); i++)
		if (strncmp(word, "--", 2) == 0 && options_is(word + 2, option_list[i].name))
			return true;
	return false;
}

int
main(int argc, char **argv)
{
	struct options options = { .config = NULL };
	struct eal_wish wish = {
		.program = "rocaded", .workers = 1, .memory_mb = 256, .prefix = "rocade"
	};
	struct rights_user user;
	struct conf conf;
	int split = 1;
	int status;

	/* EAL's options, "--", ours; ours alone may come without the "--". */
	while (split < argc && strcmp(argv[split], "--") != 0)
		split++;
	if (split == argc && argc > 1 && rocaded_main_is_own(argv[1]))
		split = 0;
	conf_init(&conf);
	if (split < argc && rocaded_main_parse_options(argc - split, argv + split, &options) != 0)
		return 2;
	if (options.config != NULL && conf_load(&conf, options.config, stderr) != 0)
		return 2;
	if (rocaded_main_take_keys(&conf, &options) != 0)
		return 2;
	if (options.check) {
		printf("%s: fine\n", options.config != NULL ? options.config : "no configuration");
		return 0;
	}
	if (options.embedded_wire)
		conf_embedded_wire(&conf);
	if (options.socket != NULL) {
		if (strlen(options.socket) >= sizeof(conf.engine.socket)) {
			fprintf(stderr, "rocaded: %s: too long for a socket's name\n",
				options.socket);
			return 2;
		}
		snprintf(conf.engine.socket, sizeof(conf.engine.socket), "%s", options.socket);
	}
	if (rocaded_main_find_names(&conf, &user) != 0)
		return 2;
	rights_begin(conf.core_dumps);
	if (rocaded_main_begin_netns(&conf) != 0)
		return 1;
	wish.owner = conf.user[0] != '\0' ? user.uid : 0;
	if (eal_start(split == 0 ? 1 : split, argv, &wish) != 0)
		return 1;
	status = rocaded_main_run(&conf, conf.user[0] != '\0' ? &user : NULL);
	eal_end(&wish);
	return status;
}
