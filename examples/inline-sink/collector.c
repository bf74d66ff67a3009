/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The far end of inline-sink: a program with verbs whose memory packets are written into. It takes
 * them out of the ring, and counts them or writes a capture file.
 *
 *   collector DEVICE GID_INDEX TCP_PORT RING_MIB [FILE.pcap]
 *
 * Says when it is ready, and ends when the sink does: their TCP connection tells.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring.h"

#define IDLE_LOOKS 4096 /**< at the tail, between two looks at the sink's socket */

struct collector {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *ring;
	uint64_t *words; /**< behind the ring: head and tail */
	uint64_t bytes;
	uint32_t gid_index;
	uint64_t packets;
	FILE *file;
};

static int
say(const char *what)
{
	fprintf(stderr, "collector: %s: %s\n", what, strerror(errno));
	return -1;
}

static struct ibv_context *
open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list != NULL && list[i] != NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	if (list != NULL)
		ibv_free_device_list(list);
	return context;
}

static int
prepare(struct collector *collector, const char *device)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};

	collector->context = open_device(device);
	collector->pd = collector->context != NULL ? ibv_alloc_pd(collector->context) : NULL;
	collector->ring = mmap(NULL, collector->bytes + 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (collector->pd == NULL || collector->ring == MAP_FAILED)
		return say(device);
	collector->words = (uint64_t *)(void *)(collector->ring + collector->bytes);
	collector->mr = ibv_reg_mr(collector->pd, collector->ring, collector->bytes + 4096,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	collector->cq = ibv_create_cq(collector->context, 2, NULL, NULL, 0);
	init.send_cq = init.recv_cq = collector->cq;
	collector->qp = collector->cq != NULL ? ibv_create_qp(collector->pd, &init) : NULL;
	return collector->mr != NULL && collector->qp != NULL ? 0 : say(device);
}

/* Nobody writes into the ring any more. @return status */
static int
finish(struct collector *collector, int status)
{
	ibv_destroy_qp(collector->qp);
	ibv_destroy_cq(collector->cq);
	ibv_dereg_mr(collector->mr);
	ibv_dealloc_pd(collector->pd);
	ibv_close_device(collector->context);
	if (collector->file != NULL && fclose(collector->file) != 0)
		status = say("file");
	return status;
}

/* The sink says who it is, and is told. @return its socket */
static int
meet(struct collector *collector, uint16_t port, struct ring_end *far)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct ring_end mine = { .va = (uintptr_t)collector->ring,
		.head_va = (uintptr_t)&collector->words[0],
		.tail_va = (uintptr_t)&collector->words[1],
		.bytes = collector->bytes,
		.qpn = collector->qp->qp_num,
		.key = collector->mr->rkey };
	int on = 1, listener = socket(AF_INET6, SOCK_STREAM, 0), fd;
	union ibv_gid gid;

	if (ibv_query_gid(collector->context, 1, (int)collector->gid_index, &gid) != 0)
		return say("GID");
	memcpy(mine.gid, &gid, sizeof(mine.gid));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) != 0 || listen(listener, 1) != 0)
		return say("TCP port");
	printf("collector: ready\n");
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	close(listener);
	if (fd < 0 || recv(fd, far, sizeof(*far), MSG_WAITALL) != sizeof(*far))
		return say("sink");
	mine.psn = far->psn ^ 0x5555;
	return send(fd, &mine, sizeof(mine), MSG_NOSIGNAL) == sizeof(mine) ? fd : say("sink");
}

