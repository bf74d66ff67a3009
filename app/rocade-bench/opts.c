/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Options of the command line; the prompt sets the same ones by the same names.
 */
#include <errno.h>
#include <rte_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench.h"
#include "options.h"
#include "rcd_cc.h"
#include "version.h"

#define SIZE_MAX_BYTES (UINT32_C(1) << 30)

const char *const bench_op_names[BENCH_OP_COUNT] = { "send", "write", "write-imm", "read", "cas",
	"faa" };

static const char *const service_names[] = {
	[RCD_QP_RC] = "rc", [RCD_QP_UC] = "uc", [RCD_QP_UD] = "ud"
};

static const char *const client_names[] = { [BENCH_DIRECT] = "direct", [BENCH_SHM] = "shm" };

enum {
	OPT_PORT_A = 256,
	OPT_PORT_B,
	OPT_IMPAIR,
	OPT_TURNS,
	OPT_SACK,
	OPT_CC,
};

static const struct option_info option_list[] = {
#define OPTION(letter, name, argument, what) { letter, name, argument, what },
#include "options.def"
};

static void
opts_usage(FILE *out)
{
	fputs("usage: rocade-bench [EAL options] -- [OPTIONS]\n"
	      "\n"
	      "Two ends of RDMA traffic in one process: the engine on EAL worker lcores, an\n"
	      "application on the same lcores or on others, ports of any kind between them.\n"
	      "\n",
		out);
	options_print(out, option_list, RTE_DIM(option_list));
}

bool
bench_opts_is_about(const char *word)
{
	return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-V") == 0 ||
		strcmp(word, "--version") == 0;
}

const char *
bench_service_name(enum rcd_qp_type service)
{
	return service_names[service];
}

void
bench_opts_init(struct bench_opts *opts)
{
	*opts = (struct bench_opts){
		.op = BENCH_WRITE,
		.sizes = { 64 },
		.size_count = 1,
		.depth = 128,
		.qps = 16,
		.sges = 1,
		.burst = 64,
		.signal = 16,
		.seconds = 2,
		.rounds = 1,
	};
}

static int
opts_bad(const char *name, const char *val, const char *what)
{
	fprintf(stderr, "rocade-bench: %s %s: %s\n", name, val, what);
	return -EINVAL;
}

static int
opts_parse_number(
	const char *name, const char *val, uint32_t least, uint32_t most, uint32_t *number)
{
	char *end;
	unsigned long long parsed;
	char range[64];

	errno = 0;
	parsed = strtoull(val, &end, 10);
	if (end != val && (*end == 'K' || *end == 'k'))
		parsed *= 1024, end++;
	else if (end != val && (*end == 'M' || *end == 'm'))
		parsed *= 1024 * 1024, end++;
	if (errno != 0 || end == val || *end != '\0' || val[0] == '-' || parsed < least ||
		parsed > most) {
		snprintf(range, sizeof(range), "a number from %u to %u is wanted", least, most);
		return opts_bad(name, val, range);
	}
	*number = (uint32_t)parsed;
	return 0;
}

static int
opts_parse_name(
	const char *name, const char *val, const char *const *names, uint32_t count, int *index)
{
	char text[128] = "known are";

	for (uint32_t i = 0; i < count; i++) {
		if (strcasecmp(names[i], val) == 0) {
			*index = (int)i;
			return 0;
		}
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s", names[i]);
	}
	return opts_bad(name, val, text);
}

static int
opts_parse_sizes(struct bench_opts *opts, const char *name, const char *val)
{
	char text[512];
	char *save = NULL;
	uint32_t sizes[BENCH_SIZES_MAX];
	uint32_t count = 0;

	if (strcmp(val, "all") == 0) {
		for (opts->size_count = 0; opts->size_count < 20; opts->size_count++)
			opts->sizes[opts->size_count] = UINT32_C(8) << opts->size_count;
		return 0;
	}
	if (strlen(val) >= sizeof(text))
		return opts_bad(name, val, "too long");
	snprintf(text, sizeof(text), "%s", val);
	for (char *word = strtok_r(text, ",", &save); word != NULL;
		word = strtok_r(NULL, ",", &save)) {
		if (count == BENCH_SIZES_MAX)
			return opts_bad(name, val, "too many sizes");
		if (opts_parse_number(name, word, 0, SIZE_MAX_BYTES, &sizes[count++]) != 0)
			return -EINVAL;
	}
	if (count == 0)
		return opts_bad(name, val, "a size is wanted");
	memcpy(opts->sizes, sizes, count * sizeof(sizes[0]));
	opts->size_count = count;
	return 0;
}

