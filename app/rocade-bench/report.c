/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Results for people, and the same as JSON.
 */
#include <errno.h>
#include <jansson.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

static const char *const stage_names[RCD_STAGE_COUNT] = {
	[RCD_STAGE_RX] = "rx_parse_icrc",
	[RCD_STAGE_TRANSPORT] = "transport",
	[RCD_STAGE_COPY] = "copy",
	[RCD_STAGE_TX] = "tx_build_icrc",
	[RCD_STAGE_DOORBELL] = "doorbell_scan",
	[RCD_STAGE_PUBLISH] = "publish",
	[RCD_STAGE_IDLE] = "idle",
	[RCD_STAGE_HOST] = "client",
};

static const struct {
	const char *name;
	double share;
} quantiles[] = {
	{ "p50", 0.5 },
	{ "p90", 0.9 },
	{ "p99", 0.99 },
	{ "p99.9", 0.999 },
	{ "p99.99", 0.9999 },
};

/* Half of a round trip holds half of what reading the clock costs. */
static double
report_latency_us(const struct bench *bench, uint64_t cycles)
{
	double clock = bench->clock_cycles / (bench->opts.op < BENCH_READ ? 2 : 1);
	double net = (double)cycles - clock;

	return (net > 0 ? net : 0) * 1e6 / (double)rte_get_tsc_hz();
}

static double
report_percent(double val, double ceiling)
{
	return ceiling > 0 ? 100 * val / ceiling : 0;
}

static void
report_headline(const struct bench *bench, const struct bench_result *result)
{
	const struct bench_opts *opts = &bench->opts;

	printf("\n%s %s, %u B, %u QPs, depth %u, path MTU %u, %s on %u lcore%s, %s%s%s%s%s\n",
		bench_service_name(opts->service), bench_op_names[opts->op], result->size,
		opts->latency ? 1 : opts->qps, opts->latency ? 1 : opts->depth, bench->path_mtu,
		opts->client == BENCH_SHM ? "shm" : "direct", rcd_engine_lcore_count(bench->engine),
		rcd_engine_lcore_count(bench->engine) > 1 ? "s" : "",
		opts->ports[0][0] != '\0' ? opts->ports[0] : "embedded wire",
		opts->bidirectional ? ", bidirectional" : "", opts->impair[0] ? ", impaired" : "",
		opts->cc[0] ? ", cc " : "", opts->cc);
}

static void
report_latency(const struct bench *bench, const struct bench_result *result)
{
	const struct hist *hist = &result->hist;

	printf("  %s us: min %.3f", bench->opts.op < BENCH_READ ? "half round trip" : "round trip",
		report_latency_us(bench, hist->min));
	for (size_t i = 0; i < RTE_DIM(quantiles); i++)
		printf("  %s %.3f", quantiles[i].name,
			report_latency_us(bench, hist_quantile(hist, quantiles[i].share)));
	printf("  max %.3f\n", report_latency_us(bench, hist->max));
	printf("  %llu samples; reading the clock costs %.1f cycles (%.1f ns), subtracted\n",
		(unsigned long long)hist->count, bench->clock_cycles,
		bench->clock_cycles * 1e9 / (double)rte_get_tsc_hz());
	if (result->has_ceilings)
		printf("  ceiling: an empty relay through shared memory takes %.3f us; p50 is %.1f "
		       "times that\n",
			result->ceilings.relay_ns / 1e3,
			report_latency_us(bench, hist_quantile(hist, 0.5)) * 1e3 /
				result->ceilings.relay_ns);
}

static void
report_stages(const struct bench_result *result)
{
	printf("  TSC cycles of a message by stage (measured for %.1f s more, the clock's own cost "
	       "subtracted):\n   ",
		BENCH_STAGE_SECONDS);
	for (int i = 0; i < RCD_STAGE_COUNT; i++)
		printf(" %s %.1f", stage_names[i], result->stages[i]);
	printf(" sum %.1f\n", result->stage_sum);
}

static void
report_throughput(const struct bench *bench, const struct bench_result *result)
{
	const struct bench_ceilings *ceilings = &result->ceilings;
	double per_message = result->messages > 0 ? result->packets / result->messages : 0;

	printf("  messages %12.3f M/s", result->messages / 1e6);
	if (result->received > 0)
		printf("   received %.3f M/s", result->received / 1e6);
	printf("\n  bytes    %12.2f MB/s   %.2f Gbit/s", result->bytes / 1e6,
		result->bytes * 8 / 1e9);
	if (result->has_ceilings && ceilings->copy_bps > 0)
		printf("   %.1f %% of copy + CRC on both sides (%.2f MB/s)",
			report_percent(result->bytes, ceilings->copy_bps),
			ceilings->copy_bps / 1e6);
	printf("\n  packets  %12.3f M/s", result->packets / 1e6);
	if (result->has_ceilings)
		printf("   %.1f %% of macswap (%.2f M/s), %.1f %% of io (%.2f M/s)",
			report_percent(result->packets, ceilings->macswap_pps),
			ceilings->macswap_pps / 1e6,
			report_percent(result->packets, ceilings->io_pps), ceilings->io_pps / 1e6);
	printf("\n  TSC cycles: %.1f per message, %.1f per packet (%.2f packets per message)\n",
		result->cycles, per_message > 0 ? result->cycles / per_message : 0, per_message);
	if (bench->opts.turn_ms != 0 && result->turn_rounds == 0)
		printf("  the machine was another in each turn: no share is told\n");
	else if (bench->opts.turn_ms != 0)
		printf("  impaired %.1f %% of the rate in between, %.2f MB/s, and %.1f %% by sums "
		       "over all turns; the others are of both\n",
			100 * result->turns.share, result->turns.rate / 1e6,
			100 * result->turns.whole);
	if (result->sent_again > 0)
		printf("  packets sent again: %llu\n", (unsigned long long)result->sent_again);
	if (result->has_stages)
		report_stages(result);
}

