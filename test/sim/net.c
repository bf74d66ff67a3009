/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The network: events, frames, ports and switches.
 */
#include "net.h"

#include "chance.h"
#include "rcd_bits.h"

void
net_init(struct net *net, uint64_t seed)
{
	memset(net, 0, sizeof(*net));
	net->rng.state = seed;
	net->now_ns = 1;
	net->late_ns = UINT64_MAX;
}

static void
net_release(struct net *net, struct net_frame *frame)
{
	frame->next = net->free;
	net->free = frame;
}

static void
net_arrived(struct net_event *event)
{
	struct net_frame *frame = RCD_OWNER(event, struct net_frame, event);
	struct net_port *port = frame->port;

	port->on_wire--;
	if (frame->downs != port->downs)
		net_drop(port->net, frame, NET_DOWN);
	else
		port->arrive(port->to, frame);
}

void
net_fini(struct net *net)
{
	struct rcd_heap_entry *entry;

	while ((entry = rcd_heap_first(&net->events)) != NULL) {
		struct net_event *event = RCD_OWNER(entry, struct net_event, entry);

		rcd_heap_del(&net->events, entry);
		if (event->call == net_arrived)
			net_release(net, RCD_OWNER(event, struct net_frame, event));
	}
	rcd_heap_fini(&net->events);
	while (net->free != NULL) {
		struct net_frame *frame = net->free;

		net->free = frame->next;
		free(frame);
	}
}

void
net_at(struct net *net, struct net_event *event, uint64_t at_ns)
{
	struct rcd_heap *heap = &net->events;

	if (heap->count == heap->capacity)
		RCD_CHECK(rcd_heap_reserve(heap, 2 * heap->count + 256) == 0);
	rcd_heap_set(heap, &event->entry, at_ns > net->now_ns ? at_ns : net->now_ns);
}

void
net_cancel(struct net *net, struct net_event *event)
{
	rcd_heap_del(&net->events, &event->entry);
}

bool
net_step(struct net *net, uint64_t until_ns)
{
	struct rcd_heap_entry *entry = rcd_heap_first(&net->events);
	struct net_event *event;

	if (entry == NULL || entry->key > until_ns)
		return false;
	net->now_ns = entry->key;
	event = RCD_OWNER(entry, struct net_event, entry);
	rcd_heap_del(&net->events, entry);
	event->call(event);
	return true;
}

struct net_frame *
net_frame_get(struct net *net)
{
	struct net_frame *frame = net->free;

	if (frame != NULL)
		net->free = frame->next;
	else
		frame = malloc(sizeof(*frame));
	RCD_CHECK(frame != NULL);
	frame->event = (struct net_event){ .call = net_arrived };
	frame->next = NULL;
	net->made++;
	return frame;
}

void
net_deliver(struct net *net, struct net_frame *frame)
{
	struct rcd_sequence mix = { net->digest ^ net->now_ns };

	/* The last bytes are the ICRC, which tells packets apart. */
	mix.state ^= (uint64_t)rcd_get_be32(frame->bytes + frame->len - RCD_ICRC_LEN) << 32;
	net->digest = rcd_sequence_next(&mix);
	net->delivered++;
	net_release(net, frame);
}

void
net_drop(struct net *net, struct net_frame *frame, enum net_cause cause)
{
	net->dropped[cause]++;
	if (cause == NET_FULL && net->now_ns >= net->late_ns)
		net->late++;
	net_release(net, frame);
}

void
net_queue_put(struct net_queue *queue, struct net_frame *frame)
{
	frame->next = NULL;
	if (queue->first == NULL)
		queue->first = frame;
	else
		queue->last->next = frame;
	queue->last = frame;
	queue->frames++;
	queue->bytes += frame->len;
}

struct net_frame *
net_queue_get(struct net_queue *queue)
{
	struct net_frame *frame = queue->first;

	if (frame == NULL)
		return NULL;
	queue->first = frame->next;
	queue->frames--;
	queue->bytes -= frame->len;
	return frame;
}

void
net_queue_clear(struct net *net, struct net_queue *queue)
{
	struct net_frame *frame;

	while ((frame = net_queue_get(queue)) != NULL)
		net_release(net, frame);
}

/* Before the queue's length changes, and after it grew. */
static void
net_port_note(struct net_port *port)
{
	struct net_trace *trace = port->trace;
	uint32_t bytes = port->queue.bytes;
	uint32_t bin = bytes / NET_BIN_BYTES;
	uint64_t *most;

	if (trace == NULL)
		return;
	trace->bins_ns[bin < NET_BINS ? bin : NET_BINS - 1] += port->net->now_ns - trace->since_ns;
	trace->since_ns = port->net->now_ns;
	most = net_series_at(&trace->series, port->net->now_ns);
	if (bytes > *most)
		*most = bytes;
	if (bytes > trace->most_bytes)
		trace->most_bytes = bytes;
}

void
net_port_trace(struct net_port *port, struct net_trace *trace)
{
	trace->since_ns = port->net->now_ns;
	port->trace = trace;
}

