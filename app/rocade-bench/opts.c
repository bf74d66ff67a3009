/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Options of the command line; the prompt sets the same ones by the same names.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench.h"

#define SIZE_MAX_BYTES (UINT32_C(1) << 30)

const char *const bench_op_names[BENCH_OP_COUNT] = { "send", "write", "write-imm", "read", "cas",
	"faa" };

static const char *const service_names[] = {
	[RCD_CTRL_QP_RC] = "rc", [RCD_CTRL_QP_UC] = "uc", [RCD_CTRL_QP_UD] = "ud"
};

static const char *const client_names[] = { [BENCH_DIRECT] = "direct", [BENCH_SHM] = "shm" };

static const struct option longs[] = {
	{ "op", required_argument, NULL, 'o' },
	{ "service", required_argument, NULL, 't' },
	{ "size", required_argument, NULL, 's' },
	{ "depth", required_argument, NULL, 'd' },
	{ "qps", required_argument, NULL, 'q' },
	{ "sges", required_argument, NULL, 'e' },
	{ "mtu", required_argument, NULL, 'm' },
	{ "burst", required_argument, NULL, 'b' },
	{ "signal", required_argument, NULL, 'n' },
	{ "inline", required_argument, NULL, 'I' },
	{ "client", required_argument, NULL, 'c' },
	{ "lcores-per-side", required_argument, NULL, 'l' },
	{ "port-a", required_argument, NULL, 'A' },
	{ "port-b", required_argument, NULL, 'B' },
	{ "impair", required_argument, NULL, 'M' },
	{ "seconds", required_argument, NULL, 'D' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "json", required_argument, NULL, 'j' },
	{ "bidirectional", no_argument, NULL, 'x' },
	{ "latency", no_argument, NULL, 'L' },
	{ "ceilings", no_argument, NULL, 'C' },
	{ "yield", no_argument, NULL, 'y' },
	{ "interactive", no_argument, NULL, 'i' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void
usage(FILE *out)
{
	fputs("usage: rocade-bench [EAL options] -- [OPTIONS]\n"
	      "\n"
	      "Two ends of RDMA traffic in one process: the engine on EAL worker lcores, an\n"
	      "application on the same lcores or on others, ports of any kind between them.\n"
	      "\n"
	      "  -o, --op OP             send, write, write-imm, read, cas, faa (write)\n"
	      "  -t, --service TYPE      rc, uc, ud (rc)\n"
	      "  -s, --size BYTES,...    of a message, K and M allowed; all: powers of two (64)\n"
	      "  -d, --depth N           work requests under way in each queue pair (128)\n"
	      "  -q, --qps N             queue pairs (16)\n"
	      "  -e, --sges N            elements of each work request (1)\n"
	      "  -m, --mtu BYTES         path MTU (the largest that the ports do)\n"
	      "  -b, --burst N           packets received and sent in a poll, up to 64 (64)\n"
	      "  -n, --signal N          ask for a completion every N work requests (16)\n"
	      "  -I, --inline N          messages up to N bytes go inline (0)\n"
	      "  -x, --bidirectional     both ends send\n"
	      "  -c, --client WHERE      direct: on the engine's lcores, between two polls\n"
	      "                          shm: on as many other lcores, through shared memory\n"
	      "                          (direct)\n"
	      "  -l, --lcores-per-side N lcores for each end; 0: one drives both (0)\n"
	      "      --port-a DEVARGS    instead of the embedded wire: a port for each end, as\n"
	      "      --port-b DEVARGS    EAL device arguments (net_memif0,role=server,...)\n"
	      "      --impair ARGS       put net_impair before both ends (drop=1%,seed=1)\n"
	      "  -D, --seconds N         of each round (2)\n"
	      "  -r, --rounds N          of each size; medians are told (1)\n"
	      "  -L, --latency           one message at a time, and how long it takes\n"
	      "  -C, --ceilings          measure what this machine could do at best, too\n"
	      "  -j, --json FILE         write the results there (-: standard output)\n"
	      "  -y, --yield             let others run when there is nothing to do\n"
	      "  -i, --interactive       a prompt\n"
	      "  -h, --help\n",
		out);
}

const char *
bench_service_name(enum rcd_ctrl_qp_type service)
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
bad(const char *name, const char *val, const char *what)
{
	fprintf(stderr, "rocade-bench: %s %s: %s\n", name, val, what);
	return -EINVAL;
}

static int
parse_number(const char *name, const char *val, uint32_t least, uint32_t most, uint32_t *number)
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
		return bad(name, val, range);
	}
	*number = (uint32_t)parsed;
	return 0;
}

static int
parse_name(const char *name, const char *val, const char *const *names, uint32_t count, int *index)
{
	char text[128] = "known are";

	for (uint32_t i = 0; i < count; i++) {
		if (strcasecmp(names[i], val) == 0) {
			*index = (int)i;
			return 0;
		}
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s", names[i]);
	}
	return bad(name, val, text);
}

static int
parse_sizes(struct bench_opts *opts, const char *name, const char *val)
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
		return bad(name, val, "too long");
	snprintf(text, sizeof(text), "%s", val);
	for (char *word = strtok_r(text, ",", &save); word != NULL;
		word = strtok_r(NULL, ",", &save)) {
		if (count == BENCH_SIZES_MAX)
			return bad(name, val, "too many sizes");
		if (parse_number(name, word, 0, SIZE_MAX_BYTES, &sizes[count++]) != 0)
			return -EINVAL;
	}
	if (count == 0)
		return bad(name, val, "a size is wanted");
	memcpy(opts->sizes, sizes, count * sizeof(sizes[0]));
	opts->size_count = count;
	return 0;
}

