/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The configuration file, read by rte_cfgfile. The library keeps no line numbers, so that of a
 * fault is looked up in the file again.
 */
#include "conf.h"

#include <errno.h>
#include <rte_cfgfile.h>
#include <rte_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fault {
	const char *path;
	int count;
};

/* The line of a section or, with a key, of its entry in it. @return 0 when it is not found */
static int
line_of(const char *path, const char *section, const char *key)
{
	FILE *file = fopen(path, "r");
	char line[512];
	bool inside = false;
	int number = 0, found = 0;

	while (file != NULL && found == 0 && fgets(line, sizeof(line), file) != NULL) {
		char *at = line + strspn(line, " \t");

		number++;
		if (*at == '[') {
			size_t len = strcspn(at + 1, "]\n");

			inside = strlen(section) == len && strncmp(at + 1, section, len) == 0;
			if (inside && key == NULL)
				found = number;
		} else if (inside && key != NULL) {
			size_t len = strcspn(at, " \t=\n");

			if (strlen(key) == len && strncmp(at, key, len) == 0)
				found = number;
		}
	}
	if (file != NULL)
		fclose(file);
	return found;
}

static void
complain(struct fault *fault, const char *section, const char *key, const char *what)
{
	fprintf(stderr, "%s:%d: %s%s%s\n", fault->path, line_of(fault->path, section, key),
		key != NULL ? key : "", key != NULL ? ": " : "", what);
	fault->count++;
}

/* A number with an optional K, M, G or T. */
static bool
parse_number(const char *text, uint64_t most, uint64_t *val)
{
	static const char suffixes[] = "KMGT";
	const char *suffix;
	char *end;

	errno = 0;
	*val = strtoull(text, &end, 0);
	if (end == text || errno != 0 || text[0] == '-')
		return false;
	if (*end != '\0') {
		suffix = strchr(suffixes, *end);
		if (suffix == NULL || end[1] != '\0')
			return false;
		*val <<= 10 * (suffix - suffixes + 1);
	}
	return *val <= most;
}

static bool
take_text(char *dst, size_t size, const char *text)
{
	if (strlen(text) >= size)
		return false;
	snprintf(dst, size, "%s", text);
	return true;
}

/* @return index of the word in the list, or -1 */
static int
find_word(const char *const *words, int count, const char *val)
{
	for (int i = 0; i < count; i++)
		if (strcmp(val, words[i]) == 0)
			return i;
	return -1;
}

static const char *
take_yes(bool *dst, const char *val)
{
	*dst = strcmp(val, "yes") == 0;
	return *dst || strcmp(val, "no") == 0 ? NULL : "one of yes, no";
}

static const char *
take_name(char *dst, size_t size, const char *val)
{
	return take_text(dst, size, val) ? NULL : "too long";
}

static const char *
take_count(uint32_t *dst, const char *val, uint64_t least, uint64_t most, const char *what)
{
	uint64_t number;

	if (!parse_number(val, most, &number) || number < least)
		return what;
	*dst = (uint32_t)number;
	return NULL;
}

/* Keys of [engine], each by a function of its own. They return what is wrong, or NULL. */

static const char *
engine_socket(struct conf *conf, const char *val)
{
	return take_text(conf->engine.socket, sizeof(conf->engine.socket), val)
		? NULL
		: "too long for a socket's name";
}

static const char *
engine_socket_mode(struct conf *conf, const char *val)
{
	char *end;
	unsigned long mode = strtoul(val, &end, 8);

	if (end == val || *end != '\0' || mode > 0777)
		return "permission bits in octal, 0660 say";
	conf->engine.socket_mode = (uint32_t)mode;
	return NULL;
}

static const char *
engine_group(struct conf *conf, const char *val)
{
	return take_name(conf->group, sizeof(conf->group), val);
}

static const char *
engine_user(struct conf *conf, const char *val)
{
	return take_name(conf->user, sizeof(conf->user), val);
}

static const char *
engine_admin_user(struct conf *conf, const char *val)
{
	return take_name(conf->admin_user, sizeof(conf->admin_user), val);
}

