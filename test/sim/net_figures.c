/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what queue pairs make of a network that they share. Method: the scenarios of
 * net_scenario.c, or one of them changed by options, each a row of a table in Markdown, and on
 * request a plot of rates and queue over time. A record, no gate: but wrong bytes, or frames that
 * nobody can account for, are errors.
 *
 *   net_figures [--scenario NAME] [options]
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "net_plot.h"

/* An option: a number, put into the options of a scenario. */
struct setting {
	const char *name;
	const char *text;
	void (*set)(struct net_options *options, double value);
};

/* Those that are one field: their name, the field, and what it is. */
#define FIELDS                                                                                     \
	FIELD(seed, seed, "all that is random follows from it")                                    \
	FIELD(senders, senders, "flows with an end")                                               \
	FIELD(beside, beside, "endless flows beside them")                                         \
	FIELD(dropping, dropping, "receivers that go back N, with pairs")                          \
	FIELD(plain, plain, "senders without congestion control")                                  \
	FIELD(size, flow.size, "bytes of a message, up to 1048576")                                \
	FIELD(outstanding, flow.outstanding, "messages of a flow under way")                       \
	FIELD(messages, flow.messages, "messages of a flow in all")                                \
	FIELD(read, flow.read, "1: READs instead of WRITEs")                                       \
	FIELD(mtu, flow.mtu, "path MTU, bytes")                                                    \
	FIELD(rate, flow.rate_kbps, "of each sender with an end, kb/s; 0: no limit")               \
	FIELD(delay, link.delay_ns, "of a link, ns")                                               \
	FIELD(loss, link.loss, "of a link, probability")                                           \
	FIELD(buffer, buffer.port_bytes, "of a port, bytes")                                       \
	FIELD(shared, buffer.shared_bytes, "of a switch, for all ports together, bytes")           \
	FIELD(kmin, ecn.kmin_bytes, "bytes in a queue beyond which it marks; 0: it does not")      \
	FIELD(kmax, ecn.kmax_bytes, "bytes beyond which it always marks")                          \
	FIELD(pmax, ecn.pmax, "probability of that just before")

#define FIELD(name, field, what)                                                                   \
	static void set_##name(struct net_options *options, double value)                          \
	{                                                                                          \
		options->field = (__typeof__(options->field))value;                                \
	}
FIELDS
#undef FIELD

#define RCD_CC_PARAM(algorithm, name, field, least, most, start, what)                             \
	static void set_##field(struct net_options *options, double value)                         \
	{                                                                                          \
		options->cc_params.field = (uint32_t)value;                                        \
	}
#include "rcd_cc_param.def"

static void
set_gbps(struct net_options *options, double value)
{
	options->middle.gbps *= value / options->link.gbps;
	options->link.gbps = value;
}

static void
set_kept(struct net_options *options, double value)
{
	options->host.kept = options->receiver.kept = (uint32_t)value;
}

static void
set_tick(struct net_options *options, double value)
{
	options->host.tick_ns = options->receiver.tick_ns = (uint64_t)value;
}

static void
set_sack(struct net_options *options, double value)
{
	options->host.sack = value == 1;
	options->receiver.sack = value >= 1;
}

