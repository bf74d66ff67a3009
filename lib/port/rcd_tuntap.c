/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A TAP device and who carries for it. The thread does all system calls, and what the kernel's
 * stack does within them: an lcore sees two rings. DPDK's own driver of TAP devices would have each
 * frame announced by a signal, and the lcore in the kernel's stack.
 */
#include "rcd_tuntap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <pthread.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rcd_counter.h"
#include "rcd_csum.h"
#include "rcd_dev.h"
#include "rcd_ethdev.h"
#include "rcd_exception.h"
#include "rcd_groups.h"
#include "rcd_log.h"
#include "rcd_lport.h"
#include "rcd_ports.h"
#include "rcd_rtnl.h"
#include "rcd_thread.h"

#define STACK   65536
#define AT_ONCE 32 /**< frames of one direction before the other has its turn */
/** For frames of the kernel's: a port may keep as many as it has descriptors. */
#define BUFFERS 1535
/** Of a buffer; what is longer than any frame can be told from one that fits. */
#define BUFFER_ROOM (RTE_PKTMBUF_HEADROOM + RCD_TUNTAP_FRAME_MAX + 64)
#define SEGMENTS    16 /**< of a frame for the kernel */
#define FULL_MS     1  /**< until an lcore may have made room */

struct rcd_tuntap {
	struct rcd_exception exception;
	struct rcd_lport *lport;
	struct rte_mempool *pool;
	pthread_t thread;
	bool running;
	bool stop; /**< atomic */
	int fd;
	bool gone; /**< somebody deleted the netdev; the thread's own */
	bool carrier;
	uint32_t mtu_max; /**< that the port can do; constant while the thread runs */
	char name[IFNAMSIZ];
};

/* A frame to the kernel; a tag that the port took off is put back. @return whether it took it */
static bool
tuntap_write(struct rcd_tuntap *tap, struct rte_mbuf **mbuf)
{
	/* It says nothing of sums: the kernel does not believe a TAP that says they are right. */
	struct virtio_net_hdr hdr = { .flags = 0 };
	struct iovec parts[1 + SEGMENTS] = { { &hdr, sizeof(hdr) } };
	int count = 1;

	if (((*mbuf)->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) && rte_vlan_insert(mbuf) != 0)
		return false;
	for (struct rte_mbuf *seg = *mbuf; seg != NULL; seg = seg->next) {
		if (count == 1 + SEGMENTS)
			return false;
		parts[count].iov_base = rte_pktmbuf_mtod(seg, void *);
		parts[count++].iov_len = rte_pktmbuf_data_len(seg);
	}
	return writev(tap->fd, parts, count) >= 0;
}

static uint32_t
tuntap_to_kernel(struct rcd_tuntap *tap)
{
	struct rcd_counters *counters = rcd_lport_carrier_counters(tap->lport);
	struct rte_mbuf *mbufs[AT_ONCE];
	uint32_t count = rcd_exception_take(&tap->exception, mbufs, AT_ONCE);

	for (uint32_t i = 0; i < count; i++)
		if (!tuntap_write(tap, &mbufs[i]))
			rcd_counter_add(counters, RCD_COUNTER_TO_KERNEL_DROP, 1);
	rcd_exception_give_back(&tap->exception, mbufs, count);
	return count;
}

/*
 * Who works out what the kernel left of a sum: the port, or this. Numbers of the header are in host
 * order. @return false: nobody can
 */
static bool
tuntap_take_csum(
	struct rcd_tuntap *tap, struct rte_mbuf *mbuf, size_t len, const struct virtio_net_hdr *hdr)
{
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	struct rcd_csum_layout layout;

