/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a device is to be, and its keys by name: the one setter for the configuration file, the
 * command line and programs. Knows no port; whether a netdev is there is found out when the device
 * is added.
 *
 * Errors: -errno, and a sentence for people where there is room for it; `error` may be NULL with
 * error_len 0.
 *
 * Threads: any; a struct is its caller's.
 */
#ifndef RCD_DEV_CONF_H
#define RCD_DEV_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_api.h"
#include "rcd_gid.h"

RCD_API_BEGIN

#define RCD_NAME_LEN      64    /**< of a device's name, with the 0 at its end */
#define RCD_NETNS_LEN     64    /**< of what a network namespace is called, likewise */
#define RCD_DEV_ADDRS_MAX 16    /**< addresses that a device can be given */
#define RCD_DEV_MTU_MIN   576   /**< of IP, bytes, that a device can have, and... */
#define RCD_DEV_MTU_MAX   65535 /**< ...the longest */

/** How names of ports begin that devices of rcd_inline_create() have: those of no other. */
#define RCD_DEV_FED_PORT "net_ring_rcdi"

/** How a device is attached. */
enum rcd_attach_type {
	RCD_ATTACH_WIRE,   /**< one end of an embedded wire; the peer is another device */
	RCD_ATTACH_NETDEV, /**< a kernel netdev that the kernel keeps */
	RCD_ATTACH_PORT,   /**< any DPDK port */
};

/** Which driver reaches a kernel netdev. */
enum rcd_netdev_mode {
	/** AF_XDP on hardware, else UDP sockets, else AF_PACKET (doc/engine.md has the figures). */
	RCD_NETDEV_AUTO,
	RCD_NETDEV_XDP,    /**< net_af_xdp, which takes RoCE alone */
	RCD_NETDEV_PACKET, /**< net_af_packet, beside the kernel */
	RCD_NETDEV_UDP,    /**< net_udp: the kernel sends and receives, by UDP sockets */
};

/** PAUSE frames of a port. */
enum rcd_pause {
	RCD_PAUSE_KEEP,  /**< as the driver has them */
	RCD_PAUSE_OFF,   /**< neither */
	RCD_PAUSE_RX,    /**< heeded: it waits when it is told to */
	RCD_PAUSE_TX,    /**< sent, when its queues are full */
	RCD_PAUSE_BOTH,  /**< heeded and sent */
	RCD_PAUSE_COUNT, /**< how many there are */
};

/** Raw packets of programs. */
enum rcd_raw_use {
	RCD_RAW_OFF,   /**< there are none */
	RCD_RAW_ON,    /**< of what is no RoCE */
	RCD_RAW_SNIFF, /**< and sniffers, which see all */
	RCD_RAW_COUNT, /**< how many there are */
};

/** Selective acknowledgement (doc/sack.md): how a peer is known to do it. */
enum rcd_sack_use {
	RCD_SACK_AUTO,  /**< by connection management, or by marks in packets */
	RCD_SACK_CM,    /**< by connection management alone */
	RCD_SACK_OFF,   /**< not at all: there is none */
	RCD_SACK_COUNT, /**< how many there are */
};

/** The keys of a link, by rcd_link_key.def. Values are dense from 0. */
enum rcd_link_key {
#define RCD_LINK_KEY(symbol, name, kinds, time, value, start, what) RCD_LINK_KEY_##symbol,
#include "rcd_link_key.def"
#undef RCD_LINK_KEY
	RCD_LINK_KEY_COUNT /**< how many there are */
};

/** An address of a device that the engine owns. */
struct rcd_addr {
	struct rcd_gid gid; /**< IPv4 in its mapped form */
	uint8_t prefix_len; /**< of the subnet: up to 32, or up to 128 */
	uint16_t vlan_id;   /**< 0: untagged */
};