static int
opts_parse_seconds(struct bench_opts *opts, const char *name, const char *val)
{
	char *end;
	double parsed = strtod(val, &end);

	if (end == val || *end != '\0' || !(parsed >= 0.01 && parsed <= 86400))
		return opts_bad(name, val, "seconds from 0.01 to 86400 are wanted");
	opts->seconds = parsed;
	return 0;
}

static int
opts_parse_text(const char *name, const char *val, char *text, size_t text_len)
{
	if (strlen(val) >= text_len)
		return opts_bad(name, val, "too long");
	snprintf(text, text_len, "%s", val);
	return 0;
}

static int
opts_parse_sack(struct bench_opts *opts, const char *name, const char *val)
{
	const char *const names[] = {
		[RCD_SACK_AUTO] = rcd_sack_use_name(RCD_SACK_AUTO),
		[RCD_SACK_CM] = rcd_sack_use_name(RCD_SACK_CM),
		[RCD_SACK_OFF] = rcd_sack_use_name(RCD_SACK_OFF),
	};

	return opts_parse_name(name, val, names, RTE_DIM(names), &opts->sack);
}

static int
opts_parse_cc(struct bench_opts *opts, const char *name, const char *val)
{
	struct rcd_cc_params params;
	const struct rcd_cc_ops *ops;
	const char *wrong;

	if (strcmp(val, "auto") == 0)
		return opts_parse_text(name, "", opts->cc, sizeof(opts->cc));
	wrong = rcd_cc_parse(val, &ops, &params);
	if (wrong != NULL)
		return opts_bad(name, val, wrong);
	return opts_parse_text(name, val, opts->cc, sizeof(opts->cc));
}

/* @param opt  a letter of the list */
static int
opts_set(struct bench_opts *opts, int opt, const char *name, const char *val)
{
	int index = 0;
	int err;

	switch (opt) {
	case 'o':
		err = opts_parse_name(name, val, bench_op_names, BENCH_OP_COUNT, &index);
		opts->op = err == 0 ? (enum bench_op)index : opts->op;
		return err;
	case 't':
		err = opts_parse_name(name, val, service_names, RTE_DIM(service_names), &index);
		opts->service = err == 0 ? (enum rcd_qp_type)index : opts->service;
		return err;
	case 'c':
		err = opts_parse_name(name, val, client_names, RTE_DIM(client_names), &index);
		opts->client = err == 0 ? (enum bench_client)index : opts->client;
		return err;
	case 's':
		return opts_parse_sizes(opts, name, val);
	case 'd':
		return opts_parse_number(name, val, 1, 32768, &opts->depth);
	case 'q':
		return opts_parse_number(name, val, 1, 16384, &opts->qps);
	case 'e':
		return opts_parse_number(name, val, 1, RCD_SGE_MAX, &opts->sges);
	case 'm':
		return opts_parse_number(name, val, 256, 4096, &opts->mtu);
	case 'b':
		return opts_parse_number(name, val, 1, RCD_BURST_MAX, &opts->burst);
	case 'n':
		return opts_parse_number(name, val, 1, 32768, &opts->signal);
	case 'I':
		return opts_parse_number(name, val, 0, RCD_INLINE_MAX, &opts->inline_max);
	case 'l':
		return opts_parse_number(name, val, 0, BENCH_PARTS_MAX / 2, &opts->lcores_per_side);
	case 'r':
		return opts_parse_number(name, val, 1, 1000, &opts->rounds);
	case OPT_PORT_A:
		return opts_parse_text(name, val, opts->ports[0], sizeof(opts->ports[0]));
	case OPT_PORT_B:
		return opts_parse_text(name, val, opts->ports[1], sizeof(opts->ports[1]));
	case OPT_IMPAIR:
		return opts_parse_text(name, val, opts->impair, sizeof(opts->impair));
	case OPT_TURNS:
		return opts_parse_number(name, val, 0, 10000, &opts->turn_ms);
	case OPT_SACK:
		return opts_parse_sack(opts, name, val);
	case OPT_CC:
		return opts_parse_cc(opts, name, val);
	case 'D':
		return opts_parse_seconds(opts, name, val);
	case 'j':
		opts->json = val;
		return 0;
	default:
		break;
	}
	return -EINVAL;
}