	if (hdr->gso_type != VIRTIO_NET_HDR_GSO_NONE)
		return false; /* it was not asked for */
	if (!(hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return true;
	if (!__atomic_load_n(&tap->lport->csum, __ATOMIC_RELAXED) ||
		!rcd_csum_layout_parse(frame, len, hdr->csum_start, hdr->csum_offset, &layout))
		return rcd_csum_finish(frame, len, hdr->csum_start, hdr->csum_offset);
	mbuf->l2_len = layout.l2_len;
	mbuf->l3_len = layout.l3_len;
	mbuf->l4_len = layout.l4_len;
	/* Some look at this for whether 0 would be no sum. */
	mbuf->packet_type = layout.udp ? RTE_PTYPE_L4_UDP : RTE_PTYPE_L4_TCP;
	mbuf->ol_flags |= (layout.ipv6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4) |
		(layout.udp ? RTE_MBUF_F_TX_UDP_CKSUM : RTE_MBUF_F_TX_TCP_CKSUM);
	return true;
}

/* One frame of the kernel's. @return NULL: none, one that was dropped, nothing to put it into */
static struct rte_mbuf *
tuntap_read(struct rcd_tuntap *tap)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(tap->pool);
	struct virtio_net_hdr hdr;
	struct iovec parts[2] = { { &hdr, sizeof(hdr) } };
	ssize_t len;

	if (mbuf == NULL)
		return NULL;
	parts[1].iov_base = rte_pktmbuf_mtod(mbuf, void *);
	parts[1].iov_len = rte_pktmbuf_tailroom(mbuf);
	len = readv(tap->fd, parts, 2) - (ssize_t)sizeof(hdr);
	if (len <= 0) {
		rte_pktmbuf_free(mbuf);
		return NULL;
	}
	/* A netdev's MTU is longer for a moment when its owner wants what the port can't do. */
	if (len > (ssize_t)(tap->mtu_max + RCD_ETH_TWO_TAGS_LEN) ||
		!tuntap_take_csum(tap, mbuf, (size_t)len, &hdr)) {
		rcd_counter_add(
			rcd_lport_carrier_counters(tap->lport), RCD_COUNTER_FROM_KERNEL_DROP, 1);
		rte_pktmbuf_free(mbuf);
		return NULL;
	}
	/* There are NICs that take a shorter one for an attack. */
	if (len < RCD_ETH_MIN_LEN) {
		memset(rte_pktmbuf_mtod(mbuf, uint8_t *) + len, 0, RCD_ETH_MIN_LEN - (size_t)len);
		len = RCD_ETH_MIN_LEN;
	}
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = (uint32_t)len;
	return mbuf;
}

static uint32_t
tuntap_from_kernel(struct rcd_tuntap *tap)
{
	uint32_t count = 0;

	while (count < AT_ONCE && rcd_exception_has_room(&tap->exception)) {
		struct rte_mbuf *mbuf = tuntap_read(tap);

		if (mbuf == NULL)
			break;
		rcd_exception_give(tap->lport, mbuf);
		count++;
	}
	return count;
}

/* Until there may be something to carry. What waits for a port that is full waits in the TAP. */
static void
tuntap_wait(struct rcd_tuntap *tap)
{
	struct pollfd fds[] = {
		{ .fd = tap->exception.wake_fd, .events = POLLIN },
		{ .fd = tap->fd, .events = POLLIN },
	};
	bool full = !rcd_exception_has_room(&tap->exception) || rte_mempool_empty(tap->pool);

	if (rcd_exception_may_sleep(&tap->exception))
		poll(fds, full || tap->gone ? 1 : 2, full ? FULL_MS : -1);
	rcd_exception_awake(&tap->exception);
	if (fds[1].revents & (POLLERR | POLLHUP))
		tap->gone = true;
}

/* The control thread may have some that this one, which it begins, has no use for. */
static void
tuntap_drop_rights(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { { .effective = 0 } };

	if (syscall(SYS_capset, &header, none) != 0)
		RCD_LOG(DEBUG, "a carrier keeps its rights: %s", strerror(errno));
}

static void *
tuntap_run(void *arg)
{
	struct rcd_tuntap *tap = arg;

	tuntap_drop_rights();
	while (!__atomic_load_n(&tap->stop, __ATOMIC_ACQUIRE))
		if (tuntap_to_kernel(tap) + tuntap_from_kernel(tap) == 0)
			tuntap_wait(tap);
	return NULL;
}

static int
tuntap_start(struct rcd_tuntap *tap)
{
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	err = pthread_create(&tap->thread, &attr, tuntap_run, tap);
	pthread_attr_destroy(&attr);
	if (err != 0)
		return -err;
	pthread_setname_np(tap->thread, "rocade-kernel");
	tap->running = true;
	return 0;
}

static int
tuntap_make(struct rcd_tuntap *tap, const uint8_t *mac)
{
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	struct ifreq address = { .ifr_hwaddr.sa_family = ARPHRD_ETHER };
	unsigned long offloads =
		__atomic_load_n(&tap->lport->csum, __ATOMIC_RELAXED) ? TUN_F_CSUM : 0;
	int hdr_len = sizeof(struct virtio_net_hdr);

	tap->fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (tap->fd < 0)
		return -errno;
	memcpy(request.ifr_name, tap->name, sizeof(request.ifr_name));
	if (ioctl(tap->fd, TUNSETIFF, &request) != 0)
		return -errno;
	if (ioctl(tap->fd, TUNSETVNETHDRSZ, &hdr_len) != 0)
		return -errno;
	/* At once: udev has a MAC of its own for what it finds with the kernel's random one. */
	memcpy(address.ifr_hwaddr.sa_data, mac, RCD_MAC_LEN);
	if (ioctl(tap->fd, SIOCSIFHWADDR, &address) != 0)
		return -errno;
	/* One that was there may have promised its last owner's help with checksums. */
	return ioctl(tap->fd, TUNSETOFFLOAD, offloads) == 0 ? 0 : -errno;
}

static struct ifinfomsg *
tuntap_put_link(struct rcd_rtnl_message *message, const struct rcd_dev *dev, struct nlmsghdr **nlh)
{
	struct ifinfomsg *info;

	*nlh = rcd_rtnl_begin(message, RTM_NEWLINK, NLM_F_ACK);
	info = mnl_nlmsg_put_extra_header(*nlh, sizeof(*info));
	info->ifi_index = (int)dev->ifindex;
	return info;
}

static int
tuntap_set_mtu(struct rcd_dev *dev, uint32_t mtu)
{
	struct rcd_rtnl_message message;
	struct nlmsghdr *nlh;

	tuntap_put_link(&message, dev, &nlh);
	mnl_attr_put_u32(nlh, IFLA_MTU, mtu);
	return rcd_rtnl_ask(dev->ports->rtnl, nlh, NULL, NULL);
}

/* The port's MAC. @param flags  of the netdev that are set with it */
static int
tuntap_set_mac(struct rcd_dev *dev, unsigned int flags)
{
	struct rcd_rtnl_message message;
	struct nlmsghdr *nlh;
	struct ifinfomsg *info = tuntap_put_link(&message, dev, &nlh);

	mnl_attr_put(nlh, IFLA_ADDRESS, RCD_MAC_LEN, dev->mac);
	info->ifi_flags = flags;
	info->ifi_change = flags;
	return rcd_rtnl_ask(dev->ports->rtnl, nlh, NULL, NULL);
}

/* What of the port its netdev has to know. */
static int
tuntap_set_up(struct rcd_dev *dev)
{
	struct rcd_tuntap *tap = dev->tuntap;
	struct rte_eth_dev_info info;
	int err;

	err = rte_eth_dev_info_get(dev->lport.port_id, &info);
	if (err != 0)
		return err;
	tap->mtu_max = RTE_MIN(
		(uint32_t)info.max_mtu, (uint32_t)(RCD_TUNTAP_FRAME_MAX - RCD_ETH_TWO_TAGS_LEN));
	dev->ifindex = if_nametoindex(tap->name);
	err = tuntap_set_mtu(dev, RTE_MIN(dev->mtu, tap->mtu_max));
	if (err == 0)
		err = tuntap_set_mac(dev, IFF_UP);
	rcd_tuntap_set_carrier(dev, false);
	return err;
}

static int
tuntap_make_buffers(struct rcd_dev *dev)
{
	struct rcd_tuntap *tap = dev->tuntap;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "rcdx_%u", dev->lport.serial);
	tap->pool = rte_pktmbuf_pool_create(name, BUFFERS, 0, 0, BUFFER_ROOM, dev->socket_id);
	if (tap->pool == NULL)
		return -ENOMEM;
	return rcd_exception_init(&tap->exception, dev->lport.serial, dev->socket_id);
}