static int
parse_seconds(struct bench_opts *opts, const char *name, const char *val)
{
	char *end;
	double parsed = strtod(val, &end);

	if (end == val || *end != '\0' || !(parsed >= 0.01 && parsed <= 86400))
		return bad(name, val, "seconds from 0.01 to 86400 are wanted");
	opts->seconds = parsed;
	return 0;
}

static int
parse_text(const char *name, const char *val, char *text, size_t text_len)
{
	if (strlen(val) >= text_len)
		return bad(name, val, "too long");
	snprintf(text, text_len, "%s", val);
	return 0;
}

/* @param opt a letter of `longs` */
static int
set(struct bench_opts *opts, int opt, const char *name, const char *val)
{
	int index = 0;
	int err;

	switch (opt) {
	case 'o':
		err = parse_name(name, val, bench_op_names, BENCH_OP_COUNT, &index);
		opts->op = err == 0 ? (enum bench_op)index : opts->op;
		return err;
	case 't':
		err = parse_name(name, val, service_names, RTE_DIM(service_names), &index);
		opts->service = err == 0 ? (enum rcd_ctrl_qp_type)index : opts->service;
		return err;
	case 'c':
		err = parse_name(name, val, client_names, RTE_DIM(client_names), &index);
		opts->client = err == 0 ? (enum bench_client)index : opts->client;
		return err;
	case 's':
		return parse_sizes(opts, name, val);
	case 'd':
		return parse_number(name, val, 1, 32768, &opts->depth);
	case 'q':
		return parse_number(name, val, 1, 16384, &opts->qps);
	case 'e':
		return parse_number(name, val, 1, RCD_SGE_MAX, &opts->sges);
	case 'm':
		return parse_number(name, val, 256, 4096, &opts->mtu);
	case 'b':
		return parse_number(name, val, 1, RCD_BURST_MAX, &opts->burst);
	case 'n':
		return parse_number(name, val, 1, 32768, &opts->signal);
	case 'I':
		return parse_number(name, val, 0, RCD_INLINE_MAX, &opts->inline_max);
	case 'l':
		return parse_number(name, val, 0, BENCH_PARTS_MAX / 2, &opts->lcores_per_side);
	case 'r':
		return parse_number(name, val, 1, 1000, &opts->rounds);
	case 'A':
		return parse_text(name, val, opts->ports[0], sizeof(opts->ports[0]));
	case 'B':
		return parse_text(name, val, opts->ports[1], sizeof(opts->ports[1]));
	case 'M':
		return parse_text(name, val, opts->impair, sizeof(opts->impair));
	case 'D':
		return parse_seconds(opts, name, val);
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
	for (const struct option *at = longs; at->name != NULL; at++)
		if (strcmp(at->name, name) == 0 && at->has_arg == required_argument)
			return set(opts, at->val, name, val);
	return bad(name, val, "no such option");
}

int
bench_opts_parse(struct bench_opts *opts, int argc, char **argv)
{
	int opt;

	optind = 1;
	while ((opt = getopt_long(
			argc, argv, "o:t:s:d:q:e:m:b:n:I:c:l:D:r:j:xLCyih", longs, NULL)) != -1) {
		char name[3] = { '-', (char)opt, '\0' };

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
			usage(stdout);
			return 1;
		case '?':
			usage(stderr);
			return -EINVAL;
		default:
			if (set(opts, opt, name, optarg) != 0)
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
wrong(const char *what)
{
	fprintf(stderr, "rocade-bench: %s\n", what);
	return -EINVAL;
}

int
bench_opts_check(const struct bench_opts *opts)
{
	bool atomic = opts->op == BENCH_CAS || opts->op == BENCH_FAA;

	if (opts->service == RCD_CTRL_QP_UD && opts->op != BENCH_SEND)
		return wrong("ud can only send");
	if (opts->service == RCD_CTRL_QP_UC && (atomic || opts->op == BENCH_READ))
		return wrong("uc can only send and write");
	for (uint32_t i = 0; i < opts->size_count; i++) {
		if (atomic && opts->sizes[i] != 8)
			return wrong("cas and faa work on 8 bytes (-s 8)");
		if (opts->latency && opts->op == BENCH_WRITE && opts->sizes[i] == 0)
			return wrong("the receiver looks at the last byte: there must be one (-s)");
	}
	if (atomic && opts->sges != 1)
		return wrong("cas and faa have one element (-e 1)");
	if (opts->mtu != 0 && (opts->mtu & (opts->mtu - 1)) != 0)
		return wrong("the path MTU is 256, 512, 1024, 2048 or 4096");
	if ((opts->ports[0][0] == '\0') != (opts->ports[1][0] == '\0'))
		return wrong("--port-a and --port-b go together");
	if (opts->latency && opts->bidirectional)
		return wrong("latency is measured in both directions anyway");
	return 0;
}

uint32_t
bench_opts_workers(const struct bench_opts *opts)
{
	uint32_t engine = opts->lcores_per_side == 0 ? 1 : 2 * opts->lcores_per_side;

	return opts->client == BENCH_SHM ? 2 * engine : engine;
}