static const char *
engine_admin_group(struct conf *conf, const char *val)
{
	return take_name(conf->admin_group, sizeof(conf->admin_group), val);
}

static const char *
engine_seccomp(struct conf *conf, const char *val)
{
	static const char *const names[] = { "on", "kill", "log", "off" };
	int index = find_word(names, 4, val);

	if (index < 0)
		return "one of on, kill, log, off";
	conf->calls = (enum filter_mode)index;
	return NULL;
}

static const char *
engine_core_dumps(struct conf *conf, const char *val)
{
	return take_yes(&conf->core_dumps, val);
}

static const char *
engine_kernel_addresses(struct conf *conf, const char *val)
{
	return take_yes(&conf->engine.kernel_addresses, val);
}

static const char *
engine_idle(struct conf *conf, const char *val)
{
	static const char *const names[] = { "auto", "poll", "yield", "sleep" };
	int index = find_word(names, 4, val);

	if (index < 0)
		return "one of auto, poll, yield, sleep";
	conf->engine.idle = (enum rcd_idle)index;
	return NULL;
}

static const char *
engine_clients(struct conf *conf, const char *val)
{
	return take_count(&conf->engine.clients, val, 1, 4096, "a number from 1 to 4096");
}

static const char *
engine_mbufs(struct conf *conf, const char *val)
{
	return take_count(&conf->engine.mbufs, val, 2047, 1u << 24, "a number from 2047 to 16M");
}

static const char *
quota_key(struct conf *conf, const char *key, const char *val)
{
	bool user = strncmp(key, "uid_", strlen("uid_")) == 0;
	struct rcd_quota *quota = user ? &conf->engine.user_quota : &conf->engine.quota;
	const char *name = user ? key + strlen("uid_") : key;
	uint64_t number;

	for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
		enum rcd_resource resource = (enum rcd_resource)i;

		if (strcmp(name, rcd_resource_name(resource)) != 0)
			continue;
		/* Of all users together there may be more than of one session. */
		if (!parse_number(val, user ? INT64_MAX : rcd_resource_most(resource), &number) ||
			number == 0)
			return "out of range";
		/* A queue of copies takes 4 MiB and some. */
		if (resource == RCD_RESOURCE_QUEUE_BYTES && number < 8u << 20)
			return "8M at least";
		*rcd_quota_at(quota, resource) = number;
		return NULL;
	}
	return "no such key in [quota]";
}

static const char *
take_addresses(struct rcd_dev_conf *dev, const char *val, uint16_t vlan_id)
{
	char copy[512];
	char *save = NULL;

	if (!take_text(copy, sizeof(copy), val))
		return "too long";
	for (char *word = strtok_r(copy, ", ", &save); word != NULL;
		word = strtok_r(NULL, ", ", &save)) {
		struct rcd_addr addr = { .vlan_id = vlan_id };
		char *at = strchr(word, '@');

		/* ADDRESS/LENGTH@VLAN */
		if (at != NULL) {
			uint64_t vlan;

			*at = '\0';
			if (!parse_number(at + 1, 4094, &vlan) || vlan == 0)
				return "VLAN identifiers are 1 to 4094";
			addr.vlan_id = (uint16_t)vlan;
		}
		if (rcd_addr_parse(word, &addr) != 0)
			return "a list of ADDRESS/LENGTH[@VLAN]";
		if (dev->addr_count == RCD_DEV_ADDRS_MAX)
			return "too many addresses";
		dev->addrs[dev->addr_count++] = addr;
	}
	return NULL;
}

/* Keys of [device NAME], likewise. */

static const char *
device_type(struct rcd_dev_conf *dev, const char *val)
{
	static const char *const names[] = { "wire", "netdev", "port" };
	int index = find_word(names, 3, val);

	if (index < 0)
		return "one of wire, netdev, port";
	dev->attach = (enum rcd_attach)index;
	return NULL;
}

static const char *
device_target(struct rcd_dev_conf *dev, const char *val)
{
	return take_name(dev->target, sizeof(dev->target), val);
}

#define device_peer    device_target
#define device_netdev  device_target
#define device_devargs device_target

