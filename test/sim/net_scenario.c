/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Scenarios: the list of them, the network of each, and its measures.
 */
#include "net_scenario.h"

#include "rcd_bits.h"

enum {
	LIMIT_NS = 2000000000, /* of virtual time: what takes longer does not end */
	COUNT_EVERY = 997,     /* events between two counts of all frames */
	SPREAD_NS = 2000,      /* within which flows begin */
};

#define MESSAGES(bytes, count, how_many)                                                           \
	.flow = { .size = (bytes), .outstanding = (count), .messages = (how_many) }

/* What differs from net_scenario_get()'s. */
static const struct net_options scenarios[] = {
	{ .name = "incast",
		.text = "many send to one, 1 MiB at a time",
		.senders = 32,
		MESSAGES(1 << 20, 2, 8) },
	{ .name = "reads",
		.text = "one asks many for 1 MiB at a time",
		.senders = 16,
		MESSAGES(1 << 20, 2, 8),
		.flow.read = true },
	{ .name = "alone",
		.text = "2 KiB at a time, and nobody beside",
		.senders = 1,
		MESSAGES(2048, 1, 500),
		.flow.pause_ns = 20000 },
	{ .name = "beside",
		.text = "the same, beside 31 long flows to the same host",
		.senders = 1,
		MESSAGES(2048, 1, 500),
		.flow.pause_ns = 20000,
		.beside = 31 },
	{ .name = "trunk",
		.text = "pairs of hosts that share a link of two switches",
		.shape = NET_RACKS,
		.senders = 8,
		MESSAGES(1 << 20, 2, 16) },
	{ .name = "lossy",
		.text = "one pair, and a link that loses 0.1 % each way",
		.shape = NET_RACKS,
		.senders = 1,
		MESSAGES(64 << 10, 16, 4000),
		.middle.loss = 1e-3 },
	{ .name = "reorder",
		.text = "one pair, and 1 % of the packets late by up to 10 us",
		.shape = NET_RACKS,
		.senders = 1,
		MESSAGES(64 << 10, 16, 4000),
		.middle.reorder = 1e-2,
		.middle.reorder_ns = 10000 },
	{ .name = "flap",
		.text = "pairs whose shared link is down from 2 to 4 ms",
		.shape = NET_RACKS,
		.senders = 4,
		MESSAGES(1 << 20, 2, 30),
		.down_ns = 2000000,
		.up_ns = 4000000 },
	{ .name = "acks",
		.text = "one flow whose acknowledges meet an incast of 16",
		.senders = 1,
		MESSAGES(64 << 10, 16, 2000),
		.beside = 16,
		.beside_acks = true },
	{ .name = "dropping",
		.text = "trunk where half of the receivers go back N",
		.shape = NET_RACKS,
		.senders = 8,
		.dropping = 4,
		MESSAGES(1 << 20, 2, 16) },
	{ .name = "plain",
		.text = "trunk where two of the senders have no congestion control",
		.shape = NET_RACKS,
		.senders = 8,
		.plain = 2,
		MESSAGES(1 << 20, 2, 16) },
	{ .name = "away",
		.text = "pairs whose receivers have their core 2 ms of 4",
		.shape = NET_RACKS,
		.senders = 4,
		MESSAGES(1 << 20, 2, 30),
		.receiver.run_ns = 2000000,
		.receiver.away_ns = 2000000 },
	{ .name = "pairs",
		.text = "32 pairs of hosts, each with a link's worth for itself",
		.shape = NET_RACKS,
		.senders = 32,
		MESSAGES(1 << 20, 2, 24),
		.middle.gbps = 3200 },
};

bool
net_scenario_get(uint32_t number, struct net_options *options)
{
	if (number >= RCD_ARRAY_COUNT(scenarios))
		return false;
	*options = scenarios[number];
	options->cc = &rcd_cc_none;
	rcd_cc_params_init(&options->cc_params);
	options->seed = 1;
	options->flow.mtu = 4096;
	options->link = (struct net_link){ .gbps = 100, .delay_ns = 5000 };
	options->middle.delay_ns = 1000;
	if (options->middle.gbps == 0)
		options->middle.gbps = options->link.gbps;
	options->host.kept = options->receiver.kept = 1024;
	options->buffer.port_bytes = 1 << 20;
	options->buffer.alpha = 1;
	options->ecn = (struct net_ecn){ 100 << 10, 400 << 10, 0.2 };
	return true;
}

