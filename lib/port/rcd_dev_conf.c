/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Keys of links: each taken by a function of its own, which says what is wrong with a value.
 */
#include "rcd_dev_conf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_amount.h"
#include "rcd_bytes.h"
#include "rcd_cc.h"
#include "rcd_sl_dscp.h"
#include "rcd_text.h"

#define ADDRESSES_LEN 1024

enum {
	KIND_WIRE = 1 << RCD_ATTACH_WIRE,
	KIND_NETDEV = 1 << RCD_ATTACH_NETDEV,
	KIND_PORT = 1 << RCD_ATTACH_PORT,
	KIND_ALL = KIND_WIRE | KIND_NETDEV | KIND_PORT,
};

static const char *const attach_names[] = { "wire", "netdev", "port" };
static const char *const sack_names[] = { "auto", "cm", "off" };
static const char *const raw_names[] = { "off", "on", "sniff" };
static const char *const pause_names[] = { "keep", "off", "rx", "tx", "both" };

static const char *
dev_conf_text(char *dst, size_t size, const char *val)
{
	return rcd_text_take(dst, size, val) ? NULL : "too long";
}

/* The address itself, without what may stand behind it. @return bits of one of its family, or 0 */
static uint8_t
dev_conf_host(const char *text, size_t len, struct rcd_gid *gid)
{
	char host[INET6_ADDRSTRLEN];
	uint8_t bytes[16];

	if (len >= sizeof(host))
		return 0;
	memcpy(host, text, len);
	host[len] = '\0';
	if (inet_pton(AF_INET, host, bytes) == 1) {
		*gid = rcd_gid_from_ipv4(bytes);
		return 32;
	}
	if (inet_pton(AF_INET6, host, bytes) == 1) {
		*gid = rcd_gid_from_ipv6(bytes);
		return 128;
	}
	return 0;
}

/* A decimal number up to a byte that ends it. @return where it ends, or NULL */
static const char *
dev_conf_number(const char *text, unsigned int most, unsigned int *val)
{
	*val = 0;
	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++) {
		*val = *val * 10 + (unsigned int)(*text - '0');
		if (*val > most)
			return NULL;
	}
	return text;
}

int
rcd_addr_parse(const char *text, struct rcd_addr *addr)
{
	size_t len = strcspn(text, "/@");
	const char *at = text + len;
	struct rcd_gid gid;
	unsigned int most = dev_conf_host(text, len, &gid);
	unsigned int prefix = most, vlan = addr->vlan_id;

	if (most == 0)
		return -EINVAL;
	if (*at == '/')
		at = dev_conf_number(at + 1, most, &prefix);
	if (at != NULL && *at == '@') {
		at = dev_conf_number(at + 1, 4094, &vlan);
		if (vlan == 0)
			return -EINVAL;
	}
	if (at == NULL || *at != '\0')
		return -EINVAL;
	addr->gid = gid;
	addr->prefix_len = (uint8_t)prefix;
	addr->vlan_id = (uint16_t)vlan;
	return 0;
}

static const char *
dev_conf_type(struct rcd_dev_conf *conf, const char *val)
{
	bool udp = strcmp(val, "udp") == 0;
	int index = udp ? RCD_ATTACH_NETDEV
			: rcd_text_find(attach_names, RCD_ARRAY_COUNT(attach_names), val);

	if (index < 0)
		return "one of wire, netdev, udp, port";
	conf->attach = (enum rcd_attach_type)index;
	conf->udp = udp;
	if ((conf->given & 1u << RCD_LINK_KEY_MODE) == 0)
		conf->mode = udp ? RCD_NETDEV_UDP : RCD_NETDEV_AUTO;
	return NULL;
}

static const char *
dev_conf_peer(struct rcd_dev_conf *conf, const char *val)
{
	/* It is the name of a device. */
	return dev_conf_text(conf->target, RCD_NAME_LEN, val);
}

static const char *
dev_conf_netdev(struct rcd_dev_conf *conf, const char *val)
{
	return dev_conf_text(conf->target, sizeof(conf->target), val);
}

static const char *
dev_conf_netns(struct rcd_dev_conf *conf, const char *val)
{
	return val[0] == '\0' ? "the name of a network namespace"
			      : dev_conf_text(conf->netns, sizeof(conf->netns), val);
}