uint32_t
net_port_traced(struct net_port *port, double share)
{
	struct net_trace *trace = port->trace;
	uint64_t total_ns = 0, below_ns = 0;
	uint32_t bin = 0;

	net_port_note(port);
	port->trace = NULL;
	for (uint32_t i = 0; i < NET_BINS; i++)
		total_ns += trace->bins_ns[i];
	while (bin < NET_BINS - 1) {
		below_ns += trace->bins_ns[bin];
		if ((double)below_ns >= share * (double)total_ns)
			break;
		bin++;
	}
	return bin * NET_BIN_BYTES;
}

/* The first of the queue begins to leave. */
static void
net_port_begin(struct net_port *port)
{
	double ps = (port->queue.first->len + FRAME_WIRE_BYTES) * 8000.0 / port->link.gbps;
	uint64_t whole_ps = (uint64_t)ps + port->rest_ps;

	port->rest_ps = whole_ps % 1000;
	net_at(port->net, &port->sent, port->net->now_ns + whole_ps / 1000);
}

static void
net_port_sent(struct net_event *event)
{
	struct net_port *port = RCD_OWNER(event, struct net_port, sent);
	struct net *net = port->net;
	struct net_frame *frame;
	uint64_t delay_ns = port->link.delay_ns;

	net_port_note(port);
	frame = net_queue_get(&port->queue);
	if (port->at != NULL)
		port->at->used_bytes -= frame->len;
	if (port->queue.first != NULL)
		net_port_begin(port);
	if (chance_falls(&net->rng, port->link.reorder))
		delay_ns += rcd_sequence_next(&net->rng) % (port->link.reorder_ns + 1);
	if (chance_falls(&net->rng, port->link.loss)) {
		net_drop(net, frame, NET_LOST);
	} else {
		frame->port = port;
		frame->downs = port->downs;
		port->on_wire++;
		net_at(net, &frame->event, net->now_ns + delay_ns);
	}
	if (port->drained != NULL)
		port->drained(port->arg);
}

void
net_port_init(
	struct net_port *port, struct net *net, struct net_switch *at, const struct net_link *link)
{
	memset(port, 0, sizeof(*port));
	port->net = net;
	port->at = at;
	port->link = *link;
	port->sent.call = net_port_sent;
	if (at != NULL) {
		RCD_CHECK(at->port_count < NET_PORTS_MAX);
		at->ports[at->port_count++] = port;
	}
}

static bool
net_port_has_room(const struct net_port *port, uint32_t len)
{
	const struct net_switch *at = port->at;
	uint32_t bytes = port->queue.bytes + len;

	if (at == NULL)
		return true;
	if (at->buffer.shared_bytes == 0)
		return bytes <= at->buffer.port_bytes;
	return at->used_bytes + len <= at->buffer.shared_bytes &&
		bytes <= at->buffer.alpha * (at->buffer.shared_bytes - at->used_bytes);
}

/* As DCQCN has it (Zhu et al., SIGCOMM 2015, figure 5). */
static void
net_port_mark(struct net_port *port, struct net_frame *frame)
{
	const struct net_ecn *ecn = &port->at->ecn;
	uint32_t bytes = port->queue.bytes;
	double probability = 1;

	if (ecn->kmin_bytes == 0 || bytes <= ecn->kmin_bytes || !frame_can_mark(frame->bytes))
		return;
	if (bytes <= ecn->kmax_bytes)
		probability =
			ecn->pmax * (bytes - ecn->kmin_bytes) / (ecn->kmax_bytes - ecn->kmin_bytes);
	if (!chance_falls(&port->net->rng, probability))
		return;
	frame_mark(frame->bytes);
	port->net->marked++;
}

void
net_port_send(struct net_port *port, struct net_frame *frame)
{
	if (port->down || !net_port_has_room(port, frame->len)) {
		net_drop(port->net, frame, port->down ? NET_DOWN : NET_FULL);
		return;
	}
	net_port_note(port);
	if (port->at != NULL) {
		net_port_mark(port, frame);
		port->at->used_bytes += frame->len;
	}
	net_queue_put(&port->queue, frame);
	net_port_note(port);
	if (port->queue.first == frame)
		net_port_begin(port);
}

void
net_port_set_down(struct net_port *port, bool down)
{
	struct net_frame *frame;

	port->down = down;
	if (!down)
		return;
	port->downs++;
	net_cancel(port->net, &port->sent);
	net_port_note(port);
	while ((frame = net_queue_get(&port->queue)) != NULL) {
		if (port->at != NULL)
			port->at->used_bytes -= frame->len;
		net_drop(port->net, frame, NET_DOWN);
	}
	if (port->drained != NULL)
		port->drained(port->arg);
}

void
net_switch_arrive(void *sw, struct net_frame *frame)
{
	struct net_switch *at = sw;
	uint32_t dest = frame_dest(frame->bytes);

	RCD_CHECK(dest < NET_HOSTS_MAX && at->routes[dest] != NULL);
	net_port_send(at->routes[dest], frame);
}