bool
net_scenario_find(const char *name, struct net_options *options)
{
	for (uint32_t i = 0; net_scenario_get(i, options); i++) {
		if (strcmp(options->name, name) == 0)
			return true;
	}
	return false;
}

bool
net_options_valid(const struct net_options *options)
{
	const struct net_flow_init *flow = &options->flow;
	const struct rcd_cc_params *params = &options->cc_params;
	uint32_t flows = options->senders + options->beside;

#define RCD_CC_PARAM(algorithm, name, field, least, most, start, what)                             \
	if ((int64_t)params->field < (least) || params->field > (most))                            \
		return false;
#include "rcd_cc_param.def"
	return options->senders > 0 && options->plain <= options->senders &&
		options->dropping <= options->senders && flows >= options->beside &&
		flows < NET_QPS_MAX &&
		(options->shape == NET_STAR ? flows + 1 : 2 * flows) <= NET_HOSTS_MAX &&
		flow->size > 0 && flow->size <= NET_SIZE_MAX && flow->outstanding > 0 &&
		flow->outstanding <= NET_OUTSTANDING_MAX && flow->messages > 0 &&
		flow->messages < NET_ENDLESS && options->link.gbps > 0 &&
		options->middle.gbps > 0 && rcd_mtu_bytes(rcd_mtu_code(flow->mtu)) == flow->mtu &&
		options->ecn.kmax_bytes >= options->ecn.kmin_bytes;
}

/* Of NET_RACKS the first half of the hosts sends, at switch 0; the other one is at switch 1. */
static struct net_switch *
net_scenario_switch(struct net_run *run, uint32_t host)
{
	bool right = run->options.shape == NET_RACKS && host >= run->host_count / 2;

	return &run->switches[right];
}

static bool
net_scenario_receives(const struct net_run *run, uint32_t host)
{
	return run->options.shape == NET_STAR ? host == 0 : host >= run->host_count / 2;
}

static void
net_scenario_make_host(struct net_run *run, uint32_t number)
{
	const struct net_options *options = &run->options;
	struct net_host *host = &run->hosts[number];
	struct net_switch *sw = net_scenario_switch(run, number);
	struct net_host_init init = options->host;

	if (net_scenario_receives(run, number))
		init = options->receiver;
	if (options->shape == NET_RACKS && number >= run->host_count - options->dropping)
		init.kept = 0;
	net_host_init(host, &run->net, number, &init, &options->link);
	host->nic.arrive = net_switch_arrive;
	host->nic.to = sw;
	net_port_init(&run->ports[number], &run->net, sw, &options->link);
	run->ports[number].arrive = net_host_arrive;
	run->ports[number].to = host;
	for (uint32_t i = 0; i < 2; i++) {
		struct net_port *middle = &run->ports[run->host_count + i];

		run->switches[i].routes[number] =
			&run->switches[i] == sw ? &run->ports[number] : middle;
	}
}

static void
net_scenario_make_switches(struct net_run *run)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct net_switch *sw = &run->switches[i];
		struct net_port *middle = &run->ports[run->host_count + i];

		sw->net = &run->net;
		sw->buffer = run->options.buffer;
		sw->ecn = run->options.ecn;
		net_port_init(middle, &run->net, sw, &run->options.middle);
		middle->arrive = net_switch_arrive;
		middle->to = &run->switches[1 - i];
	}
}

static void
net_scenario_make_flow(struct net_run *run, uint32_t number)
{
	const struct net_options *options = &run->options;
	struct net_flow_init init = options->flow;
	uint32_t from, to;

	if (options->shape == NET_RACKS) {
		from = number;
		to = number + run->host_count / 2;
	} else {
		from = number + 1;
		to = number >= options->senders && options->beside_acks;
	}
	if (number >= options->senders) {
		init = (struct net_flow_init){ .size = NET_SIZE_MAX,
			.outstanding = 2,
			.mtu = init.mtu,
			.messages = NET_ENDLESS,
			.read = init.read };
	}
	init.plain = number < options->senders && number >= options->senders - options->plain;
	init.start_ns += rcd_sequence_next(&run->net.rng) % SPREAD_NS;
	net_flow_init(&run->flows[number], &run->load, &run->hosts[from], &run->hosts[to], &init);
}

