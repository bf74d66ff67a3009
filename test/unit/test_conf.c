/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a configuration file says what rocade.conf(5) has it say, each fault is told with its line,
 * and keys of links are taken, refused and checked alike wherever they come from.
 * Method: tables of files with what must come of them, of keys with values at both sides of their
 * limits, and random bytes, which must end and leave nothing that is out of bounds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf.h"
#include "rcd_bytes.h"
#include "rcd_tap.h"

static struct conf conf;

/* What is told of a file that holds these bytes; to be freed. */
static char *
load(const void *bytes, size_t len, int *faults)
{
	int fd = memfd_create("conf", 0);
	char path[40];
	char *told = NULL;
	size_t told_len;
	FILE *out = open_memstream(&told, &told_len);

	CU_ASSERT_FATAL(fd >= 0 && out != NULL);
	CU_ASSERT_FATAL(write(fd, bytes, len) == (ssize_t)len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	conf_init(&conf);
	*faults = conf_load(&conf, path, out);
	fclose(out);
	close(fd);
	return told;
}

/* The lines that faults were told of, as " 1 4". */
static void
lines_of(const char *told, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (const char *at = told; *at != '\0'; at = strchr(at, '\n') + 1) {
		const char *colon = strchr(at, ':');

		CU_ASSERT_FATAL(colon != NULL && strchr(at, '\n') != NULL);
		used += (size_t)snprintf(
			text + used, size - used, " %ld", strtol(colon + 1, NULL, 10));
	}
}

static void
good_files(void)
{
	static const char text[] =
		"# a comment\n\n  [engine]  # another\r\nnetns_links = 16\nnetns = exclusive\n"
		"socket=/run/x # and one\nsocket_mode = 0600\nuser = nobody\nidle = sleep\n"
		"clients = 2K\nmbufs = 16M\nkernel_addresses = yes\nseccomp = log\n"
		"[device a]\npeer = b\naddress = 10.0.0.1/24, fd00::1/64@7\n"
		"address = 10.0.1.1@9\ngateway = 10.0.0.254\ngateway = fd00::fe\n"
		"mtu = 1500\nimpair = drop=1%,seed=7\n"
		"[device b]\ntype = wire\npeer = a\nstate = down\n"
		"[device n]\nnetdev = eth0\nmode = packet\ntype = netdev\nmtu = 4K\n"
		"[device p]\ntype = port\ndevargs = net_x,a=\\#1\ngateway6 = fe80::1\n"
		"[quota]\nqps = 17\nuid_qps = 18\n[engine]\nidle = poll";
	int faults;
	char *told = load(text, strlen(text), &faults);
	const struct rcd_dev_conf *dev = conf.devs;

	CU_ASSERT_EQUAL(faults, 0);
	CU_ASSERT_STRING_EQUAL(told, "");
	free(told);
	CU_ASSERT_STRING_EQUAL(conf.engine.socket, "/run/x");
	CU_ASSERT_EQUAL(conf.engine.socket_mode, 0600);
	CU_ASSERT_STRING_EQUAL(conf.user, "nobody");
	CU_ASSERT_EQUAL(conf.engine.idle, RCD_IDLE_POLL);
	CU_ASSERT_EQUAL(conf.engine.clients, 2048);
	CU_ASSERT_EQUAL(conf.engine.mbufs, 16u << 20);
	CU_ASSERT_TRUE(conf.engine.kernel_addresses);
	CU_ASSERT_EQUAL(conf.calls, FILTER_LOG);
	CU_ASSERT_EQUAL(conf.engine.quota.qps, 17);
	CU_ASSERT_EQUAL(conf.engine.user_quota.qps, 18);
	CU_ASSERT_EQUAL_FATAL(conf.dev_count, 4);
	CU_ASSERT_TRUE(dev[0].attach == RCD_ATTACH_WIRE && dev[0].addr_count == 3);
	CU_ASSERT_TRUE(dev[0].addrs[1].vlan_id == 7 && dev[0].addrs[1].prefix_len == 64);
	CU_ASSERT_TRUE(dev[0].addrs[2].vlan_id == 9 && dev[0].addrs[2].prefix_len == 32);
	CU_ASSERT_TRUE(dev[0].gateway4.raw[15] == 254 && dev[0].gateway6.raw[15] == 0xfe);
	CU_ASSERT_EQUAL(dev[0].mtu, 1500);
	CU_ASSERT_STRING_EQUAL(dev[0].impair, "drop=1%,seed=7");
	CU_ASSERT_TRUE(dev[1].down && !dev[0].down);
	CU_ASSERT_TRUE(dev[2].attach == RCD_ATTACH_NETDEV && dev[2].mode == RCD_NETDEV_PACKET);
	CU_ASSERT_TRUE(strcmp(dev[2].target, "eth0") == 0 && dev[2].mtu == 4096);
	CU_ASSERT_STRING_EQUAL(dev[3].target, "net_x,a=#1");
}

static const struct {
	const char *text;
	const char *lines; /* that faults are told of */
	const char *word;  /* that is in what is told */
} bad_files[] = {
	{ "[engine]\nidle = lazy\n", " 2", "idle: one of auto, poll, yield, sleep" },
	{ "[engine]\nsocket_mode = 0999\n", " 2", "octal" },
	{ "[engine]\nclients = 0\nclients = 4097\n", " 2 3", "1 to 4096" },
	{ "[engine]\nmbufs = 17179869184G\n", " 2", "mbufs: a number" },
	{ "[engine]\nmbufs = -1\n", " 2", "mbufs" },
	{ "[engine]\nnetns_links = 16\nnetns_links = 17\n", " 3 2", "needs netns = exclusive" },
	{ "[engine]\ncow = 1\n", " 2", "cow: no such key in [engine]; there are socket" },
	{ "[quota]\ncow = 1\nqps = 0\nqueue_bytes = 1M\n", " 2 3 4", "8M at least" },
	{ "idle = poll\n", " 1", "before the first section" },
	{ "[engine]\nidle\n", " 2", "KEY = VALUE" },
	{ "[engine]\n= poll\n", " 2", "KEY = VALUE" },
	{ "[engine\nidle = lazy\n", " 1", "not of the form [SECTION]" },
	{ "[]\n[device ]\n[cow]\nx = 1\n", " 1 2 3", "no such section" },
	{ "[device a]\ncow = 1\n", " 2 1", "cow: no such key in a device; there are type peer" },
	{ "[device a]\n\npeer = b\n", " 3", "peer: no wire device of this name" },
	{ "[device a]\npeer = a\n", " 2", "peer: no wire" },
	{ "[device a]\npeer = b\n[device b]\npeer = c\n", " 2 4", "peer: no wire" },
	{ "[device a]\npeer = b\n[device b]\npeer = a\n[device a]\npeer = b\n", " 5",
		"a device of this name is above" },
	{ "[device a]\n\ntype = netdev\n", " 1", "netdev: a netdev needs one" },
	{ "[device a]\ntype = port\n[device b]\ntype = port\n", " 1 3",
		"devargs: a port needs one" },
	{ "[device a]\ntype = netdev\naddress = 10.0.0.1\nnetdev = x\n", " 3",
		"address: a netdev has the kernel's" },
	{ "[device a]\ntype = netdev\nnetdev = x\ngateway4 = 10.0.0.1\n", " 4",
		"gateway4: a netdev has the kernel's" },
	{ "[device a]\ntype = udp\n", " 1", "netdev: a netdev needs one" },
	{ "[device a]\ntype = udp\nnetdev = x\nnetns = blue\n", "", "" },
	{ "[device a]\ntype = udp\nmode = auto\nnetdev = x\n", " 3",
		"mode: a link of type udp has no other than udp" },
	{ "[device a]\nmode = xdp\nnetdev = x\ntype = udp\n", " 2",
		"mode: a link of type udp has no other than udp" },
	{ "[device a]\ntype = udp\nnetdev = x\naddress = 10.0.0.1/8\n", " 4",
		"address: a netdev has the kernel's" },
	{ "[device a]\nmode = xdp\npeer = b\n[device b]\npeer = a\n", " 2",
		"mode: a wire has none" },
	{ "[device a]\ntype = port\ndevargs = x\npeer = y\n", " 4", "peer: a port has none" },
	{ "[device a]\ntype = port\nkernel = k0\ndevargs = x\ngateway = 10.0.0.1\n", " 5",
		"gateway: with kernel k0, it has the kernel's" },
	{ "[device a]\ntype = port\naddress = 10.0.0.1/8\ndevargs = x\nkernel = k0\n", " 3",
		"address: with kernel k0, it has the kernel's" },
	{ "[device a]\ntype = cow\nmode = cow\nmtu = 12\naddress = 10.0.0.300\n", " 2 3 4 5 1",
		"type: one of wire, netdev, udp, port" },
	{ "[engine]\nidle = \x01\n", " 2", "control" },
	{ "[engine]\n\x7f = 1\n", " 2", "control" },
};

static void
faults_have_lines(void)
{
	for (size_t i = 0; i < RCD_ARRAY_COUNT(bad_files); i++) {
		char lines[100];
		int faults, spaces = 0;
		char *told = load(bad_files[i].text, strlen(bad_files[i].text), &faults);

		lines_of(told, lines, sizeof(lines));
		for (const char *at = lines; *at != '\0'; at++)
			spaces += *at == ' ';
		CU_ASSERT_EQUAL(faults, spaces);
		CU_ASSERT_STRING_EQUAL(lines, bad_files[i].lines);
		if (strcmp(lines, bad_files[i].lines) != 0 ||
			strstr(told, bad_files[i].word) == NULL)
			printf("# %s# tells %s", bad_files[i].text, told);
		CU_ASSERT_PTR_NOT_NULL(strstr(told, bad_files[i].word));
		free(told);
	}
}

static void
write_part(const char *folder, const char *name, const char *text)
{
	char path[100];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	CU_ASSERT_FATAL(file != NULL);
	fputs(text, file);
	fclose(file);
}

/* Behind a file come those of its folder, each fault with the file that has it. */
static void
files_in_a_folder(void)
{
	static const char *const names[] = { "a.conf", "b.conf", ".c.conf", "d.conf~" };
	char folder[] = "/tmp/rcdconfXXXXXX";
	char path[60], parts[80];
	char *told = NULL;
	size_t len;
	FILE *out = open_memstream(&told, &len);

	CU_ASSERT_FATAL(mkdtemp(folder) != NULL && out != NULL);
	snprintf(path, sizeof(path), "%s/e.conf", folder);
	snprintf(parts, sizeof(parts), "%s.d", path);
	write_part(folder, "e.conf", "[engine]\nclients = 5\nmbufs = 4095\n");
	conf_init(&conf);
	CU_ASSERT_EQUAL(conf_load(&conf, path, out), 0);
	CU_ASSERT_FATAL(mkdir(parts, 0700) == 0);
	write_part(parts, "b.conf", "[engine]\nclients = 7\n[device n]\ntype = netdev\n");
	write_part(parts, "a.conf",
		"[engine]\nclients = 6\n[device m]\ntype = netdev\n"
		"netdev = lo\n");
	write_part(parts, ".c.conf", "[engine]\nclients = 8\n");
	write_part(parts, "d.conf~", "[engine]\nclients = 9\n");
	conf_init(&conf);
	CU_ASSERT_EQUAL(conf_load(&conf, path, out), 1);
	CU_ASSERT_EQUAL(conf.engine.clients, 7);
	CU_ASSERT_EQUAL(conf.engine.mbufs, 4095);
	CU_ASSERT_EQUAL(conf.dev_count, 2);
	CU_ASSERT_STRING_EQUAL(conf.devs[0].name, "m");
	/* A part begins outside of all sections. */
	write_part(parts, "b.conf", "clients = 7\n");
	CU_ASSERT_EQUAL(conf_load(&conf, path, out), 1);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(told, "/e.conf.d/b.conf:3: "));
	CU_ASSERT_PTR_NOT_NULL(strstr(told, "/e.conf.d/b.conf:1: "));
	free(told);
	for (size_t i = 0; i < RCD_ARRAY_COUNT(names); i++) {
		char name[200];

		snprintf(name, sizeof(name), "%s/%s", parts, names[i]);
		unlink(name);
	}
	CU_ASSERT_EQUAL(rmdir(parts), 0);
	CU_ASSERT_EQUAL(unlink(path), 0);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static void
no_file(void)
{
	char *told = NULL;
	size_t len;
	FILE *out = open_memstream(&told, &len);

	CU_ASSERT_EQUAL(conf_load(&conf, "/nowhere/at/all", out), 1);
	CU_ASSERT_TRUE(conf_load(&conf, "/proc/self", out) > 0);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(told, "/nowhere/at/all: No such file"));
	free(told);
}

