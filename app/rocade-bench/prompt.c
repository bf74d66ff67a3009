/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The interactive prompt, in the manner of testpmd. What is set takes effect at the next start.
 */
#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_parse_num.h>
#include <cmdline_parse_string.h>
#include <cmdline_socket.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

static struct bench *bench; /**< there is one prompt */
static bool running;
static bool stale; /**< queue pairs are not as the options say */
static struct bench_mark cleared;
static struct bench_mark last;

struct words {
	cmdline_fixed_string_t verb;
	cmdline_fixed_string_t object;
	cmdline_fixed_string_t val;
	uint32_t number;
};

static void
prompt_show_rates(struct cmdline *cl)
{
	struct bench_mark now;
	struct bench_rates recent, whole;

	bench_mark(bench, &now);
	bench_rates(bench, &last, &now, &recent);
	bench_rates(bench, &cleared, &now, &whole);
	last = now;
	cmdline_printf(cl, "%-24s %14s %14s\n", "", "since shown", "since cleared");
	cmdline_printf(cl, "%-24s %14.1f %14.1f\n", "seconds", recent.seconds, whole.seconds);
	cmdline_printf(cl, "%-24s %14.3f %14.3f\n", "M messages/s", recent.messages / 1e6,
		whole.messages / 1e6);
	cmdline_printf(cl, "%-24s %14.3f %14.3f\n", "M messages received/s", recent.received / 1e6,
		whole.received / 1e6);
	cmdline_printf(cl, "%-24s %14.2f %14.2f\n", "MB/s", recent.bytes / 1e6, whole.bytes / 1e6);
	cmdline_printf(cl, "%-24s %14.3f %14.3f\n", "M packets/s", recent.packets / 1e6,
		whole.packets / 1e6);
	cmdline_printf(cl, "%-24s %14llu %14llu\n", "messages",
		(unsigned long long)(now.completed - cleared.completed),
		(unsigned long long)now.completed);
	cmdline_printf(cl, "%-24s %14llu\n", "packets sent again",
		(unsigned long long)(now.again - cleared.again));
}

static void
prompt_clear_stats(void)
{
	bench_mark(bench, &cleared);
	last = cleared;
}

static void
prompt_do_start(struct cmdline *cl)
{
	if (running) {
		cmdline_printf(cl, "It is running.\n");
		return;
	}
	if (stale && bench_rig_connect(bench) != 0)
		return;
	stale = false;
	bench->size = bench->opts.sizes[0];
	bench->failed = false;
	if (bench_start(bench) != 0)
		return;
	running = true;
	prompt_clear_stats();
}

static void
prompt_do_stop(struct cmdline *cl)
{
	if (!running) {
		cmdline_printf(cl, "It is not running.\n");
		return;
	}
	prompt_show_rates(cl);
	running = false;
	/* Failed queue pairs have to be made anew. */
	if (bench_check_failed(bench) || bench_drain(bench) != 0)
		stale = true;
	if (bench->opts.latency) {
		static struct bench_result result;

		memset(&result, 0, sizeof(result));
		result.size = bench->size;
		result.has_latency = true;
		hist_merge(&result.hist, &bench->parts[0][0].hist);
		bench_report(bench, &result);
	}
}

static void
prompt_verb_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *words = parsed;

	(void)data;
	if (strcmp(words->verb, "start") == 0)
		prompt_do_start(cl);
	else if (strcmp(words->verb, "stop") == 0)
		prompt_do_stop(cl);
	else if (strcmp(words->verb, "quit") == 0)
		cmdline_quit(cl);
	else
		cmdline_printf(cl,
			"start, stop\n"
			"show stats, show qp NUMBER, clear stats\n"
			"set op|service|size|depth|qps|sges|mtu|burst|signal|inline|impair VALUE\n"
			"quit\n");
}

static void
prompt_stats_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *words = parsed;

	(void)data;
	if (strcmp(words->verb, "clear") == 0)
		prompt_clear_stats();
	else
		prompt_show_rates(cl);
}

