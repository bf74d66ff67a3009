/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Plots of simulated networks, by gnuplot.
 */
#include "net_plot.h"

#include <stdio.h>

/* Points of a curve, and flows that are named. */
#define POINTS 200
#define NAMED  8

/* Intervals from one point to the next. */
static uint32_t
net_plot_step(const struct net_run *run)
{
	return 1 + (uint32_t)(run->result.ended_ns / NET_INTERVAL_NS) / POINTS;
}

static uint64_t
net_plot_value(const struct net_series *series, uint32_t number)
{
	return number < series->count ? series->values[number] : 0;
}

static int
net_plot_compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* All together, and of a few flows each; of many the slowest, the median and the fastest. */
static void
net_plot_rates(FILE *out, const struct net_run *run)
{
	uint32_t step = net_plot_step(run);
	uint32_t count = (uint32_t)(run->result.ended_ns / NET_INTERVAL_NS);
	uint32_t flows = run->flow_count;
	double gbps[NET_QPS_MAX];

	fprintf(out, "$rates << EOD\n");
	for (uint32_t at = 0; at < count; at += step) {
		double sum = 0;

		for (uint32_t i = 0; i < flows; i++) {
			uint64_t bytes = 0;

			for (uint32_t k = at; k < at + step; k++)
				bytes += net_plot_value(&run->flows[i].arrived, k);
			gbps[i] = 8.0 * (double)bytes / step / NET_INTERVAL_NS;
			sum += gbps[i];
		}
		fprintf(out, "%.3f %.1f", (at + step / 2.0) * NET_INTERVAL_NS / 1e6, sum);
		if (flows > NAMED) {
			qsort(gbps, flows, sizeof(gbps[0]), net_plot_compare);
			fprintf(out, " %.1f %.1f %.1f", gbps[0], gbps[flows / 2], gbps[flows - 1]);
		}
		for (uint32_t i = 0; i < flows && flows <= NAMED; i++)
			fprintf(out, " %.1f", gbps[i]);
		fprintf(out, "\n");
	}
	fprintf(out, "EOD\n");
}

static void
net_plot_queue(FILE *out, const struct net_run *run)
{
	const struct net_series *series = &run->trace.series;
	uint32_t step = net_plot_step(run);

	fprintf(out, "$queue << EOD\n0 0\n");
	for (uint32_t at = 0; at < series->count; at += step) {
		uint64_t most = 0;

		for (uint32_t k = at; k < at + step; k++) {
			uint64_t bytes = net_plot_value(series, k);

			most = bytes > most ? bytes : most;
		}
		fprintf(out, "%.3f %.1f\n", (at + step / 2.0) * NET_INTERVAL_NS / 1e6,
			(double)most / 1024);
	}
	fprintf(out, "EOD\n");
}

static void
net_plot_commands(FILE *out, const struct net_run *run)
{
	const struct net_options *options = &run->options;
	bool many = run->flow_count > NAMED;

	fprintf(out,
		"set multiplot layout 2,1 title '%s, %u flows, %s'\n"
		"set lmargin 10\nset rmargin 14\nset key outside right\n"
		"set grid\nset xrange [0:%.3f]\nset yrange [0:*]\nset ylabel 'arrives, Gb/s'\n"
		"names = '%s'\n"
		"plot for [i=1:%u] $rates using 1:i+1 with lines title word(names, i)\n",
		options->name, run->flow_count, options->cc->name,
		(double)run->result.ended_ns / 1e6,
		many ? "all slowest median fastest" : "all 1 2 3 4 5 6 7 8",
		many ? 4 : run->flow_count + 1);
	fprintf(out, "set xlabel 'ms'\nset ylabel 'queue, KiB'\nunset key\n");
	if (options->ecn.kmin_bytes > 0)
		fprintf(out,
			"set arrow from graph 0, first %u to graph 1, first %u nohead dashtype 2\n",
			options->ecn.kmin_bytes >> 10, options->ecn.kmin_bytes >> 10);
	fprintf(out, "plot $queue with lines\nunset multiplot\n");
}

bool
net_plot(const struct net_run *run, const char *path)
{
	FILE *out = popen("gnuplot", "w");

	if (out == NULL)
		return false;
	fprintf(out, "set terminal svg size 800,600 background rgb 'white'\nset output '%s'\n",
		path);
	net_plot_rates(out, run);
	net_plot_queue(out, run);
	net_plot_commands(out, run);
	return pclose(out) == 0;
}
