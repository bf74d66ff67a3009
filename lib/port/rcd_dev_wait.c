/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Descriptors of a started port's receive queues are found.
 */
#include "rcd_dev_wait.h"

#include <dirent.h>
#include <rte_common.h>
#include <rte_ethdev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "rcd_dev.h"
#include "rcd_thread.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif

/*
 * Files of clients are among the descriptors, and none of those is asked for anything: who keeps it
 * may never answer.
 *
 * @return false: it is no socket that a driver receives by
 */
static bool
dev_wait_is_ours(int fd, ino_t *inode)
{
	struct stat status;
	int domain = 0;
	socklen_t len = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 ||
		(domain != AF_PACKET && domain != AF_XDP) || fstat(fd, &status) != 0)
		return false;
	*inode = status.st_ino;
	return true;
}

void
rcd_dev_wait_look(struct rcd_dev_wait_sockets *sockets)
{
	DIR *dir;
	const struct dirent *entry;
	ino_t inode;

	RCD_ON_CONTROL();
	sockets->count = 0;
	dir = opendir("/proc/self/fd");
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (entry->d_name[0] == '.' || !dev_wait_is_ours(fd, &inode))
			continue;
		if (sockets->count < RTE_DIM(sockets->places)) {
			sockets->places[sockets->count].fd = fd;
			sockets->places[sockets->count].inode = inode;
		}
		sockets->count++;
	}
	if (dir != NULL)
		closedir(dir);
}

static bool
dev_wait_has(const struct rcd_dev_wait_sockets *sockets, ino_t inode)
{
	for (uint32_t i = 0; i < sockets->count; i++)
		if (sockets->places[i].inode == inode)
			return true;
	return false;
}

static int
dev_wait_compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* A process gets the lowest number that is free: one that came later is higher. */
static void
dev_wait_set_sockets(struct rcd_lport *lport, const struct rcd_dev_wait_sockets *before)
{
	struct rcd_dev_wait_sockets now;
	int fds[RCD_LCORES_MAX + 1];
	uint32_t count = 0;

	rcd_dev_wait_look(&now);
	if (before->count > RTE_DIM(before->places) || now.count > RTE_DIM(now.places))
		return;
	for (uint32_t i = 0; i < now.count; i++) {
		if (dev_wait_has(before, now.places[i].inode))
			continue;
		if (count == rcd_lport_rx_queues(lport))
			return;
		fds[count++] = now.places[i].fd;
	}
	if (count != rcd_lport_rx_queues(lport))
		return;
	qsort(fds, count, sizeof(fds[0]), dev_wait_compare);
	for (uint32_t i = 0; i < count; i++)
		lport->rx_waits[i] = (struct rcd_rx_wait){ RCD_RX_WAIT_READABLE, fds[i], true };
}

/* Asked once: who can't does not offer it, or has no descriptor for it. */
static bool
dev_wait_set_interrupt(struct rcd_lport *lport, uint16_t queue, bool sure)
{
	int fd;

	if (rte_eth_dev_rx_intr_enable(lport->port_id, queue) != 0)
		return false;
	rte_eth_dev_rx_intr_disable(lport->port_id, queue);
	fd = rte_eth_dev_rx_intr_ctl_q_get_fd(lport->port_id, queue);
	lport->rx_waits[queue] = (struct rcd_rx_wait){ RCD_RX_WAIT_INTERRUPT, fd, sure };
	return fd >= 0;
}

/* @return false: not all queues have one, or none is to have */
static bool
dev_wait_set_interrupts(struct rcd_dev *dev)
{
	bool interrupts = dev->interrupts;

	for (uint16_t i = 0; interrupts && i < rcd_lport_rx_queues(&dev->lport); i++)
		interrupts = dev_wait_set_interrupt(&dev->lport, i, rcd_dev_is_udp(dev));
	return interrupts;
}

void
rcd_dev_wait_set(struct rcd_dev *dev, const struct rcd_dev_wait_sockets *before)
{
	struct rcd_lport *lport = &dev->lport;

	RCD_ON_CONTROL();
	memset(lport->rx_waits, 0, sizeof(lport->rx_waits));
	if (lport->wire || lport->impaired || !rcd_lcores_sleep(lport->lcores) ||
		dev_wait_set_interrupts(dev))
		return;
	memset(lport->rx_waits, 0, sizeof(lport->rx_waits));
	dev_wait_set_sockets(lport, before);
}

void
rcd_dev_wait_again(struct rcd_dev *dev)
{
	struct rcd_lport *lport = &dev->lport;

	RCD_ON_CONTROL();
	if (lport->rx_waits[0].kind == RCD_RX_WAIT_INTERRUPT && !dev_wait_set_interrupts(dev))
		memset(lport->rx_waits, 0, sizeof(lport->rx_waits));
}