int
bench_opts_set(struct bench_opts *opts, const char *name, const char *val)
{
	for (size_t i = 0; i < RTE_DIM(option_list); i++)
		if (strcmp(option_list[i].name, name) == 0 && option_list[i].argument != NULL)
			return opts_set(opts, option_list[i].letter, name, val);
	return opts_bad(name, val, "no such option");
}

static const char *
opts_name_of(int letter)
{
	size_t i = 0;

	while (option_list[i].letter != letter)
		i++;
	return option_list[i].name;
}

int
bench_opts_parse(struct bench_opts *opts, int argc, char **argv)
{
	struct option_table table;
	int opt;

	options_table(option_list, RTE_DIM(option_list), &table);
	optind = 1;
	while ((opt = getopt_long(argc, argv, table.letters, table.longs, NULL)) != -1) {
		switch (opt) {
		case 'x':
			opts->bidirectional = true;
			break;
		case 'L':
			opts->latency = true;
			break;
		case 'C':
			opts->ceilings = true;
			break;
		case 'y':
			opts->yield = true;
			break;
		case 'i':
			opts->interactive = true;
			break;
		case 'h':
			opts_usage(stdout);
			return 1;
		case '?':
			opts_usage(stderr);
			return -EINVAL;
		case 'V':
			version_print("rocade-bench", rte_version());
			return 1;
		default:
			if (opts_set(opts, opt, opts_name_of(opt), optarg) != 0)
				return -EINVAL;
			break;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "rocade-bench: what is %s?\n", argv[optind]);
		return -EINVAL;
	}
	return bench_opts_check(opts);
}

static int
opts_wrong(const char *what)
{
	fprintf(stderr, "rocade-bench: %s\n", what);
	return -EINVAL;
}

int
bench_opts_check(const struct bench_opts *opts)
{
	bool atomic = opts->op == BENCH_CAS || opts->op == BENCH_FAA;

	if (opts->service == RCD_QP_UD && opts->op != BENCH_SEND)
		return opts_wrong("ud can only send");
	if (opts->service == RCD_QP_UC && (atomic || opts->op == BENCH_READ))
		return opts_wrong("uc can only send and write");
	for (uint32_t i = 0; i < opts->size_count; i++) {
		if (atomic && opts->sizes[i] != 8)
			return opts_wrong("cas and faa work on 8 bytes (-s 8)");
		if (opts->latency && opts->op == BENCH_WRITE && opts->sizes[i] == 0)
			return opts_wrong(
				"the receiver looks at the last byte: there must be one (-s)");
	}
	if (atomic && opts->sges != 1)
		return opts_wrong("cas and faa have one element (-e 1)");
	if (opts->mtu != 0 && (opts->mtu & (opts->mtu - 1)) != 0)
		return opts_wrong("the path MTU is 256, 512, 1024, 2048 or 4096");
	if ((opts->ports[0][0] == '\0') != (opts->ports[1][0] == '\0'))
		return opts_wrong("--port-a and --port-b go together");
	if (opts->latency && opts->bidirectional)
		return opts_wrong("latency is measured in both directions anyway");
	if (opts->turn_ms != 0 && (opts->impair[0] == '\0' || opts->latency || opts->interactive))
		return opts_wrong("--turns goes with --impair, and not with -L or -i");
	if (opts->turn_ms != 0 && opts->turn_ms < BENCH_TURN_MS_LEAST)
		return opts_wrong("--turns: 20 ms at least");
	if (opts->turn_ms != 0 && strlen(opts->impair) + BENCH_SEED_LEN > sizeof(opts->impair))
		return opts_wrong("with --turns, --impair has at most 228 characters");
	return 0;
}

uint32_t
bench_opts_workers(const struct bench_opts *opts)
{
	uint32_t engine = opts->lcores_per_side == 0 ? 1 : 2 * opts->lcores_per_side;

	return opts->client == BENCH_SHM ? 2 * engine : engine;
}
