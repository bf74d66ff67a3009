/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The configuration file: what its sections and keys mean. Its form is conf_file.c's, keys of a
 * device are lib/port's (rcd_dev_conf.c).
 */
#include "conf.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf_file.h"
#include "rcd_amount.h"
#include "rcd_bytes.h"
#include "rcd_limits.h"
#include "rcd_text.h"

#define CONF_TEXT_OF(number) #number
#define CONF_TEXT(number)    CONF_TEXT_OF(number)

/* Where the lines that are read belong. */
enum conf_place {
	CONF_NOWHERE, /* a section that was found wrong */
	CONF_ENGINE_KEYS,
	CONF_QUOTA_KEYS,
	CONF_DEVICE_KEYS,
};

struct conf_load {
	struct conf *conf;
	const char *path;
	FILE *out;
	int faults;
	enum conf_place place;
	struct rcd_dev_conf *dev; /* of CONF_DEVICE_KEYS */
	const char *links_path;   /* where netns_links was */
	int links_line;
	struct {
		const char *path;
		int section;
		int keys[RCD_LINK_KEY_COUNT]; /* 0: not there */
	} lines[CONF_DEVS_MAX];
};

static const char *
conf_take_yes(bool *dst, const char *val)
{
	*dst = strcmp(val, "yes") == 0;
	return *dst || strcmp(val, "no") == 0 ? NULL : "one of yes, no";
}

static const char *
conf_take_name(char *dst, size_t size, const char *val)
{
	return rcd_text_take(dst, size, val) ? NULL : "too long";
}

static const char *
conf_take_count(uint32_t *dst, const char *val, uint64_t least, uint64_t most, const char *what)
{
	uint64_t number;

	if (!rcd_amount_parse(val, most, &number) || number < least)
		return what;
	*dst = (uint32_t)number;
	return NULL;
}

/* Keys of [engine], each by a function of its own. They return what is wrong, or NULL. */

static const char *
conf_engine_socket(struct conf *conf, const char *val)
{
	return rcd_text_take(conf->engine.socket, sizeof(conf->engine.socket), val)
		? NULL
		: "too long for a socket's name";
}

static const char *
conf_engine_socket_mode(struct conf *conf, const char *val)
{
	char *end;
	unsigned long mode = strtoul(val, &end, 8);

	if (end == val || *end != '\0' || mode > 0777)
		return "permission bits in octal, 0660 say";
	conf->engine.socket_mode = (uint32_t)mode;
	return NULL;
}

static const char *
conf_engine_group(struct conf *conf, const char *val)
{
	return conf_take_name(conf->group, sizeof(conf->group), val);
}

static const char *
conf_engine_user(struct conf *conf, const char *val)
{
	return conf_take_name(conf->user, sizeof(conf->user), val);
}

static const char *
conf_engine_admin_user(struct conf *conf, const char *val)
{
	return conf_take_name(conf->admin_user, sizeof(conf->admin_user), val);
}

static const char *
conf_engine_admin_group(struct conf *conf, const char *val)
{
	return conf_take_name(conf->admin_group, sizeof(conf->admin_group), val);
}

static const char *
conf_engine_seccomp(struct conf *conf, const char *val)
{
	static const char *const names[] = { "on", "kill", "log", "off" };
	int index = rcd_text_find(names, 4, val);

	if (index < 0)
		return "one of on, kill, log, off";
	conf->calls = (enum filter_mode)index;
	return NULL;
}

static const char *
conf_engine_core_dumps(struct conf *conf, const char *val)
{
	return conf_take_yes(&conf->core_dumps, val);
}

static const char *
conf_engine_kernel_addresses(struct conf *conf, const char *val)
{
	return conf_take_yes(&conf->engine.kernel_addresses, val);
}

static const char *
conf_engine_idle(struct conf *conf, const char *val)
{
	static const char *const names[] = { "auto", "poll", "yield", "sleep" };
	int index = rcd_text_find(names, 4, val);

	if (index < 0)
		return "one of auto, poll, yield, sleep";
	conf->engine.idle = (enum rcd_idle)index;
	return NULL;
}

static const char *
conf_engine_netns(struct conf *conf, const char *val)
{
	static const char *const names[] = { "shared", "exclusive" };
	int index = rcd_text_find(names, 2, val);

	if (index < 0)
		return "one of shared, exclusive";
	conf->engine.netns_exclusive = index == 1;
	return NULL;
}