static void
net_scenario_set_down(struct net_run *run, bool down)
{
	if (run->options.shape == NET_RACKS) {
		net_port_set_down(&run->ports[run->host_count], down);
		net_port_set_down(&run->ports[run->host_count + 1], down);
	} else {
		net_port_set_down(&run->ports[0], down);
		net_port_set_down(&run->hosts[0].nic, down);
	}
}

static void
net_scenario_down(struct net_event *event)
{
	net_scenario_set_down(RCD_OWNER(event, struct net_run, down), true);
}

static void
net_scenario_up(struct net_event *event)
{
	net_scenario_set_down(RCD_OWNER(event, struct net_run, up), false);
}

/* After two round trips through a full buffer everybody has heard of it. */
static uint64_t
net_scenario_late_ns(const struct net_options *options)
{
	uint32_t buffer_bytes = options->buffer.port_bytes;
	uint64_t way_ns = 2 * options->link.delay_ns;
	double gbps = options->link.gbps;

	if (options->buffer.shared_bytes > 0)
		buffer_bytes = options->buffer.shared_bytes;
	if (options->shape == NET_RACKS) {
		way_ns += options->middle.delay_ns;
		gbps = options->middle.gbps;
	}
	return options->flow.start_ns + SPREAD_NS +
		2 * (2 * way_ns + (uint64_t)(8 * buffer_bytes / gbps));
}

static void
net_scenario_make(struct net_run *run, const struct net_options *options)
{
	memset(run, 0, sizeof(*run));
	run->options = *options;
	run->flow_count = options->senders + options->beside;
	run->host_count = options->shape == NET_RACKS ? 2 * run->flow_count : run->flow_count + 1;
	RCD_CHECK(net_options_valid(options));
	run->hosts = calloc(run->host_count, sizeof(run->hosts[0]));
	run->ports = calloc(run->host_count + 2, sizeof(run->ports[0]));
	run->flows = calloc(run->flow_count, sizeof(run->flows[0]));
	RCD_CHECK(run->hosts != NULL && run->ports != NULL && run->flows != NULL);
	net_init(&run->net, options->seed);
	run->net.late_ns = net_scenario_late_ns(options);
	net_load_init(&run->load, &run->net, options->cc, &options->cc_params);
	net_scenario_make_switches(run);
	for (uint32_t i = 0; i < run->host_count; i++)
		net_scenario_make_host(run, i);
	for (uint32_t i = 0; i < run->flow_count; i++)
		net_scenario_make_flow(run, i);
	run->watched = &run->ports[options->shape == NET_RACKS ? run->host_count
			: options->beside_acks                 ? 1
							       : 0];
	net_port_trace(run->watched, &run->trace);
	run->down.call = net_scenario_down;
	run->up.call = net_scenario_up;
	if (options->down_ns > 0) {
		net_at(&run->net, &run->down, options->down_ns);
		net_at(&run->net, &run->up, options->up_ns);
	}
}

static uint64_t
net_scenario_in_flight(const struct net_run *run)
{
	uint64_t frames = 0;

	for (uint32_t i = 0; i < run->host_count; i++) {
		const struct net_host *host = &run->hosts[i];

		frames += host->ring.frames + host->nic.queue.frames + host->nic.on_wire;
	}
	for (uint32_t i = 0; i < run->host_count + 2; i++)
		frames += run->ports[i].queue.frames + run->ports[i].on_wire;
	return frames;
}

/* Whether every frame is somewhere, and every byte of a buffer is of one that waits. */
static bool
net_scenario_is_counted(const struct net_run *run)
{
	uint64_t frames = net_scenario_in_flight(run) + run->net.delivered;

	for (uint32_t i = 0; i < NET_CAUSES; i++)
		frames += run->net.dropped[i];
	for (uint32_t i = 0; i < 2; i++) {
		const struct net_switch *sw = &run->switches[i];
		uint64_t bytes = 0;

		for (uint32_t k = 0; k < sw->port_count; k++)
			bytes += sw->ports[k]->queue.bytes;
		if (bytes != sw->used_bytes)
			return false;
	}
	return frames == run->net.made;
}