/** What a device is to be. All zero: an end of an embedded wire, without name, peer, addresses. */
struct rcd_dev_conf {
	char name[RCD_NAME_LEN];     /**< letters, digits and _-.; behind a guest's "@COOKIE" */
	enum rcd_attach_type attach; /**< what target is */
	char target
		[256]; /**< wire: name of the peer; netdev: its name; port: EAL device arguments */
	enum rcd_netdev_mode mode; /**< of a netdev; by UDP the target may be its address */
	bool udp;                  /**< said by its type: no other mode goes with it */
	enum rcd_pause pause;      /**< of a port */
	uint32_t mtu;     /**< of IP, bytes; 0: the largest useful one that the port does */
	char impair[256]; /**< arguments of net_impair, put before the port; "": nothing is */
	char cc[128];     /**< as rcd_cc_parse() takes it; "": swift, as rcd_hqp_choose_cc() says */
	char cc_class[128]; /**< as rcd_cc_of_class() takes it */
	char sl_dscp[128];  /**< as rcd_dscp_of_sl() takes it */
	uint8_t tos;        /**< traffic class of connections by RDMA CM that have no other */
	/** Packets for others of this engine leave by the port, too: both are on one link. */
	bool no_shortcut;
	bool fed;               /**< its port is rcd_inline_create()'s, which sets this */
	enum rcd_sack_use sack; /**< selective acknowledgement */
	enum rcd_raw_use raw;   /**< what raw packets programs may have */
	bool down;              /**< it is not to be up, until somebody says so */
	uint32_t addr_count;    /**< of addrs, from the first one on */
	struct rcd_addr addrs[RCD_DEV_ADDRS_MAX]; /**< not of a netdev: it has its own */
	struct rcd_gid gateway4;                  /**< in its mapped form; all zero: none */
	struct rcd_gid gateway6;                  /**< likewise, an IPv6 address */
	uint8_t mac[6]; /**< all zero: that of the port, or one that is made of the name */
	/** Network namespace of a netdev, for people: a guest's is "@COOKIE"; "": the engine's. */
	char netns[RCD_NETNS_LEN];
	char kernel[16]; /**< of a port: its netdev in the kernel; "": the kernel has none */
	uint32_t
		given; /**< keys that rcd_dev_conf_set() took, a bit each: 1 << enum rcd_link_key */
};

/**
 * Parse ADDRESS, ADDRESS/LENGTH, and either with "@VLAN" behind it.
 *
 * @param addr  set when 0 is returned
 * @return 0; -EINVAL: it is none of these
 */
int
rcd_addr_parse(const char *text, struct rcd_addr *addr);

/** "wire", "netdev" or "port". @return static string, never NULL */
const char *
rcd_attach_name(enum rcd_attach_type attach);

/** As the key "raw" says it. @return static string, never NULL */
const char *
rcd_raw_use_name(enum rcd_raw_use use);

/** As the key "sack" says it. @return static string, never NULL */
const char *
rcd_sack_use_name(enum rcd_sack_use use);

/** As the key "pause" says it. @return static string, never NULL */
const char *
rcd_pause_name(enum rcd_pause pause);

/**
 * The kernel's netdev of a device: that it is attached to, or that its port gets. The kernel has
 * its addresses, routes and neighbours then.
 *
 * @return within conf; NULL: there is none, and they are the engine's
 */
const char *
rcd_dev_conf_netdev(const struct rcd_dev_conf *conf);

/** The key of this name. @return its number, or -ENOENT */
int
rcd_link_key_find(const char *name);

/** Whether a key can be changed while the link is there. */
bool
rcd_link_key_live(enum rcd_link_key key);

/**
 * Set one key. Addresses are added to those that are there; all else is replaced. Keys may come in
 * any order: whether they go together is rcd_dev_conf_check()'s to say. The name of the device is
 * no key: it is written into conf.
 *
 * @param error  set to a sentence that begins with the key, unless 0 is returned
 * @return 0; -ENOENT: there is no such key; -EINVAL: not such a value, and conf is as it was
 */
int
rcd_dev_conf_set(struct rcd_dev_conf *conf, const char *key, const char *value, char *error,
	size_t error_len);

/**
 * Whether the keys that were set go together: what its kind of attachment needs is there, and
 * nothing that it has not.
 *
 * @param key    set to the key that is wrong, unless 0 is returned
 * @param error  likewise, to a sentence
 * @return 0 or -EINVAL
 */
int
rcd_dev_conf_check(
	const struct rcd_dev_conf *conf, enum rcd_link_key *key, char *error, size_t error_len);

RCD_API_END

#endif /* RCD_DEV_CONF_H */