static const char *
device_mode(struct rcd_dev_conf *dev, const char *val)
{
	static const char *const names[] = { "auto", "xdp", "packet" };
	int index = find_word(names, 3, val);

	if (index < 0)
		return "one of auto, xdp, packet";
	dev->mode = (enum rcd_netdev_mode)index;
	return NULL;
}

static const char *
device_address(struct rcd_dev_conf *dev, const char *val)
{
	return take_addresses(dev, val, 0);
}

static const char *
device_gateway(struct rcd_dev_conf *dev, const char *val)
{
	struct rcd_addr addr;

	if (rcd_addr_parse(val, &addr) != 0)
		return "an address";
	if (rcd_gid_is_ipv4(&addr.gid))
		dev->gateway4 = addr.gid;
	else
		dev->gateway6 = addr.gid;
	return NULL;
}

static const char *
device_mtu(struct rcd_dev_conf *dev, const char *val)
{
	return take_count(&dev->mtu, val, 576, 65535, "bytes, 576 to 65535");
}

static const char *
device_impair(struct rcd_dev_conf *dev, const char *val)
{
	return take_name(dev->impair, sizeof(dev->impair), val);
}

static const struct {
	const char *key;
	const char *(*take)(struct conf *conf, const char *val);
} engine_keys[] = {
#define CONF_ENGINE(key, value, start, what) { #key, engine_##key },
#define CONF_DEVICE(key, value, start, what)
#include "conf_key.def"
};

static const struct {
	const char *key;
	const char *(*take)(struct rcd_dev_conf *dev, const char *val);
} device_keys[] = {
#define CONF_ENGINE(key, value, start, what)
#define CONF_DEVICE(key, value, start, what) { #key, device_##key },
#include "conf_key.def"
};

/* @return what is wrong, or NULL */
static const char *
engine_key(struct conf *conf, const char *key, const char *val)
{
	for (size_t i = 0; i < RTE_DIM(engine_keys); i++)
		if (strcmp(key, engine_keys[i].key) == 0)
			return engine_keys[i].take(conf, val);
	return "no such key in [engine]; there are"
#define CONF_ENGINE(key, value, start, what) " " #key
#define CONF_DEVICE(key, value, start, what)
#include "conf_key.def"
		;
}

/* @return what is wrong, or NULL */
static const char *
device_key(struct rcd_dev_conf *dev, const char *key, const char *val)
{
	for (size_t i = 0; i < RTE_DIM(device_keys); i++)
		if (strcmp(key, device_keys[i].key) == 0)
			return device_keys[i].take(dev, val);
	return "no such key in a device; there are"
#define CONF_ENGINE(key, value, start, what)
#define CONF_DEVICE(key, value, start, what) " " #key
#include "conf_key.def"
		;
}

static void
load_device(struct conf *conf, struct rte_cfgfile *file, const char *section, struct fault *fault)
{
	struct rcd_dev_conf *dev = &conf->devs[conf->dev_count];
	struct rte_cfgfile_entry entries[32];
	int count = rte_cfgfile_section_entries(file, section, entries, 32);

	if (conf->dev_count == CONF_DEVS_MAX) {
		complain(fault, section, NULL, "too many devices");
		return;
	}
	memset(dev, 0, sizeof(*dev));
	if (!take_text(dev->name, sizeof(dev->name), section + strlen("device "))) {
		complain(fault, section, NULL, "too long a name");
		return;
	}
	for (int i = 0; i < count; i++) {
		const char *what = device_key(dev, entries[i].name, entries[i].value);

		if (what != NULL)
			complain(fault, section, entries[i].name, what);
	}
	if (dev->target[0] == '\0')
		complain(fault, section, NULL, "needs a peer, a netdev or devargs");
	if (dev->attach == RCD_ATTACH_NETDEV && dev->addr_count > 0)
		complain(fault, section, "address", "a netdev's addresses are the kernel's");
	conf->dev_count++;
}

