/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine daemon: options, EAL with or without hugepages, privileges, signals, and the loop of
 * the control thread. What an engine does is in lib/engine.
 */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_pdump.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "conf.h"
#include "eal_start.h"
#ifdef ROCADE_NET_IMPAIR
#include "rcd_pmd_impair.h"
#endif

#define STEP_MS 1000

struct options {
	const char *config;
	const char *socket;
	bool check;
	bool embedded_wire;
};

static volatile sig_atomic_t stop;
static struct rcd_engine *running;

static void
on_signal(int signo)
{
	(void)signo;
	stop = 1;
	if (running != NULL)
		rcd_engine_wake(running);
}

static void
usage(FILE *out)
{
	fprintf(out,
		"usage: rocaded [EAL options] [-- OPTIONS]\n"
		"\n"
		"  -c, --config FILE    configuration\n"
		"      --check-config   say what is wrong with it, and end\n"
		"  -s, --socket PATH    control socket (default %s)\n"
		"      --embedded-wire  make roce0 and roce1, joined by an embedded wire\n"
		"  -h, --help\n"
		"      --version\n"
		"\n"
		"Without EAL options: one polling lcore on the last core, hugepages when there "
		"are\n"
		"some, --file-prefix rocade.\n",
		"/run/rocade/rocade.sock");
}

static int
parse_options(int argc, char **argv, struct options *options)
{
	enum {
		OPT_CHECK = 256,
		OPT_WIRE,
		OPT_VERSION
	};
	static const struct option longs[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check-config", no_argument, NULL, OPT_CHECK },
		{ "socket", required_argument, NULL, 's' },
		{ "embedded-wire", no_argument, NULL, OPT_WIRE },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "c:s:h", longs, NULL)) != -1) {
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
		case OPT_WIRE:
			options->embedded_wire = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		case OPT_VERSION:
			printf("rocaded %s\n", ROCADE_VERSION);
			exit(0);
		default:
			usage(stderr);
			return -EINVAL;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "rocaded: what is %s?\n", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

/* Keep what the engine needs of root's rights, and nothing else. */
static int
become(const char *name)
{
	static const int keep[] = { CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_SYS_PTRACE,
		CAP_SYS_NICE, CAP_BPF };
	const struct passwd *user = getpwnam(name);
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (user == NULL) {
		fprintf(stderr, "rocaded: there is no user %s\n", name);
		return -EINVAL;
	}
	for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++) {
		data[keep[i] / 32].permitted |= 1u << (keep[i] % 32);
		data[keep[i] / 32].effective |= 1u << (keep[i] % 32);
	}
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || initgroups(name, user->pw_gid) != 0 ||
		setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0 ||
		syscall(SYS_capset, &header, data) != 0) {
		fprintf(stderr, "rocaded: can't become %s: %s\n", name, strerror(errno));
		return -EPERM;
	}
	return 0;
}

/* The folder of the socket, when it is the default one's. */
static void
make_folder(const struct conf *conf)
{
	char path[sizeof(conf->engine.socket)];
	char *slash;

	snprintf(path, sizeof(path), "%s", conf->engine.socket);
	slash = strrchr(path, '/');
	if (slash == NULL || slash == path)
		return;
	*slash = '\0';
	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		fprintf(stderr, "rocaded: can't make %s: %s\n", path, strerror(errno));
}

static int
find_group(struct conf *conf)
{
	const struct group *group;

	if (conf->group[0] == '\0')
		return 0;
	group = getgrnam(conf->group);
	if (group == NULL) {
		fprintf(stderr, "rocaded: there is no group %s\n", conf->group);
		return -EINVAL;
	}
	conf->engine.socket_gid = (int32_t)group->gr_gid;
	return 0;
}

static int
add_devices(struct rcd_engine *engine, const struct conf *conf)
{
	char error[512] = "";

	for (uint32_t i = 0; i < conf->dev_count; i++) {
		if (rcd_engine_dev_add(engine, &conf->devs[i], error, sizeof(error)) != 0) {
			fprintf(stderr, "rocaded: %s\n", error);
			return -1;
		}
	}
	return 0;
}

static int
run(struct conf *conf)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct rcd_engine *engine;
	char error[512] = "";
	int status = 1;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	make_folder(conf);
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
	} else if (add_devices(engine, conf) == 0 &&
		(conf->user[0] == '\0' || become(conf->user) == 0)) {
		sd_notify(0, "READY=1");
		while (!stop && !rcd_engine_stopping(engine))
			rcd_engine_step(engine, STEP_MS);
		sd_notify(0, "STOPPING=1");
		status = 0;
	}
	rte_pdump_uninit();
	running = NULL;
	rcd_engine_destroy(engine);
	return status;
}

int
main(int argc, char **argv)
{
	struct options options = { .config = NULL };
	struct eal_wish wish = {
		.program = "rocaded", .workers = 1, .memory_mb = 256, .prefix = "rocade"
	};
	struct conf conf;
	int split = 1;
	int status;

	/* EAL's options, "--", ours; ours alone may come without the "--". */
	while (split < argc && strcmp(argv[split], "--") != 0)
		split++;
	if (split == argc && argc > 1) {
		static const char *const own[] = { "--config", "--check-config", "--socket",
			"--embedded-wire", "--help", "--version", "-h", "-s" };

		for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
			if (eal_is_option(argv[1], own[i]))
				split = 0;
	}
	conf_init(&conf);
	if (split < argc && parse_options(argc - split, argv + split, &options) != 0)
		return 2;
	if (options.config != NULL && conf_load(&conf, options.config) != 0)
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
	if (find_group(&conf) != 0)
		return 2;
	if (eal_start(split == 0 ? 1 : split, argv, &wish) != 0)
		return 1;
	status = run(&conf);
	rte_eal_cleanup();
	eal_remove_files(&wish);
	return status;
}