static const char *
dev_conf_devargs(struct rcd_dev_conf *conf, const char *val)
{
	return dev_conf_text(conf->target, sizeof(conf->target), val);
}

static const char *
dev_conf_kernel(struct rcd_dev_conf *conf, const char *val)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-.";

	/* Of the characters that the kernel takes, those that no program trips over. */
	if (val[0] == '\0' || val[0] == '.' || val[strspn(val, letters)] != '\0')
		return "the name of a netdev to be: letters, digits and _-. only";
	return dev_conf_text(conf->kernel, sizeof(conf->kernel), val);
}

static const char *
dev_conf_mode(struct rcd_dev_conf *conf, const char *val)
{
	static const char *const names[] = { "auto", "xdp", "packet", "udp" };
	int index = rcd_text_find(names, RCD_ARRAY_COUNT(names), val);

	if (index < 0)
		return "one of auto, xdp, packet, udp";
	conf->mode = (enum rcd_netdev_mode)index;
	return NULL;
}

static const char *
dev_conf_address(struct rcd_dev_conf *conf, const char *val)
{
	struct rcd_addr addrs[RCD_DEV_ADDRS_MAX];
	uint32_t count = conf->addr_count;
	char copy[ADDRESSES_LEN];
	char *save = NULL;
	const char *what = dev_conf_text(copy, sizeof(copy), val);

	if (what != NULL)
		return what;
	memcpy(addrs, conf->addrs, sizeof(addrs));
	for (char *word = strtok_r(copy, ", ", &save); word != NULL;
		word = strtok_r(NULL, ", ", &save)) {
		struct rcd_addr addr = { .vlan_id = 0 };
		const char *at = strchr(word, '@');
		unsigned int vlan = 1;

		if (at != NULL) {
			at = dev_conf_number(at + 1, 4094, &vlan);
			if (at == NULL || *at != '\0' || vlan == 0)
				return "VLAN identifiers are 1 to 4094";
		}
		if (rcd_addr_parse(word, &addr) != 0)
			return "a list of ADDRESS/LENGTH[@VLAN]";
		if (count == RCD_DEV_ADDRS_MAX)
			return "too many addresses";
		addrs[count++] = addr;
	}
	memcpy(conf->addrs, addrs, sizeof(addrs));
	conf->addr_count = count;
	return NULL;
}

/* @return bits of an address of its family; 0: it is none */
static uint8_t
dev_conf_hop(const char *val, struct rcd_gid *gid)
{
	struct rcd_addr addr = { .vlan_id = 0 };

	if (rcd_addr_parse(val, &addr) != 0 || addr.vlan_id != 0)
		return 0;
	*gid = addr.gid;
	return rcd_gid_is_ipv4(gid) ? 32 : 128;
}

static const char *
dev_conf_gateway(struct rcd_dev_conf *conf, const char *val)
{
	struct rcd_gid gid;

	switch (dev_conf_hop(val, &gid)) {
	case 32:
		conf->gateway4 = gid;
		return NULL;
	case 128:
		conf->gateway6 = gid;
		return NULL;
	}
	return "an address";
}

static const char *
dev_conf_gateway4(struct rcd_dev_conf *conf, const char *val)
{
	struct rcd_gid gid = { .raw = { 0 } };

	if (strcmp(val, "none") != 0 && dev_conf_hop(val, &gid) != 32)
		return "an IPv4 address, or none";
	conf->gateway4 = gid;
	return NULL;
}

static const char *
dev_conf_gateway6(struct rcd_dev_conf *conf, const char *val)
{
	struct rcd_gid gid = { .raw = { 0 } };

	if (strcmp(val, "none") != 0 && dev_conf_hop(val, &gid) != 128)
		return "an IPv6 address, or none";
	conf->gateway6 = gid;
	return NULL;
}

static const char *
dev_conf_mac(struct rcd_dev_conf *conf, const char *val)
{
	static const struct ether_addr none;
	struct ether_addr mac;

	if (strlen(val) != sizeof("00:00:00:00:00:00") - 1 || ether_aton_r(val, &mac) == NULL)
		return "six bytes, as 02:00:00:00:00:01";
	if ((mac.ether_addr_octet[0] & 1) != 0 || memcmp(&mac, &none, sizeof(mac)) == 0)
		return "the MAC of one station";
	memcpy(conf->mac, mac.ether_addr_octet, sizeof(conf->mac));
	return NULL;
}