/* Each limit of a file, at it and beyond. */
static void
limits_of_files(void)
{
	char text[CONF_DEVS_MAX * 100];
	char name[RCD_NAME_LEN + 1];
	size_t len = 0;
	int faults;

	for (int i = 0; i < CONF_DEVS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"[device d%d]\ntype = port\ndevargs = x\n", i);
	free(load(text, len, &faults));
	CU_ASSERT_EQUAL(faults, 0);
	CU_ASSERT_EQUAL(conf.dev_count, CONF_DEVS_MAX);
	len += (size_t)snprintf(text + len, sizeof(text) - len, "[device more]\nmtu = 1\n");
	free(load(text, len, &faults));
	CU_ASSERT_EQUAL(faults, 1);

	memset(name, 'n', sizeof(name));
	len = (size_t)snprintf(text, sizeof(text), "[device %.*s]\ntype = port\ndevargs = x\n",
		RCD_NAME_LEN - 1, name);
	free(load(text, len, &faults));
	CU_ASSERT_EQUAL(faults, 0);
	CU_ASSERT_EQUAL(strlen(conf.devs[0].name), RCD_NAME_LEN - 1);
	len = (size_t)snprintf(text, sizeof(text), "[device %.*s]\ntype = port\ndevargs = x\n",
		RCD_NAME_LEN, name);
	free(load(text, len, &faults));
	CU_ASSERT_EQUAL(faults, 1);

	/* A line of 1024 bytes is read, its comment included; a longer one is not cut. */
	for (int more = 0; more < 2; more++) {
		len = (size_t)snprintf(text, sizeof(text), "[engine]\n");
		memset(text + len, '#', 1024);
		memcpy(text + len, "idle = poll ", 12);
		len += 1023 + (size_t)more;
		text[len++] = '\n';
		free(load(text, len, &faults));
		CU_ASSERT_EQUAL(faults, more);
	}
}