static int
connect_qp(struct collector *collector, const struct ring_end *far)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = far->qpn,
		.rq_psn = far->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			.port_num = 1,
			.grh = { .sgid_index = (uint8_t)collector->gid_index, .hop_limit = 64 } } };

	memcpy(&attr.ah_attr.grh.dgid, far->gid, sizeof(far->gid));
	errno = ibv_modify_qp(collector->qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (errno != 0)
		return say("INIT");
	attr.qp_state = IBV_QPS_RTR;
	/* It only answers: there is no need for RTS. */
	errno = ibv_modify_qp(collector->qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	return errno == 0 ? 0 : say("RTR");
}

/* A packet. @return false: it is not the next one */
static bool
take(struct collector *collector, const struct ring_record *record, const uint8_t *data)
{
	struct {
		uint32_t seconds, microseconds, kept, len;
	} header = { (uint32_t)(record->time_ns / 1000000000u),
		(uint32_t)(record->time_ns / 1000 % 1000000), record->len, record->len };

	if (record->number != (uint32_t)collector->packets)
		return false;
	collector->packets++;
	return collector->file == NULL ||
		(fwrite(&header, sizeof(header), 1, collector->file) == 1 &&
			fwrite(data, record->len, 1, collector->file) == 1);
}

/* What lies between head and tail. The sink writes: nothing that it says leads out of the ring. */
static int
drain(struct collector *collector, uint64_t *head, uint64_t tail)
{
	while (*head < tail) {
		uint64_t at = *head % collector->bytes;
		uint64_t end = tail;

		if (collector->bytes - at < RING_BATCH_MOST) {
			*head += collector->bytes - at;
			at = 0;
		}
		for (bool first = true; *head < end; first = false) {
			struct ring_record record;

			if (collector->bytes - at < sizeof(record))
				return -1;
			memcpy(&record, collector->ring + at, sizeof(record));
			at += sizeof(record);
			if (first)
				end = record.tail;
			if (record.len > collector->bytes - at || end > tail ||
				!take(collector, &record, collector->ring + at))
				return -1;
			at += record.len;
			*head += sizeof(record) + record.len;
		}
		__atomic_store_n(&collector->words[0], *head, __ATOMIC_RELEASE);
	}
	return 0;
}

static int
run(struct collector *collector, int fd)
{
	struct pollfd sink = { .fd = fd, .events = POLLIN };
	uint64_t head = 0;
	int left = IDLE_LOOKS;
	bool gone = false;

	/* What was written before the sink went is looked at once more. */
	while (!gone || head < __atomic_load_n(&collector->words[1], __ATOMIC_ACQUIRE)) {
		uint64_t tail = __atomic_load_n(&collector->words[1], __ATOMIC_ACQUIRE);

		if (drain(collector, &head, tail) != 0) {
			fprintf(stderr, "collector: not the packet %" PRIu64 "\n",
				collector->packets);
			return -1;
		}
		if (head < tail || left-- > 0) {
			sched_yield();
			continue;
		}
		left = IDLE_LOOKS;
		if (collector->file != NULL)
			fflush(collector->file);
		gone = poll(&sink, 1, 0) > 0;
	}
	printf("collector: %" PRIu64 " packets\n", collector->packets);
	return 0;
}

int
main(int argc, char **argv)
{
	static const uint32_t pcap[] = { 0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1 };
	struct collector collector = { .ring = NULL };
	struct ring_end far;
	int fd;

	if (argc < 5 || argc > 6) {
		fprintf(stderr, "collector DEVICE GID_INDEX TCP_PORT RING_MIB [FILE.pcap]\n");
		return 2;
	}
	collector.gid_index = (uint32_t)strtoul(argv[2], NULL, 10);
	collector.bytes = strtoull(argv[4], NULL, 10) << 20;
	if (argc == 6)
		collector.file = fopen(argv[5], "w");
	if (argc == 6 &&
		(collector.file == NULL || fwrite(pcap, sizeof(pcap), 1, collector.file) != 1))
		return say(argv[5]) != 0;
	if (collector.bytes == 0 || prepare(&collector, argv[1]) != 0)
		return 1;
	fd = meet(&collector, (uint16_t)strtoul(argv[3], NULL, 10), &far);
	if (fd < 0 || connect_qp(&collector, &far) != 0)
		return 1;
	/* The sink begins when it hears that we are ready. */
	return finish(&collector, send(fd, "!", 1, MSG_NOSIGNAL) == 1 ? run(&collector, fd) : -1) !=
		0;
}