static const char *
conf_engine_netns_links(struct conf *conf, const char *val)
{
	return conf_take_count(&conf->engine.netns_links, val, 0, RCD_GUEST_LINKS,
		"a number from 0 to " CONF_TEXT(RCD_GUEST_LINKS));
}

static const char *
conf_engine_clients(struct conf *conf, const char *val)
{
	return conf_take_count(&conf->engine.clients, val, 1, RCD_CLIENTS_MAX,
		"a number from 1 to " CONF_TEXT(RCD_CLIENTS_MAX));
}

static const char *
conf_engine_mbufs(struct conf *conf, const char *val)
{
	return conf_take_count(
		&conf->engine.mbufs, val, 2047, 1u << 24, "a number from 2047 to 16M");
}

static const char *
conf_quota_key(struct conf *conf, const char *key, const char *val)
{
	bool user = strncmp(key, "uid_", strlen("uid_")) == 0;
	struct rcd_quota *quota = user ? &conf->engine.user_quota : &conf->engine.quota;
	const char *name = user ? key + strlen("uid_") : key;
	uint64_t number;

	for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
		enum rcd_resource resource = (enum rcd_resource)i;

		if (strcmp(name, rcd_resource_name(resource)) != 0)
			continue;
		/* Of all users together there may be more than of one client. */
		if (!rcd_amount_parse(
			    val, user ? INT64_MAX : rcd_resource_most(resource), &number) ||
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

static const struct {
	const char *key;
	const char *(*take)(struct conf *conf, const char *val);
} engine_keys[] = {
#define CONF_ENGINE(key, value, start, what) { #key, conf_engine_##key },
#include "conf_key.def"
};

/* @return what is wrong, or NULL */
static const char *
conf_engine_key(struct conf *conf, const char *key, const char *val)
{
	for (size_t i = 0; i < RCD_ARRAY_COUNT(engine_keys); i++)
		if (strcmp(key, engine_keys[i].key) == 0)
			return engine_keys[i].take(conf, val);
	return "no such key in [engine]; there are"
#define CONF_ENGINE(key, value, start, what) " " #key
#include "conf_key.def"
		;
}

static void
conf_complain(struct conf_load *load, int line, const char *key, const char *what)
{
	fprintf(load->out, "%s:%d: %s%s%s\n", load->path, line, key != NULL ? key : "",
		key != NULL ? ": " : "", what);
	load->faults++;
}

static void
conf_device(struct conf_load *load, int line, const char *name)
{
	struct conf *conf = load->conf;

	load->place = CONF_NOWHERE;
	name += strspn(name, " \t");
	if (conf->dev_count == CONF_DEVS_MAX) {
		conf_complain(load, line, NULL, "too many devices");
		return;
	}
	load->dev = &conf->devs[conf->dev_count];
	memset(load->dev, 0, sizeof(*load->dev));
	if (!rcd_text_take(load->dev->name, sizeof(load->dev->name), name)) {
		conf_complain(load, line, NULL, "too long a name");
		return;
	}
	load->place = CONF_DEVICE_KEYS;
	memset(&load->lines[conf->dev_count], 0, sizeof(load->lines[0]));
	load->lines[conf->dev_count].path = load->path;
	load->lines[conf->dev_count++].section = line;
}

static void
conf_section(void *arg, int line, const char *name)
{
	struct conf_load *load = arg;

	load->place = CONF_NOWHERE;
	if (name == NULL)
		conf_complain(load, line, NULL, "not of the form [SECTION]");
	else if (strcmp(name, "engine") == 0)
		load->place = CONF_ENGINE_KEYS;
	else if (strcmp(name, "quota") == 0)
		load->place = CONF_QUOTA_KEYS;
	else if (strncmp(name, "device ", strlen("device ")) == 0)
		conf_device(load, line, name + strlen("device "));
	else
		conf_complain(load, line, NULL,
			"no such section; there are [engine], [quota] and [device NAME]");
}

static void
conf_entry(void *arg, int line, const char *key, const char *val)
{
	struct conf_load *load = arg;
	char error[512];
	int index;

	switch (load->place) {
	case CONF_NOWHERE:
		return;
	case CONF_ENGINE_KEYS:
	case CONF_QUOTA_KEYS: {
		const char *what = load->place == CONF_ENGINE_KEYS
			? conf_engine_key(load->conf, key, val)
			: conf_quota_key(load->conf, key, val);

		if (what != NULL)
			conf_complain(load, line, key, what);
		else if (strcmp(key, "netns_links") == 0) {
			load->links_path = load->path;
			load->links_line = line;
		}
		return;
	}
	case CONF_DEVICE_KEYS:
		index = rcd_link_key_find(key);
		if (index >= 0)
			load->lines[load->dev - load->conf->devs].keys[index] = line;
		if (rcd_dev_conf_set(load->dev, key, val, error, sizeof(error)) != 0)
			conf_complain(load, line, NULL, error);
		return;
	}
}

static void
conf_fault(void *arg, int line, const char *what)
{
	conf_complain(arg, line, NULL, what);
}

/* Whether the device that it names as its peer names it. */
static bool
conf_has_peer(const struct conf *conf, const struct rcd_dev_conf *dev)
{
	for (uint32_t i = 0; i < conf->dev_count; i++) {
		const struct rcd_dev_conf *peer = &conf->devs[i];

		if (peer != dev && peer->attach == RCD_ATTACH_WIRE &&
			strcmp(peer->name, dev->target) == 0 &&
			strcmp(peer->target, dev->name) == 0)
			return true;
	}
	return false;
}

/* What can be said of a device when all are known. */
static void
conf_check_device(struct conf_load *load, uint32_t index)
{
	const struct conf *conf = load->conf;
	const struct rcd_dev_conf *dev = &conf->devs[index];
	int section = load->lines[index].section;
	enum rcd_link_key key;
	char error[512];

	load->path = load->lines[index].path;
	for (uint32_t i = 0; i < index; i++)
		if (strcmp(conf->devs[i].name, dev->name) == 0) {
			conf_complain(load, section, NULL, "a device of this name is above");
			break;
		}
	if (rcd_dev_conf_check(dev, &key, error, sizeof(error)) != 0) {
		int line = load->lines[index].keys[key];

		conf_complain(load, line != 0 ? line : section, NULL, error);
	} else if (dev->attach == RCD_ATTACH_WIRE && !conf_has_peer(conf, dev)) {
		conf_complain(load, load->lines[index].keys[RCD_LINK_KEY_PEER], "peer",
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
	return conf_engine_key(conf, key, equals + 1);
}

static void
conf_read(struct conf_load *load, const char *path)
{
	static const struct conf_file_ops ops = { conf_section, conf_entry, conf_fault };
	int err;

	load->path = path;
	load->place = CONF_NOWHERE;
	err = conf_file_read(path, &ops, load);
	if (err == 0)
		return;
	fprintf(load->out, "%s: %s\n", path, strerror(-err));
	load->faults++;
}

/* What is named NAME.conf, and not hidden. */
static int
conf_is_part(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return entry->d_name[0] != '.' && dot != NULL && strcmp(dot, ".conf") == 0;
}

/* @return paths of the files in PATH.d, in the order of their names, and how many */
static char **
conf_parts(const char *path, int *count, int *err)
{
	char *folder, **paths = NULL;
	struct dirent **entries = NULL;

	*count = 0;
	*err = -ENOMEM;
	if (asprintf(&folder, "%s.d", path) < 0)
		return NULL;
	*count = scandir(folder, &entries, conf_is_part, alphasort);
	*err = *count >= 0 || errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	if (*count < 0)
		*count = 0;
	if (*count > 0)
		paths = calloc((size_t)*count, sizeof(paths[0]));
	for (int i = 0; i < *count; i++) {
		if (paths != NULL && asprintf(&paths[i], "%s/%s", folder, entries[i]->d_name) < 0)
			paths[i] = NULL;
		if (paths == NULL || paths[i] == NULL)
			*err = -ENOMEM;
		free(entries[i]);
	}
	free(entries);
	free(folder);
	return paths;
}

int
conf_load(struct conf *conf, const char *path, FILE *out)
{
	struct conf_load load = { .conf = conf, .out = out };
	char **parts;
	int count, err;

	conf->dev_count = 0;
	conf_read(&load, path);
	parts = conf_parts(path, &count, &err);
	if (err != 0) {
		fprintf(out, "%s.d: %s\n", path, strerror(-err));
		load.faults++;
	}
	for (int i = 0; i < count && err == 0; i++)
		conf_read(&load, parts[i]);
	for (uint32_t i = 0; i < conf->dev_count; i++)
		conf_check_device(&load, i);
	if (conf->engine.netns_links > 0 && !conf->engine.netns_exclusive) {
		load.path = load.links_path != NULL ? load.links_path : path;
		conf_complain(&load, load.links_line, "netns_links", "needs netns = exclusive");
	}
	for (int i = 0; i < count && parts != NULL; i++)
		free(parts[i]);
	free(parts);
	return load.faults;
}