static void
hostile_bytes(void)
{
	static const char *const words[] = { "[engine]\n", "[device a]\n", "[quota]\n", "peer = a",
		"=", "#", "\\", "[", "]", "\n", "address = 1.2.3.4/24@5,", "\0", "mtu = 9", "K",
		" ", "\xff" };
	unsigned int seed = 1;
	char text[4096];

	for (int round = 0; round < 2000; round++) {
		size_t len = 0;
		int faults;

		for (int i = rand_r(&seed) % 60; i > 0; i--) {
			const char *word = words[(size_t)rand_r(&seed) % (RCD_ARRAY_COUNT(words))];
			size_t word_len = word[0] == '\0' ? 1 : strlen(word);

			memcpy(text + len, word, word_len);
			len += word_len;
		}
		free(load(text, len, &faults));
		CU_ASSERT_FATAL(conf.dev_count <= CONF_DEVS_MAX && faults >= 0);
		for (uint32_t i = 0; i < conf.dev_count; i++)
			CU_ASSERT_FATAL(conf.devs[i].addr_count <= RCD_DEV_ADDRS_MAX);
	}
}

static const struct {
	const char *key, *value;
	const char *what; /* of the complaint behind the key; NULL: it is taken */
} settings[] = {
	{ "type", "wire", NULL },
	{ "type", "port", NULL },
	{ "type", "", "one of" },
	{ "type", "Wire", "one of" },
	{ "mode", "auto", NULL },
	{ "mode", "fast", "one of auto, xdp, packet, udp" },
	{ "mtu", "576", NULL },
	{ "mtu", "65535", NULL },
	{ "mtu", "575", "576 to 65535" },
	{ "mtu", "65536", "576 to 65535" },
	{ "mtu", "64K", "576 to 65535" },
	{ "mtu", "2K", NULL },
	{ "mtu", "1500 ", "576" },
	{ "mtu", " 1500", "576" },
	{ "mtu", "-1500", "576" },
	{ "mtu", "99999999999999999999999", "576" },
	{ "kernel", "eth0.5_x-y", NULL },
	{ "kernel", "fifteen_letters", NULL },
	{ "kernel", "sixteen__letters", "too long" },
	{ "kernel", "", "the name of a netdev to be: letters, digits and _-. only" },
	{ "kernel", "..", "the name of a netdev to be: letters, digits and _-. only" },
	{ "kernel", "k%d", "the name of a netdev to be: letters, digits and _-. only" },
	{ "kernel", "a/b", "the name of a netdev to be: letters, digits and _-. only" },
	{ "gateway", "10.0.0.1", NULL },
	{ "gateway", "fe80::1", NULL },
	{ "gateway", "10.0.0", "an address" },
	{ "gateway", "10.0.0.1@5", "an address" },
	{ "gateway4", "10.0.0.1", NULL },
	{ "gateway4", "none", NULL },
	{ "gateway4", "fe80::1", "an IPv4 address" },
	{ "gateway6", "fe80::1", NULL },
	{ "gateway6", "10.0.0.1", "an IPv6 address" },
	{ "mac", "02:00:00:00:00:01", NULL },
	{ "mac", "2:0:0:0:0:1", "six bytes, as 02:00:00:00:00:01" },
	{ "mac", "02:00:00:00:00:0g", "six bytes, as 02:00:00:00:00:01" },
	{ "mac", "03:00:00:00:00:01", "the MAC of one station" },
	{ "mac", "00:00:00:00:00:00", "the MAC of one station" },
	{ "pause", "keep", NULL },
	{ "pause", "off", NULL },
	{ "pause", "rx", NULL },
	{ "pause", "tx", NULL },
	{ "pause", "both", NULL },
	{ "pause", "on", "one of keep, off, rx, tx, both" },
	{ "pause", "", "one of keep, off, rx, tx, both" },
	{ "address", "10.0.0.1", NULL },
	{ "address", "10.0.0.1/32,fd00::1/128", NULL },
	{ "address", "10.0.0.1/33", "a list of" },
	{ "address", "10.0.0.1/", "a list of" },
	{ "address", "10.0.0.1/24x", "a list of" },
	{ "address", "10.0.0.1/24@0", "1 to 4094" },
	{ "address", "10.0.0.1/24@4094", NULL },
	{ "address", "10.0.0.1/24@4095", "1 to 4094" },
	{ "address", "10.0.0.1/24@", "1 to 4094" },
	{ "address", "fd00::1/129", "a list of" },
	{ "state", "sideways", "one of up, down" },
	{ "raw", "yes", "one of off, on, sniff" },
	{ "sack", "on", "one of auto, cm, off" },
	{ "sl_dscp", "none", NULL },
	{ "sl_dscp", "3:26,5:46", NULL },
	{ "sl_dscp", "16:26", "0 to 15" },
	{ "sl_dscp", "3:26,3:26", "each SL once" },
	{ "tos", "0", NULL },
	{ "tos", "255", NULL },
	{ "tos", "256", "0 to 255" },
	{ "tos", "-1", "0 to 255" },
	{ "tos", "af31", "0 to 255" },
	{ "tos", "104 ", "0 to 255" },
	{ "impair", "drop=1%\n", "control characters" },
	{ "peer", "a\x1b[0m", "control characters" },
	{ "cow", "1", "no such key in a device; there are type" },
	{ "\x1b[2J", "1", "no such key" },
};

