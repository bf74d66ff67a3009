/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sessions: connecting, opening a device and mapping its segment, and their end.
 */
#include "rcd_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_cl_copy.h"
#include "rcd_cl_mem.h"
#include "rcd_cl_place.h"

#define HUGE_PAGE (UINT64_C(2) << 20)

static int
client_hello(struct rcd_client *client)
{
	struct rcd_ctrl_hello_req req = {
		.magic = RCD_CTRL_MAGIC, .version = RCD_CTRL_VERSION, .abi = RCD_SHM_ABI
	};

	return rcd_client_call(client, RCD_CTRL_HELLO, &req, &client->engine, NULL, NULL);
}

int
rcd_client_connect(struct rcd_client *client, const char *path)
{
	int err;

	memset(client, 0, sizeof(*client));
	client->sock = client->seg_fd = client->wake_fd = client->events_fd = -1;
	client->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (client->sock < 0)
		return -errno;
	pthread_mutex_init(&client->lock, NULL);
	err = rcd_cl_place_connect(client->sock, path);
	if (err == 0)
		err = client_hello(client);
	if (err != 0)
		rcd_client_close(client);
	return err;
}

void
rcd_client_close(struct rcd_client *client)
{
	if (client->sock < 0)
		return;
	rcd_cl_mem_client_gone(client);
	/* Who copies still looks at the segment, if a page keeps it from ending. A forked child has
	 * something else there, if anything. */
	if (rcd_cl_copy_stop(client) && client->shm != NULL && !rcd_client_forked(client))
		munmap(client->shm, client->shm_bytes + client->huge_bytes);
	close(client->sock);
	if (client->seg_fd >= 0)
		close(client->seg_fd);
	if (client->wake_fd >= 0)
		close(client->wake_fd);
	if (client->events_fd >= 0)
		close(client->events_fd);
	client->sock = client->seg_fd = client->wake_fd = client->events_fd = -1;
	client->shm = NULL;
	/* Who still asks for something hears that there is nobody. */
	rcd_client_lost(client);
	pthread_mutex_destroy(&client->lock);
}

/* Map small pages, and hugepages behind them. The mapping keeps these; their file is closed. */
static int
client_map_segment(struct rcd_client *client, const struct rcd_ctrl_open_rep *rep, int huge_fd)
{
	const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
	uint64_t bytes = rep->segment_bytes + rep->huge_bytes;
	int err = 0;
	uint8_t *shm;

	/* Room to begin at a hugepage. */
	shm = mmap(NULL, bytes + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (shm == MAP_FAILED) {
		err = -errno;
	} else {
		uint64_t slack = (HUGE_PAGE - (uintptr_t)shm % HUGE_PAGE) % HUGE_PAGE;

		if (slack > 0)
			munmap(shm, slack);
		if (slack < HUGE_PAGE)
			munmap(shm + slack + bytes, HUGE_PAGE - slack);
		shm += slack;
		if (mmap(shm, rep->segment_bytes, PROT_READ | PROT_WRITE, flags, client->seg_fd,
			    0) == MAP_FAILED ||
			(rep->huge_bytes > 0 &&
				mmap(shm + rep->segment_bytes, rep->huge_bytes,
					PROT_READ | PROT_WRITE, flags, huge_fd, 0) == MAP_FAILED)) {
			err = -errno;
			munmap(shm, bytes);
		}
	}
	if (huge_fd >= 0)
		close(huge_fd);
	if (err != 0)
		return err;
	client->shm = (struct rcd_shm_hdr *)(void *)shm;
	client->huge_bytes = rep->huge_bytes;
	client->pid = getpid();
	/* A child has no use for it, and must not write into its parent's queues. */
	madvise(shm, bytes, MADV_DONTFORK);
	madvise(shm, rep->segment_bytes, MADV_HUGEPAGE);
	return 0;
}

/* Map the segment of a session that is open now. */
static int
client_enter(
	struct rcd_client *client, const struct rcd_ctrl_open_rep *rep, struct rcd_ctrl_fds *fds)
{
	int err;

	if (fds->count != (rep->huge_bytes > 0 ? 4 : 3)) {
		rcd_ctrl_fds_close(fds);
		return -EPROTO;
	}
	client->seg_fd = fds->fds[0];
	client->wake_fd = fds->fds[1];
	client->events_fd = fds->fds[2];
	client->shm_bytes = rep->segment_bytes;
	client->yield = rep->flags & RCD_CTRL_OPEN_YIELD;
	err = client_map_segment(client, rep, rep->huge_bytes > 0 ? fds->fds[3] : -1);
	if (err != 0)
		return err;
	if (client->shm->magic != RCD_SHM_MAGIC || client->shm->abi != RCD_SHM_ABI ||
		client->shm->generation != rep->generation)
		return -EPROTO;
	return 0;
}

int
rcd_client_open(struct rcd_client *client, uint32_t index)
{
	struct rcd_ctrl_index_req req = { .index = index };
	struct rcd_ctrl_open_rep rep;
	struct rcd_ctrl_fds fds;
	int err = rcd_client_call(client, RCD_CTRL_OPEN, &req, &rep, NULL, &fds);

	return err != 0 ? err : client_enter(client, &rep, &fds);
}

int
rcd_client_import(struct rcd_client *client, int seg_fd, uint32_t *index)
{
	struct rcd_ctrl_fds given = { .fds = { seg_fd }, .count = 1 };
	struct rcd_ctrl_open_rep rep;
	struct rcd_ctrl_fds fds;
	int err = rcd_client_call(client, RCD_CTRL_IMPORT, NULL, &rep, &given, &fds);

	if (err != 0)
		return err;
	*index = rep.device;
	return client_enter(client, &rep, &fds);
}