static const char *
dev_conf_mtu(struct rcd_dev_conf *conf, const char *val)
{
	uint64_t bytes;

	if (!rcd_amount_parse(val, RCD_DEV_MTU_MAX, &bytes) || bytes < RCD_DEV_MTU_MIN)
		return "bytes, 576 to 65535";
	conf->mtu = (uint32_t)bytes;
	return NULL;
}

static const char *
dev_conf_impair(struct rcd_dev_conf *conf, const char *val)
{
	return dev_conf_text(conf->impair, sizeof(conf->impair), val);
}

static const char *
dev_conf_pause(struct rcd_dev_conf *conf, const char *val)
{
	int index = rcd_text_find(pause_names, RCD_PAUSE_COUNT, val);

	if (index < 0)
		return "one of keep, off, rx, tx, both";
	conf->pause = (enum rcd_pause)index;
	return NULL;
}

static const char *
dev_conf_cc(struct rcd_dev_conf *conf, const char *val)
{
	const struct rcd_cc_ops *ops;
	struct rcd_cc_params params;
	const char *wrong;

	if (strcmp(val, "auto") == 0)
		return dev_conf_text(conf->cc, sizeof(conf->cc), "");
	wrong = rcd_cc_parse(val, &ops, &params);
	return wrong != NULL ? wrong : dev_conf_text(conf->cc, sizeof(conf->cc), val);
}

static const char *
dev_conf_cc_class(struct rcd_dev_conf *conf, const char *val)
{
	const char *text = strcmp(val, "none") == 0 ? "" : val;
	const char *wrong = rcd_cc_of_class(text, 0, NULL);

	return wrong != NULL ? wrong : dev_conf_text(conf->cc_class, sizeof(conf->cc_class), text);
}

static const char *
dev_conf_sl_dscp(struct rcd_dev_conf *conf, const char *val)
{
	const char *text = strcmp(val, "none") == 0 ? "" : val;
	const char *wrong = rcd_dscp_of_sl(text, 0, NULL);

	return wrong != NULL ? wrong : dev_conf_text(conf->sl_dscp, sizeof(conf->sl_dscp), text);
}

static const char *
dev_conf_tos(struct rcd_dev_conf *conf, const char *val)
{
	uint64_t tos;

	if (!rcd_amount_parse(val, UINT8_MAX, &tos))
		return "a traffic class, 0 to 255";
	conf->tos = (uint8_t)tos;
	return NULL;
}

static const char *
dev_conf_sack(struct rcd_dev_conf *conf, const char *val)
{
	int index = rcd_text_find(sack_names, RCD_SACK_COUNT, val);

	if (index < 0)
		return "one of auto, cm, off";
	conf->sack = (enum rcd_sack_use)index;
	return NULL;
}

static const char *
dev_conf_raw(struct rcd_dev_conf *conf, const char *val)
{
	int index = rcd_text_find(raw_names, RCD_RAW_COUNT, val);

	if (index < 0)
		return "one of off, on, sniff";
	conf->raw = (enum rcd_raw_use)index;
	return NULL;
}

static const char *
dev_conf_state(struct rcd_dev_conf *conf, const char *val)
{
	if (strcmp(val, "up") != 0 && strcmp(val, "down") != 0)
		return "one of up, down";
	conf->down = strcmp(val, "down") == 0;
	return NULL;
}

#define WIRE   KIND_WIRE
#define NETDEV KIND_NETDEV
#define PORT   KIND_PORT
#define ALL    KIND_ALL
#define START  false
#define LIVE   true

