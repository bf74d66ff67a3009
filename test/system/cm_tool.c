/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the tests of connection management need and no program of the distribution does: many
 * connections one after another, and a listener that does not look. Public headers alone.
 *
 *   cm_tool listen ADDRESS BACKLOG   listen until standard input ends, and take no event
 *   cm_tool serve ADDRESS COUNT      accept so many, and see them end
 *   cm_tool cycle ADDRESS COUNT      connect and disconnect so many times; prints the time of the
 *                                    first and of the last tenth, in microseconds each
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PORT       7471
#define TIMEOUT_MS 5000

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s: %s\n", #condition, strerror(errno));                  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void
parse(const char *text, struct sockaddr_storage *addr)
{
	struct sockaddr_in *sin = (void *)addr;
	struct sockaddr_in6 *sin6 = (void *)addr;

	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, text, &sin->sin_addr) == 1) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(PORT);
	} else {
		MUST(inet_pton(AF_INET6, text, &sin6->sin6_addr) == 1);
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(PORT);
	}
}

static struct rdma_cm_id *
listener(struct rdma_event_channel *channel, const char *address, int backlog)
{
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;

	parse(address, &addr);
	MUST(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	MUST(rdma_bind_addr(id, (struct sockaddr *)&addr) == 0);
	MUST(rdma_listen(id, backlog) == 0);
	return id;
}

static void
make_qp(struct rdma_cm_id *id, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	MUST(rdma_create_qp(id, NULL, &attr) == 0);
}

static struct rdma_conn_param
param(void)
{
	return (struct rdma_conn_param){ .responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7 };
}

static void
be_listener(struct rdma_event_channel *channel, const char *address, int backlog)
{
	struct rdma_cm_id *id = listener(channel, address, backlog);
	char byte;

	while (read(0, &byte, 1) > 0)
		;
	rdma_destroy_id(id);
}

static void
be_server(struct rdma_event_channel *channel, const char *address, int count)
{
	struct rdma_cm_id *id = listener(channel, address, 0);
	struct rdma_conn_param conn = param();
	struct ibv_cq *cq = NULL;

	while (count > 0) {
		struct rdma_cm_event *event;
		struct rdma_cm_id *about;
		enum rdma_cm_event_type type;

		MUST(rdma_get_cm_event(channel, &event) == 0);
		about = event->id;
		type = event->event;
		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			if (cq == NULL)
				cq = ibv_create_cq(about->verbs, 16, NULL, NULL, 0);
			MUST(cq != NULL);
			make_qp(about, cq);
			MUST(rdma_accept(about, &conn) == 0);
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			rdma_disconnect(about);
			rdma_destroy_qp(about);
			rdma_destroy_id(about);
			count--;
		} else if (type != RDMA_CM_EVENT_ESTABLISHED) {
			fprintf(stderr, "%s\n", rdma_event_str(type));
			exit(1);
		}
	}
	rdma_destroy_id(id);
	ibv_destroy_cq(cq);
}

static void
expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	MUST(rdma_get_cm_event(channel, &event) == 0);
	if (event->event != type) {
		fprintf(stderr, "%s, status %d, instead of %s\n", rdma_event_str(event->event),
			event->status, rdma_event_str(type));
		exit(1);
	}
	rdma_ack_cm_event(event);
}

static void
cycle(struct rdma_event_channel *channel, const struct sockaddr_storage *to, struct ibv_cq **cq)
{
	struct rdma_conn_param conn = param();
	struct sockaddr_storage addr = *to;
	struct rdma_cm_id *id;

	MUST(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	MUST(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, TIMEOUT_MS) == 0);
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST(rdma_resolve_route(id, TIMEOUT_MS) == 0);
	expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (*cq == NULL)
		*cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	MUST(*cq != NULL);
	make_qp(id, *cq);
	MUST(rdma_connect(id, &conn) == 0);
	expect(channel, RDMA_CM_EVENT_ESTABLISHED);
	MUST(rdma_disconnect(id) == 0);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

static double
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void
be_client(struct rdma_event_channel *channel, const char *address, int count)
{
	struct sockaddr_storage addr;
	struct ibv_cq *cq = NULL;
	int tenth = count / 10 > 0 ? count / 10 : 1;
	double start = now_us();
	double first = 0, last = start;

	parse(address, &addr);
	for (int i = 1; i <= count; i++) {
		cycle(channel, &addr, &cq);
		if (i == tenth)
			first = now_us() - start;
		if (i == count - tenth)
			last = now_us();
	}
	last = now_us() - last;
	ibv_destroy_cq(cq);
	printf("%.0f %.0f\n", first / tenth, last / tenth);
}

int
main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int count = argc == 4 ? (int)strtol(argv[3], NULL, 10) : 0;

	MUST(channel != NULL);
	if (argc == 4 && strcmp(argv[1], "listen") == 0)
		be_listener(channel, argv[2], count);
	else if (argc == 4 && strcmp(argv[1], "serve") == 0)
		be_server(channel, argv[2], count);
	else if (argc == 4 && strcmp(argv[1], "cycle") == 0)
		be_client(channel, argv[2], count);
	else
		return 2;
	rdma_destroy_event_channel(channel);
	return 0;
}