static int
net_scenario_compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static double
net_scenario_gbps(const struct net_flow *flow, uint64_t ns)
{
	return ns == 0 ? 0 : (double)flow->done * flow->init.size * 8 / (double)ns;
}

/* When the last flow with an end has come to it. */
static void
net_scenario_measure(struct net_run *run)
{
	struct net_result *result = &run->result;
	struct net_load *load = &run->load;
	uint32_t senders = run->options.senders;
	uint32_t rxe = 0;
	double sum = 0, squares = 0;

	result->ended_ns = run->net.now_ns;
	for (uint32_t i = 0; i < run->flow_count; i++) {
		const struct net_flow *flow = &run->flows[i];
		double gbps = net_scenario_gbps(flow, result->ended_ns);
		double own = net_scenario_gbps(flow, flow->done_ns);

		result->failed += flow->failed;
		if (i >= senders) {
			result->beside_gbps += gbps;
			continue;
		}
		result->gbps += gbps;
		if (flow->init.plain || flow->asks->host->reorder == NULL ||
			flow->answers->host->reorder == NULL) {
			result->rxe_gbps += own;
			rxe++;
		}
		sum += own;
		squares += own * own;
	}
	result->own_gbps = rxe < senders ? (sum - result->rxe_gbps) / (senders - rxe) : 0;
	result->rxe_gbps /= rxe > 0 ? rxe : 1;
	result->jain = squares > 0 ? sum * sum / (senders * squares) : 0;
	result->queue_p99_bytes = net_port_traced(run->watched, 0.99);
	result->queue_most_bytes = run->trace.most_bytes;
	qsort(load->took_ns, load->took_count, sizeof(load->took_ns[0]), net_scenario_compare);
	if (load->took_count > 0) {
		result->p50_ns = load->took_ns[(load->took_count - 1) / 2];
		result->p99_ns = load->took_ns[(size_t)((load->took_count - 1) * 0.99)];
	}
}

static void
net_scenario_sum(struct net_run *run)
{
	struct net_result *result = &run->result;
	const struct net *net = &run->net;

	for (uint32_t i = 0; i < run->host_count; i++) {
		const struct rcd_counters *counters = &run->hosts[i].counters;

		result->sent += rcd_counter_get(counters, RCD_COUNTER_SENT_PKTS);
		result->again += rcd_counter_get(counters, RCD_COUNTER_RETRANSMITTED_PKTS);
		result->wrong += run->hosts[i].wrong;
	}
	result->wrong += run->load.wrong;
	result->made = net->made;
	result->delivered = net->delivered;
	result->marked = net->marked;
	result->late = net->late;
	result->digest = net->digest;
	memcpy(result->dropped, net->dropped, sizeof(result->dropped));
}

void
net_scenario_run(struct net_run *run, const struct net_options *options)
{
	struct net_result *result = &run->result;
	uint32_t events = 0;

	net_scenario_make(run, options);
	result->counted = true;
	while (run->load.running > 0 && net_step(&run->net, LIMIT_NS)) {
		if (++events % COUNT_EVERY == 0)
			result->counted &= net_scenario_is_counted(run);
	}
	result->ended = run->load.running == 0;
	net_scenario_measure(run);
	/* Those without an end come to it now. */
	while (net_step(&run->net, LIMIT_NS))
		;
	result->counted &= net_scenario_is_counted(run);
	result->ended &= net_scenario_in_flight(run) == 0;
	for (uint32_t i = 0; i < run->flow_count; i++)
		result->ended &= run->flows[i].failed || run->flows[i].done == run->flows[i].posted;
	net_scenario_sum(run);
}

void
net_scenario_fini(struct net_run *run)
{
	for (uint32_t i = 0; i < run->host_count + 2; i++)
		net_queue_clear(&run->net, &run->ports[i].queue);
	for (uint32_t i = 0; i < run->host_count; i++)
		net_host_clear(&run->hosts[i]);
	/* What is in the heap is of the others, which go after it. */
	net_fini(&run->net);
	for (uint32_t i = 0; i < run->host_count; i++)
		net_host_fini(&run->hosts[i]);
	for (uint32_t i = 0; i < run->flow_count; i++)
		net_flow_fini(&run->flows[i]);
	net_load_fini(&run->load);
	free(run->trace.series.values);
	free(run->hosts);
	free(run->ports);
	free(run->flows);
}