static void
prompt_qp_parsed(void *parsed, struct cmdline *cl, void *data)
{
	static const char *const states[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	uint32_t number = ((const struct words *)parsed)->number;
	uint32_t per_part = bench->parts[0][0].qp_count;

	(void)data;
	if (per_part == 0 || number >= per_part * bench->part_count) {
		cmdline_printf(cl, "There are %u queue pairs.\n", per_part * bench->part_count);
		return;
	}
	for (uint32_t side = 0; side < 2; side++) {
		struct bench_part *part = &bench->parts[side][number / per_part];
		const struct bench_qp *qp = &part->qps[number % per_part];
		struct rcd_ctrl_handle req = { .handle = qp->cl.handle };
		struct rcd_ctrl_qp_attr attr;
		int err =
			rcd_client_call(&part->client, RCD_CTRL_QP_QUERY, &req, &attr, NULL, NULL);

		if (err != 0) {
			cmdline_printf(cl, "side %c: %s\n", 'a' + side, strerror(-err));
			continue;
		}
		cmdline_printf(cl,
			"side %c: QPN %u to %u, %s, path MTU %u, posted %u, done %u, SQ PSN %u, "
			"RQ PSN %u\n",
			'a' + side, qp->cl.qpn, attr.dest_qpn,
			attr.state < RTE_DIM(states) ? states[attr.state] : "?",
			attr.path_mtu_bytes, qp->cl.sq.producer,
			rcd_shm_load(&qp->cl.sq.shm->consumer), attr.sq_psn, attr.rq_psn);
	}
}

static void
prompt_set_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *words = parsed;
	struct bench_opts opts = bench->opts;

	(void)data;
	if (strcmp(words->object, "impair") == 0) {
		/* net_impair sits before the ports or it does not: that can't change any more. */
		if (bench->opts.impair[0] == '\0')
			cmdline_printf(cl, "Start with --impair to have something to set.\n");
		else
			bench_rig_impair(
				bench, strcmp(words->val, "none") == 0 ? "seed=1" : words->val);
		return;
	}
	if (running) {
		cmdline_printf(cl, "Stop first.\n");
		return;
	}
	if (bench_opts_set(&opts, words->object, words->val) != 0 || bench_opts_check(&opts) != 0)
		return;
	bench->opts = opts;
	stale = true;
}

/* A token that is one of some words, and one that is any. */
#define TOKEN(member, choices) TOKEN_STRING_INITIALIZER(struct words, member, choices)

static cmdline_parse_token_string_t token_verb = TOKEN(verb, "start#stop#quit#help");
static cmdline_parse_token_string_t token_show = TOKEN(verb, "show");
static cmdline_parse_token_string_t token_stats_verb = TOKEN(verb, "show#clear");
static cmdline_parse_token_string_t token_stats = TOKEN(object, "stats");
static cmdline_parse_token_string_t token_qp = TOKEN(object, "qp");
static cmdline_parse_token_string_t token_set = TOKEN(verb, "set");
static cmdline_parse_token_string_t token_name =
	TOKEN(object, "op#service#size#depth#qps#sges#mtu#burst#signal#inline#impair");
static cmdline_parse_token_string_t token_val = TOKEN(val, NULL);
static cmdline_parse_token_num_t token_number =
	TOKEN_NUM_INITIALIZER(struct words, number, RTE_UINT32);

static cmdline_parse_inst_t verb_inst = {
	.f = prompt_verb_parsed,
	.help_str = "start, stop, quit, help",
	.tokens = { (void *)&token_verb, NULL },
};
static cmdline_parse_inst_t stats_inst = {
	.f = prompt_stats_parsed,
	.help_str = "show stats, clear stats",
	.tokens = { (void *)&token_stats_verb, (void *)&token_stats, NULL },
};
static cmdline_parse_inst_t qp_inst = {
	.f = prompt_qp_parsed,
	.help_str = "show qp NUMBER",
	.tokens = { (void *)&token_show, (void *)&token_qp, (void *)&token_number, NULL },
};
static cmdline_parse_inst_t set_inst = {
	.f = prompt_set_parsed,
	.help_str = "set NAME VALUE",
	.tokens = { (void *)&token_set, (void *)&token_name, (void *)&token_val, NULL },
};

static cmdline_parse_ctx_t context[] = { &verb_inst, &stats_inst, &qp_inst, &set_inst, NULL };

void
bench_prompt(struct bench *of)
{
	struct cmdline *cl;

	bench = of;
	prompt_clear_stats();
	cl = cmdline_stdin_new(context, "rocade-bench> ");
	if (cl == NULL) {
		fprintf(stderr, "rocade-bench: no prompt\n");
		return;
	}
	cmdline_interact(cl);
	if (running)
		prompt_do_stop(cl);
	cmdline_stdin_exit(cl);
}