void
bench_report(const struct bench *bench, const struct bench_result *result)
{
	report_headline(bench, result);
	if (bench->opts.rounds > 1)
		printf("  medians of %u rounds\n", bench->opts.rounds);
	if (result->has_latency)
		report_latency(bench, result);
	else
		report_throughput(bench, result);
	fflush(stdout);
}

static json_t *
report_options_json(const struct bench *bench)
{
	const struct bench_opts *opts = &bench->opts;

	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:s, s:i, s:s, "
			 "s:s, s:s, s:f, s:i, s:s, s:i, s:i}",
		"op", bench_op_names[opts->op], "service", bench_service_name(opts->service),
		"depth", (int)opts->depth, "qps", (int)opts->qps, "sges", (int)opts->sges,
		"path_mtu", (int)bench->path_mtu, "burst", (int)opts->burst, "signal",
		(int)opts->signal, "inline", (int)opts->inline_max, "bidirectional",
		(int)opts->bidirectional, "latency", (int)opts->latency, "client",
		opts->client == BENCH_SHM ? "shm" : "direct", "engine_lcores",
		(int)rcd_engine_lcore_count(bench->engine), "port",
		opts->ports[0][0] != '\0' ? opts->ports[0] : "wire", "impair", opts->impair, "cc",
		opts->cc, "seconds", opts->seconds, "rounds", (int)opts->rounds, "sack",
		rcd_sack_use_name((enum rcd_sack_use)opts->sack), "workers",
		(int)bench->worker_count, "turns_ms", (int)opts->turn_ms);
}

static void
report_add_latency(const struct bench *bench, const struct hist *hist, json_t *object)
{
	json_object_set_new(object, "samples", json_integer((json_int_t)hist->count));
	json_object_set_new(object, "min_us", json_real(report_latency_us(bench, hist->min)));
	for (size_t i = 0; i < RTE_DIM(quantiles); i++) {
		char name[16];

		snprintf(name, sizeof(name), "%s_us", quantiles[i].name);
		json_object_set_new(object, name,
			json_real(
				report_latency_us(bench, hist_quantile(hist, quantiles[i].share))));
	}
	json_object_set_new(object, "max_us", json_real(report_latency_us(bench, hist->max)));
}

/* Those that counted something. */
static json_t *
report_counters_json(const struct bench_result *result)
{
	json_t *object = json_object();

	for (int i = 0; i < RCD_COUNTER_COUNT; i++)
		if (result->counters[i] != 0)
			json_object_set_new(object, rcd_counter_name((enum rcd_counter)i),
				json_integer((json_int_t)result->counters[i]));
	return object;
}

static json_t *
report_result_json(const struct bench *bench, const struct bench_result *result)
{
	const struct bench_ceilings *ceilings = &result->ceilings;
	json_t *object = json_pack("{s:i}", "size", (int)result->size);

	if (result->has_latency) {
		report_add_latency(bench, &result->hist, object);
	} else {
		json_object_update_new(object,
			json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "messages_per_s",
				result->messages, "received_per_s", result->received, "bytes_per_s",
				result->bytes, "packets_per_s", result->packets,
				"cycles_per_message", result->cycles, "cores_had", result->cores,
				"packets_sent_again", (json_int_t)result->sent_again));
	}
	json_object_set_new(object, "counters", report_counters_json(result));
	if (result->turn_rounds > 0)
		json_object_set_new(object, "turns",
			json_pack("{s:f, s:f, s:f}", "share", result->turns.share, "whole_share",
				result->turns.whole, "between_bytes_per_s", result->turns.rate));
	if (result->has_stages) {
		json_t *stages = json_object();

		for (int i = 0; i < RCD_STAGE_COUNT; i++)
			json_object_set_new(stages, stage_names[i], json_real(result->stages[i]));
		json_object_set_new(object, "stage_cycles_per_message", stages);
	}
	if (result->has_ceilings)
		json_object_set_new(object, "ceilings",
			json_pack("{s:f, s:f, s:f, s:f}", "io_packets_per_s", ceilings->io_pps,
				"macswap_packets_per_s", ceilings->macswap_pps,
				"copy_crc_bytes_per_s", ceilings->copy_bps, "relay_ns",
				ceilings->relay_ns));
	return object;
}

int
bench_report_json(const struct bench *bench, const struct bench_result *results, uint32_t count)
{
	json_t *list = json_array();
	json_t *root = json_pack("{s:s, s:o, s:f, s:f, s:o}", "program", "rocade-bench", "options",
		report_options_json(bench), "tsc_hz", (double)rte_get_tsc_hz(), "clock_cycles",
		bench->clock_cycles, "results", list);
	const char *path = bench->opts.json;
	int status;

	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(list, report_result_json(bench, &results[i]));
	if (strcmp(path, "-") == 0) {
		status = json_dumpf(root, stdout, JSON_INDENT(2));
		printf("\n");
	} else {
		status = json_dump_file(root, path, JSON_INDENT(2));
	}
	json_decref(root);
	if (status != 0)
		fprintf(stderr, "rocade-bench: can't write %s\n", path);
	return status == 0 ? 0 : -EIO;
}