static const struct {
	const char *name;
	const char *(*take)(struct rcd_dev_conf *conf, const char *val);
	unsigned int kinds;
	bool live;
} link_keys[] = {
#define RCD_LINK_KEY(symbol, name, kinds, time, value, start, what)                                \
	{ #name, dev_conf_##name, kinds, time },
#include "rcd_link_key.def"
#undef RCD_LINK_KEY
};

const char *
rcd_attach_name(enum rcd_attach_type attach)
{
	return attach_names[attach];
}

const char *
rcd_sack_use_name(enum rcd_sack_use use)
{
	return sack_names[use];
}

const char *
rcd_raw_use_name(enum rcd_raw_use use)
{
	return raw_names[use];
}

const char *
rcd_pause_name(enum rcd_pause pause)
{
	return pause_names[pause];
}

const char *
rcd_dev_conf_netdev(const struct rcd_dev_conf *conf)
{
	if (conf->attach == RCD_ATTACH_NETDEV)
		return conf->target;
	return conf->kernel[0] != '\0' ? conf->kernel : NULL;
}

int
rcd_link_key_find(const char *name)
{
	for (int i = 0; i < RCD_LINK_KEY_COUNT; i++)
		if (strcmp(name, link_keys[i].name) == 0)
			return i;
	return -ENOENT;
}

bool
rcd_link_key_live(enum rcd_link_key key)
{
	return link_keys[key].live;
}

/* Whether links of this kind have a key. */
static bool
dev_conf_fits(enum rcd_link_key key, enum rcd_attach_type attach)
{
	return (link_keys[key].kinds & 1u << attach) != 0;
}

int
rcd_dev_conf_set(struct rcd_dev_conf *conf, const char *key, const char *value, char *error,
	size_t error_len)
{
	static const char known[] = ""
#define RCD_LINK_KEY(symbol, name, kinds, time, value, start, what) " " #name
#include "rcd_link_key.def"
#undef RCD_LINK_KEY
		;
	int index = rcd_link_key_find(key);
	const char *what;

	if (index < 0) {
		snprintf(error, error_len, "%.40s: no such key in a device; there are%s",
			rcd_text_printable(key) ? key : "?", known);
		return -ENOENT;
	}
	what = rcd_text_printable(value) ? link_keys[index].take(conf, value)
					 : "no control characters";
	if (what != NULL) {
		snprintf(error, error_len, "%s: %s", key, what);
		return -EINVAL;
	}
	conf->given |= 1u << index;
	return 0;
}

int
rcd_dev_conf_check(
	const struct rcd_dev_conf *conf, enum rcd_link_key *key, char *error, size_t error_len)
{
	static const enum rcd_link_key targets[] = { RCD_LINK_KEY_PEER, RCD_LINK_KEY_NETDEV,
		RCD_LINK_KEY_DEVARGS };
	enum rcd_link_key target = targets[conf->attach];

	for (unsigned int i = 0; i < RCD_LINK_KEY_COUNT; i++) {
		*key = (enum rcd_link_key)i;
		if ((conf->given & 1u << i) == 0 || dev_conf_fits(*key, conf->attach))
			continue;
		if (conf->attach == RCD_ATTACH_NETDEV && i >= RCD_LINK_KEY_ADDRESS)
			snprintf(error, error_len, "%s: a netdev has the kernel's",
				link_keys[i].name);
		else
			snprintf(error, error_len, "%s: a %s has none", link_keys[i].name,
				attach_names[conf->attach]);
		return -EINVAL;
	}
	for (unsigned int i = RCD_LINK_KEY_ADDRESS; i <= RCD_LINK_KEY_GATEWAY6; i++) {
		*key = (enum rcd_link_key)i;
		if ((conf->given & 1u << i) == 0 || conf->kernel[0] == '\0')
			continue;
		snprintf(error, error_len, "%s: with kernel %s, it has the kernel's",
			link_keys[i].name, conf->kernel);
		return -EINVAL;
	}
	if (conf->udp && conf->mode != RCD_NETDEV_UDP) {
		*key = RCD_LINK_KEY_MODE;
		snprintf(error, error_len, "mode: a link of type udp has no other than udp");
		return -EINVAL;
	}
	if (conf->netns[0] != '\0' && conf->mode != RCD_NETDEV_UDP) {
		*key = RCD_LINK_KEY_NETNS;
		snprintf(error, error_len, "netns: a link of type udp alone can have one");
		return -EINVAL;
	}
	if (conf->target[0] != '\0')
		return 0;
	*key = target;
	snprintf(error, error_len, "%s: a %s needs one", link_keys[target].name,
		attach_names[conf->attach]);
	return -EINVAL;
}