static void
keys_of_links(void)
{
	for (size_t i = 0; i < RCD_ARRAY_COUNT(settings); i++) {
		struct rcd_dev_conf dev = { .name = "d" };
		struct rcd_dev_conf before = dev;
		char error[512] = "";
		int err = rcd_dev_conf_set(
			&dev, settings[i].key, settings[i].value, error, sizeof(error));
		bool known = rcd_link_key_find(settings[i].key) >= 0;

		if (settings[i].what == NULL) {
			CU_ASSERT_EQUAL(err, 0);
			CU_ASSERT_STRING_EQUAL(error, "");
			CU_ASSERT_EQUAL(dev.given, 1u << rcd_link_key_find(settings[i].key));
			continue;
		}
		CU_ASSERT_EQUAL(err, known ? -EINVAL : -ENOENT);
		CU_ASSERT_PTR_NOT_NULL(strstr(error, settings[i].what));
		CU_ASSERT_TRUE(
			!known || strncmp(error, settings[i].key, strlen(settings[i].key)) == 0);
		CU_ASSERT_TRUE(strpbrk(error, "\x1b\n") == NULL);
		CU_ASSERT_EQUAL(memcmp(&dev, &before, sizeof(dev)), 0);
	}
}

/* Texts at the largest size that is kept, and beyond: nothing is cut. */
static void
lengths(void)
{
	static const struct {
		const char *key;
		size_t size;
	} of[] = { { "peer", RCD_NAME_LEN }, { "netdev", 256 }, { "devargs", 256 },
		{ "impair", 256 } };
	struct rcd_dev_conf dev = { .name = "d" };
	char text[300], error[512];

	for (size_t i = 0; i < RCD_ARRAY_COUNT(of); i++) {
		memset(text, 'x', sizeof(text));
		text[of[i].size - 1] = '\0';
		CU_ASSERT_EQUAL(rcd_dev_conf_set(&dev, of[i].key, text, error, sizeof(error)), 0);
		CU_ASSERT_STRING_EQUAL(i < 3 ? dev.target : dev.impair, text);
		text[of[i].size - 1] = 'x';
		text[of[i].size] = '\0';
		CU_ASSERT_EQUAL(
			rcd_dev_conf_set(&dev, of[i].key, text, error, sizeof(error)), -EINVAL);
	}
	for (int i = 0; i < RCD_DEV_ADDRS_MAX; i++)
		CU_ASSERT_EQUAL(
			rcd_dev_conf_set(&dev, "address", "10.0.0.1/8", error, sizeof(error)), 0);
	CU_ASSERT_EQUAL(
		rcd_dev_conf_set(&dev, "address", "10.0.0.1/8", error, sizeof(error)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(error, "address: too many addresses");
}

/* Each key with each kind of link: it is taken where the manual page says so. */
static void
keys_and_kinds(void)
{
	static const struct {
		const char *key, *value, *kinds;
	} of[] = { { "peer", "b", "w" }, { "netdev", "e", "n" }, { "devargs", "x", "p" },
		{ "mode", "xdp", "n" }, { "kernel", "k0", "p" }, { "address", "1.2.3.4", "wp" },
		{ "gateway", "::1", "wp" }, { "gateway4", "none", "wp" }, { "netns", "a", "" },
		{ "gateway6", "none", "wp" }, { "mac", "02:00:00:00:00:01", "wp" },
		{ "mtu", "1500", "wnp" }, { "pause", "rx", "p" }, { "impair", "seed=1", "wnp" },
		{ "raw", "on", "wnp" }, { "sack", "cm", "wnp" }, { "cc", "dcqcn", "wnp" },
		{ "cc_class", "", "wnp" }, { "tos", "104", "wnp" }, { "sl_dscp", "", "wnp" },
		{ "state", "down", "wnp" }, { "type", NULL, "wnp" } };
	static const char *const types[] = { "wire", "netdev", "port" };
	static const char *const targets[] = { "peer", "netdev", "devargs" };

	CU_ASSERT_EQUAL(RCD_ARRAY_COUNT(of), RCD_LINK_KEY_COUNT);
	for (int type = 0; type < 3; type++)
		for (size_t i = 0; i < RCD_ARRAY_COUNT(of); i++) {
			struct rcd_dev_conf dev = { .name = "d" };
			enum rcd_link_key key;
			char error[512] = "";
			bool fits = strchr(of[i].kinds, types[type][0]) != NULL;

			rcd_dev_conf_set(&dev, "type", types[type], error, sizeof(error));
			CU_ASSERT_EQUAL(
				rcd_dev_conf_check(&dev, &key, error, sizeof(error)), -EINVAL);
			CU_ASSERT_EQUAL((int)key, rcd_link_key_find(targets[type]));
			if (of[i].value != NULL)
				rcd_dev_conf_set(
					&dev, of[i].key, of[i].value, error, sizeof(error));
			rcd_dev_conf_set(&dev, targets[type], "x", error, sizeof(error));
			CU_ASSERT_EQUAL(rcd_dev_conf_check(&dev, &key, error, sizeof(error)),
				fits ? 0 : -EINVAL);
			if (!fits)
				CU_ASSERT_EQUAL((int)key, rcd_link_key_find(of[i].key));
		}
}

/* One type is another with a mode, whatever was said before; it alone may have a namespace. */
static void
by_udp(void)
{
	static const struct {
		const char *keys[6]; /* each with its value */
		enum rcd_netdev_mode mode;
		enum rcd_link_key wrong; /* RCD_LINK_KEY_TYPE: none */
	} of[] = {
		{ { "type", "udp" }, RCD_NETDEV_UDP },
		{ { "type", "udp", "mode", "udp" }, RCD_NETDEV_UDP },
		{ { "mode", "udp", "type", "udp" }, RCD_NETDEV_UDP },
		{ { "type", "netdev", "mode", "udp" }, RCD_NETDEV_UDP },
		{ { "mode", "udp", "type", "netdev" }, RCD_NETDEV_UDP },
		{ { "type", "udp", "type", "netdev" }, RCD_NETDEV_AUTO },
		{ { "type", "netdev", "mode", "xdp", "type", "udp" }, RCD_NETDEV_XDP,
			RCD_LINK_KEY_MODE },
		{ { "type", "udp", "mode", "packet" }, RCD_NETDEV_PACKET, RCD_LINK_KEY_MODE },
		{ { "type", "udp", "mode", "auto", "mode", "udp" }, RCD_NETDEV_UDP },
		{ { "netns", "blue", "type", "udp" }, RCD_NETDEV_UDP },
		{ { "mode", "udp", "type", "netdev", "netns", "/n" }, RCD_NETDEV_UDP },
		{ { "type", "netdev", "netns", "blue" }, RCD_NETDEV_AUTO, RCD_LINK_KEY_NETNS },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(of); i++) {
		struct rcd_dev_conf dev = { .name = "d", .target = "10.0.0.1" };
		enum rcd_link_key key, wrong = of[i].wrong;
		char error[512] = "";

		for (size_t k = 0; k < 6 && of[i].keys[k] != NULL; k += 2)
			CU_ASSERT_EQUAL(rcd_dev_conf_set(&dev, of[i].keys[k], of[i].keys[k + 1],
						error, sizeof(error)),
				0);
		CU_ASSERT_EQUAL(dev.attach, RCD_ATTACH_NETDEV);
		CU_ASSERT_EQUAL(dev.mode, of[i].mode);
		CU_ASSERT_EQUAL(rcd_dev_conf_check(&dev, &key, error, sizeof(error)),
			wrong == RCD_LINK_KEY_TYPE ? 0 : -EINVAL);
		if (wrong != RCD_LINK_KEY_TYPE)
			CU_ASSERT_EQUAL(key, wrong);
	}
}

/* Whose addresses they are. */
static void
netdevs(void)
{
	static const struct {
		enum rcd_attach_type attach;
		const char *target, *kernel, *netdev;
	} of[] = { { RCD_ATTACH_NETDEV, "eth0", "", "eth0" }, { RCD_ATTACH_PORT, "x", "", NULL },
		{ RCD_ATTACH_PORT, "x", "k0", "k0" }, { RCD_ATTACH_WIRE, "b", "", NULL } };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(of); i++) {
		struct rcd_dev_conf dev = { .attach = of[i].attach };
		const char *netdev;

		snprintf(dev.target, sizeof(dev.target), "%s", of[i].target);
		snprintf(dev.kernel, sizeof(dev.kernel), "%s", of[i].kernel);
		netdev = rcd_dev_conf_netdev(&dev);
		CU_ASSERT_EQUAL(netdev == NULL, of[i].netdev == NULL);
		if (netdev != NULL && of[i].netdev != NULL)
			CU_ASSERT_STRING_EQUAL(netdev, of[i].netdev);
	}
}

static void
options(void)
{
	conf_init(&conf);
	CU_ASSERT_PTR_NULL(conf_option(&conf, "idle=yield"));
	CU_ASSERT_EQUAL(conf.engine.idle, RCD_IDLE_YIELD);
	CU_ASSERT_PTR_NOT_NULL(conf_option(&conf, "idle"));
	CU_ASSERT_PTR_NOT_NULL(conf_option(&conf, "=yield"));
	CU_ASSERT_PTR_NOT_NULL(conf_option(&conf, "a_key_that_is_longer_than_any_key_can_be=1"));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(good_files),
		RCD_TEST(faults_have_lines),
		RCD_TEST(files_in_a_folder),
		RCD_TEST(no_file),
		RCD_TEST(limits_of_files),
		RCD_TEST(hostile_bytes),
		RCD_TEST(keys_of_links),
		RCD_TEST(lengths),
		RCD_TEST(keys_and_kinds),
		RCD_TEST(by_udp),
		RCD_TEST(netdevs),
		RCD_TEST(options),
	};

	return rcd_tap_run("conf", tests, RCD_ARRAY_COUNT(tests));
}