static void
load_section(struct conf *conf, struct rte_cfgfile *file, const char *section, struct fault *fault)
{
	struct rte_cfgfile_entry entries[32];
	bool engine = strcmp(section, "engine") == 0;
	int count;

	if (strncmp(section, "device ", strlen("device ")) == 0) {
		load_device(conf, file, section, fault);
		return;
	}
	if (!engine && strcmp(section, "quota") != 0) {
		complain(fault, section, NULL,
			"no such section; there are [engine], [quota] and [device NAME]");
		return;
	}
	count = rte_cfgfile_section_entries(file, section, entries, 32);
	for (int i = 0; i < count; i++) {
		const char *what = engine ? engine_key(conf, entries[i].name, entries[i].value)
					  : quota_key(conf, entries[i].name, entries[i].value);

		if (what != NULL)
			complain(fault, section, entries[i].name, what);
	}
}

/* What each device says of another. */
static void
check_peers(const struct conf *conf, struct fault *fault)
{
	for (uint32_t i = 0; i < conf->dev_count; i++) {
		const struct rcd_dev_conf *dev = &conf->devs[i];
		char section[RCD_NAME_LEN + 16];
		bool found = false;

		snprintf(section, sizeof(section), "device %s", dev->name);
		for (uint32_t k = 0; k < conf->dev_count; k++) {
			const struct rcd_dev_conf *peer = &conf->devs[k];

			if (k < i && strcmp(peer->name, dev->name) == 0)
				complain(fault, section, NULL, "a device of this name is above");
			found |= strcmp(peer->name, dev->target) == 0 && k != i &&
				peer->attach == RCD_ATTACH_WIRE &&
				strcmp(peer->target, dev->name) == 0;
		}
		if (dev->attach == RCD_ATTACH_WIRE && !found)
			complain(fault, section, "peer",
				"no wire device of this name names this one as its peer");
	}
}

void
conf_init(struct conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	rcd_engine_conf_init(&conf->engine);
}

void
conf_embedded_wire(struct conf *conf)
{
	static const char *const names[] = { "roce0", "roce1" };
	static const char *const addrs[] = { "10.77.0.1/24", "10.77.0.2/24" };
	static const char *const addrs6[] = { "fd77::1/64", "fd77::2/64" };

	for (int i = 0; i < 2; i++) {
		struct rcd_dev_conf *dev = &conf->devs[conf->dev_count++];

		dev->attach = RCD_ATTACH_WIRE;
		snprintf(dev->name, sizeof(dev->name), "%s", names[i]);
		snprintf(dev->target, sizeof(dev->target), "%s", names[1 - i]);
		rcd_addr_parse(addrs[i], &dev->addrs[0]);
		rcd_addr_parse(addrs6[i], &dev->addrs[1]);
		dev->addr_count = 2;
	}
}

const char *
conf_option(struct conf *conf, const char *option)
{
	const char *equals = strchr(option, '=');
	char key[32];

	if (equals == NULL || (size_t)(equals - option) >= sizeof(key))
		return "not of the form KEY=VALUE";
	snprintf(key, sizeof(key), "%.*s", (int)(equals - option), option);
	return engine_key(conf, key, equals + 1);
}

int
conf_load(struct conf *conf, const char *path)
{
	struct fault fault = { .path = path };
	struct rte_cfgfile_parameters params = { .comment_character = '#' };
	struct rte_cfgfile *file;
	FILE *probe = fopen(path, "r");
	char **names;
	int count;

	if (probe == NULL) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	fclose(probe);
	file = rte_cfgfile_load_with_params(path, CFG_FLAG_EMPTY_VALUES, &params);
	if (file == NULL) {
		fprintf(stderr, "%s: not of the form [SECTION] and KEY = VALUE\n", path);
		return 1;
	}
	count = rte_cfgfile_num_sections(file, NULL, 0);
	names = calloc((size_t)count + 1, sizeof(names[0]));
	for (int i = 0; names != NULL && i < count; i++)
		names[i] = malloc(CFG_NAME_LEN);
	if (names != NULL && count > 0)
		rte_cfgfile_sections(file, names, count);
	for (int i = 0; names != NULL && i < count; i++) {
		load_section(conf, file, names[i], &fault);
		free(names[i]);
	}
	free(names);
	rte_cfgfile_close(file);
	check_peers(conf, &fault);
	return fault.count;
}