static const struct setting settings[] = {
#define FIELD(name, field, what) { #name, what, set_##name },
	FIELDS
#define RCD_CC_PARAM(algorithm, name, field, least, most, start, what)                             \
	{ #algorithm "-" #name, what, set_##field },
#include "rcd_cc_param.def"
	{ "gbps", "speed of the links", set_gbps },
	{ "kept", "room of a host for packets out of order; 0: go back N", set_kept },
	{ "sack", "1: selective acknowledgement; 2: the receivers alone", set_sack },
	{ "tick", "timers are looked at so often, ns", set_tick },
};

/* What was asked for, applied to each scenario. */
static struct {
	const char *plot;
	const struct rcd_cc_ops *cc;
	bool given[RCD_ARRAY_COUNT(settings)];
	double values[RCD_ARRAY_COUNT(settings)];
} asked;

static void
print_head(void)
{
	printf("| scenario | flows | Gb/s | beside | Jain | full | late | lost | down | ring "
	       "| marked | again | p50, us | p99, us | queue p99, KiB | most | failed |\n"
	       "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

static void
print_row(const struct net_run *run)
{
	const struct net_options *options = &run->options;
	const struct net_result *result = &run->result;

	printf("| %s | %" PRIu32 " | %.1f | %.1f | %.3f | %" PRIu64 " | %" PRIu64 " | %" PRIu64
	       " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %.2f %% | %.1f | %.1f | %" PRIu32
	       " | %" PRIu32 " | %" PRIu32 " |\n",
		options->name, run->flow_count, result->gbps, result->beside_gbps, result->jain,
		result->dropped[NET_FULL], result->late, result->dropped[NET_LOST],
		result->dropped[NET_DOWN], result->dropped[NET_RING], result->marked,
		100.0 * (double)result->again / (double)(result->sent > 0 ? result->sent : 1),
		(double)result->p50_ns / 1e3, (double)result->p99_ns / 1e3,
		result->queue_p99_bytes >> 10, result->queue_most_bytes >> 10, result->failed);
	if (options->dropping > 0 || options->plain > 0)
		fprintf(stderr, "# up to its end a flow has %.1f Gb/s, those like rxe's %.1f\n",
			result->own_gbps, result->rxe_gbps);
	fflush(stdout);
}

/* @return whether it could be run and was right */
static bool
run_one(struct net_options options)
{
	static struct net_run run;
	const struct net_result *result = &run.result;
	bool fine;

	options.cc = asked.cc;
	for (size_t i = 0; i < RCD_ARRAY_COUNT(settings); i++) {
		if (asked.given[i])
			settings[i].set(&options, asked.values[i]);
	}
	if (!net_options_valid(&options)) {
		fprintf(stderr, "%s: an option is out of range\n", options.name);
		return false;
	}
	net_scenario_run(&run, &options);
	print_row(&run);
	fine = result->ended && result->counted && result->wrong == 0;
	if (!fine)
		fprintf(stderr, "%s: %s\n", options.name,
			result->wrong > 0         ? "wrong bytes"
				: result->counted ? "it does not end"
						  : "frames went astray");
	if (fine && asked.plot != NULL && !net_plot(&run, asked.plot)) {
		fprintf(stderr, "%s: no plot: gnuplot failed\n", asked.plot);
		fine = false;
	}
	net_scenario_fini(&run);
	return fine;
}

static void
print_help(void)
{
	struct net_options options;

	printf("usage: net_figures [--scenario NAME] [--cc NAME] [--plot FILE.svg] [--SETTING "
	       "NUMBER]...\n\nscenarios, all of them without --scenario:\n");
	for (uint32_t i = 0; net_scenario_get(i, &options); i++)
		printf("  %-12s %s\n", options.name, options.text);
	printf("\nsettings:\n");
	for (size_t i = 0; i < RCD_ARRAY_COUNT(settings); i++)
		printf("  --%-15s %s\n", settings[i].name, settings[i].text);
}

/* @return whether all was understood; `scenario` is set to NULL when all are meant */
static bool
read_options(int argc, char **argv, const char **scenario)
{
	enum {
		SCENARIO = 1000,
		CC,
		PLOT,
		HELP
	};
	struct option longopts[RCD_ARRAY_COUNT(settings) + 5] = {
		{ "scenario", required_argument, NULL, SCENARIO },
		{ "cc", required_argument, NULL, CC },
		{ "plot", required_argument, NULL, PLOT },
		{ "help", no_argument, NULL, HELP },
	};
	char *end;
	int opt;

	for (size_t i = 0; i < RCD_ARRAY_COUNT(settings); i++)
		longopts[4 + i] =
			(struct option){ settings[i].name, required_argument, NULL, (int)i };
	*scenario = NULL;
	asked.cc = &rcd_cc_none;
	while ((opt = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (opt == SCENARIO) {
			*scenario = optarg;
		} else if (opt == CC) {
			asked.cc = rcd_cc_by_name(optarg);
			if (asked.cc == NULL)
				return false;
		} else if (opt == PLOT) {
			asked.plot = optarg;
		} else if (opt >= 0 && opt < (int)RCD_ARRAY_COUNT(settings)) {
			asked.given[opt] = true;
			asked.values[opt] = strtod(optarg, &end);
			if (end == optarg || *end != '\0' || !(asked.values[opt] >= 0) ||
				asked.values[opt] > UINT32_MAX)
				return false;
		} else {
			return false;
		}
	}
	return optind == argc;
}

int
main(int argc, char **argv)
{
	struct net_options options;
	const char *scenario;
	bool fine = true;

	if (!read_options(argc, argv, &scenario) || (scenario == NULL && asked.plot != NULL) ||
		(scenario != NULL && !net_scenario_find(scenario, &options))) {
		print_help();
		return 2;
	}
	print_head();
	if (scenario != NULL)
		return !run_one(options);
	for (uint32_t i = 0; net_scenario_get(i, &options); i++)
		fine = run_one(options) && fine;
	return !fine;
}