int
rcd_tuntap_open(struct rcd_dev *dev, char *error, size_t error_len)
{
	struct rcd_tuntap *tap = calloc(1, sizeof(*tap));
	const char *what = "no memory";
	int err = -ENOMEM;

	RCD_ON_CONTROL();
	if (dev->ports->netlink == NULL) {
		free(tap);
		snprintf(error, error_len, "%s: the kernel has no rtnetlink", dev->conf.name);
		return -ENOTSUP;
	}
	dev->tuntap = tap;
	if (tap == NULL) {
		snprintf(error, error_len, "%s: no memory", dev->conf.name);
		return -ENOMEM;
	}
	tap->fd = -1;
	tap->exception.wake_fd = -1;
	tap->lport = &dev->lport;
	tap->carrier = true;
	snprintf(tap->name, sizeof(tap->name), "%s", dev->conf.kernel);
	err = tuntap_make_buffers(dev);
	if (err == 0) {
		what = "the kernel makes no TAP device of that name";
		err = tuntap_make(tap, dev->mac);
	}
	if (err == 0) {
		what = "the netdev can't be set up";
		err = tuntap_set_up(dev);
	}
	if (err == 0) {
		dev->lport.exception = &tap->exception;
		what = "no thread";
		err = tuntap_start(tap);
	}
	if (err != 0)
		snprintf(error, error_len, "%s: kernel %s: %s: %s", dev->conf.name,
			dev->conf.kernel, what, strerror(-err));
	return err;
}

