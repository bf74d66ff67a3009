/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the control thread knows of an lcore and keeps there. Commands are rcd_lcore.c's.
 */
#include "rcd_lcore_ctl.h"

#include <errno.h>
#include <sys/epoll.h>

#include "rcd_lcore.h"
#include "rcd_thread.h"

uint32_t
rcd_lcore_index(const struct rcd_lcore *lcore)
{
	return lcore->index;
}

int
rcd_lcore_socket_id(const struct rcd_lcore *lcore)
{
	return lcore->socket_id;
}

uint32_t
rcd_lcore_contexts(const struct rcd_lcore *lcore)
{
	RCD_ON_CONTROL();
	return lcore->context_count;
}

void
rcd_lcore_context_add(struct rcd_lcore *lcore)
{
	RCD_ON_CONTROL();
	lcore->context_count++;
}

void
rcd_lcore_context_del(struct rcd_lcore *lcore)
{
	RCD_ON_CONTROL();
	lcore->context_count--;
}

int
rcd_lcore_watch(struct rcd_lcore *lcore, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = -1 };

	RCD_ON_CONTROL();
	return epoll_ctl(lcore->sleep_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void
rcd_lcore_unwatch(struct rcd_lcore *lcore, int fd)
{
	RCD_ON_CONTROL();
	epoll_ctl(lcore->sleep_fd, EPOLL_CTL_DEL, fd, NULL);
}