void
rcd_tuntap_stop(struct rcd_dev *dev)
{
	struct rcd_tuntap *tap = dev->tuntap;
	uint64_t one = 1;

	RCD_ON_CONTROL();
	if (tap == NULL)
		return;
	__atomic_store_n(&tap->stop, true, __ATOMIC_RELEASE);
	if (tap->running) {
		if (write(tap->exception.wake_fd, &one, sizeof(one)) < 0) {
			/* Full: it is going to wake up anyway. */
		}
		pthread_join(tap->thread, NULL);
	}
	tap->running = false;
	rcd_exception_fini(&tap->exception);
	dev->lport.exception = NULL;
}

void
rcd_tuntap_close(struct rcd_dev *dev)
{
	struct rcd_tuntap *tap = dev->tuntap;

	RCD_ON_CONTROL();
	if (tap == NULL)
		return;
	/* A port that is stopped, but was not made for the device, may keep some. */
	if (tap->pool != NULL && rte_mempool_full(tap->pool))
		rte_mempool_free(tap->pool);
	else if (tap->pool != NULL)
		RCD_LOG(WARNING, "%s: its port keeps buffers of %s: their memory is lost",
			dev->conf.name, tap->name);
	if (tap->fd >= 0) {
		/* One that was there stays, and its next owner may work out no sums. */
		if (ioctl(tap->fd, TUNSETOFFLOAD, 0) != 0)
			RCD_LOG(DEBUG, "%s: offloads: %s", tap->name, strerror(errno));
		close(tap->fd);
	}
	dev->tuntap = NULL;
	dev->ifindex = 0;
	free(tap);
}

void
rcd_tuntap_set_carrier(struct rcd_dev *dev, bool up)
{
	int on = up;

	RCD_ON_CONTROL();
	if (dev->tuntap->carrier == up)
		return;
	/* Kernels before 5.0 know no carrier of a TAP device: there it is always up. */
	if (ioctl(dev->tuntap->fd, TUNSETCARRIER, &on) != 0)
		RCD_LOG(DEBUG, "%s: carrier: %s", dev->tuntap->name, strerror(errno));
	dev->tuntap->carrier = up;
}

bool
rcd_tuntap_follow_mtu(struct rcd_dev *dev, uint32_t mtu)
{
	int err = -EINVAL;

	RCD_ON_CONTROL();
	if (mtu == dev->mtu)
		return true;
	if (mtu <= dev->tuntap->mtu_max)
		err = rcd_ethdev_change_mtu(dev, (uint16_t)mtu);
	if (err == 0)
		return true;
	RCD_LOG(WARNING, "%s: the port keeps its MTU of %u (%s), and so does %s", dev->conf.name,
		dev->mtu, strerror(-err), dev->tuntap->name);
	tuntap_set_mtu(dev, dev->mtu);
	return false;
}

bool
rcd_tuntap_follow_mac(struct rcd_dev *dev, const uint8_t *mac)
{
	struct rte_ether_addr addr;
	int err;

	RCD_ON_CONTROL();
	if (memcmp(dev->mac, mac, RCD_MAC_LEN) == 0)
		return true;
	memcpy(addr.addr_bytes, mac, RCD_MAC_LEN);
	err = rte_eth_dev_default_mac_addr_set(dev->lport.port_id, &addr);
	if (err == 0)
		return true;
	RCD_LOG(WARNING, "%s: the port keeps its MAC (%s), and so does %s", dev->conf.name,
		strerror(-err), dev->tuntap->name);
	tuntap_set_mac(dev, 0);
	return false;
}

void
rcd_tuntap_follow_promiscuity(struct rcd_dev *dev, bool all)
{
	RCD_ON_CONTROL();
	if (dev->groups.promiscuous == all)
		return;
	if (rcd_groups_set_promiscuous(dev, all) != 0)
		RCD_LOG(NOTICE, "%s: the port can't hear all frames", dev->conf.name);
}
