/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * rocade-dump: prints the RoCEv2 packets of a capture file and judges each. This file reads
 * arguments and the capture, and adds up; what a packet is, lib/wire says.
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dump.h"
#include "options.h"
#include "version.h"

/** Exit status. */
enum {
	STATUS_GOOD = 0,   /**< no wrong ICRC, nothing malformed */
	STATUS_BAD = 1,    /**< some */
	STATUS_FAILED = 2, /**< the file or the output failed, or the arguments are wrong */
};

struct options {
	bool json;
	bool quiet;
	const char *path;
};

static const struct option_info option_list[] = {
#define OPTION(letter, name, argument, what) { letter, name, argument, what },
#include "options.def"
};

#define OPTION_COUNT (sizeof(option_list) / sizeof(option_list[0]))

static void
dump_main_usage(FILE *out)
{
	fputs("usage: rocade-dump [--json] [--quiet] FILE\n"
	      "Prints one line per packet of a capture (pcap or pcapng; - for standard input)\n"
	      "and a line of totals, and checks the ICRC of every RoCEv2 packet.\n"
	      "\n",
		out);
	options_print(out, option_list, OPTION_COUNT);
	fputs("\n"
	      "Exit status: 0 when no ICRC is bad and no packet malformed, 1 otherwise,\n"
	      "2 when the file can't be read or the output can't be written.\n",
		out);
}

static void
dump_main_count_packet(struct dump_totals *totals, const struct dump_packet *packet)
{
	totals->packets++;
	rcd_verdict_count(&totals->counters, packet->verdict, packet->frame_len);
	switch (rcd_verdict_class(packet->verdict)) {
	case RCD_VERDICT_CLASS_ROCE:
		totals->roce++;
		totals->icrc_ok++;
		break;
	case RCD_VERDICT_CLASS_BAD_ICRC:
		totals->roce++;
		totals->icrc_bad++;
		break;
	case RCD_VERDICT_CLASS_MALFORMED:
		totals->malformed++;
		break;
	case RCD_VERDICT_CLASS_OTHER:
		totals->other++;
		break;
	}
}

/* Open the capture; says on stderr why not. @return NULL on failure */
static pcap_t *
dump_main_open_capture(const char *path)
{
	char reason[PCAP_ERRBUF_SIZE] = "";
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
	struct stat st;
	pcap_t *pcap;

	if (file == NULL || fstat(fileno(file), &st) != 0) {
		fprintf(stderr, "rocade-dump: %s: %s\n", path, strerror(errno));
		return NULL;
	}
	if (S_ISDIR(st.st_mode)) {
		fprintf(stderr, "rocade-dump: %s: %s\n", path, strerror(EISDIR));
		fclose(file);
		return NULL;
	}
	if (S_ISREG(st.st_mode) && st.st_size == 0) {
		fprintf(stderr, "rocade-dump: %s: not a capture: the file is empty\n", path);
		fclose(file);
		return NULL;
	}
	pcap = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, reason);
	if (pcap == NULL) {
		fprintf(stderr, "rocade-dump: %s: not a capture: %s\n", path, reason);
		fclose(file);
		return NULL;
	}
	if (!dump_link_known(pcap_datalink(pcap))) {
		const char *name = pcap_datalink_val_to_name(pcap_datalink(pcap));

		fprintf(stderr,
			"rocade-dump: %s: link type %d (%s) is none of Ethernet, Linux cooked, "
			"raw IP\n",
			path, pcap_datalink(pcap), name == NULL ? "unknown" : name);
		pcap_close(pcap);
		return NULL;
	}
	return pcap;
}

static int
dump_main_print_packet(const struct options *options, const struct dump_packet *packet)
{
	if (options->quiet)
		return 0;
	if (options->json)
		return dump_json_packet(stdout, packet);
	dump_text_packet(stdout, packet);
	return 0;
}

/* @return 0, or a negative errno after a message on stderr */
static int
dump_main_capture(const struct options *options, pcap_t *pcap, struct dump_totals *totals)
{
	struct pcap_pkthdr *hdr;
	const uint8_t *data;
	uint64_t first_ns = 0;
	int err = 0;
	int got;

	while (err == 0 && (got = pcap_next_ex(pcap, &hdr, &data)) == 1) {
		struct dump_packet packet = {
			.number = totals->packets + 1,
			/* libpcap was asked for nanoseconds, whatever the field is called. */
			.time_ns =
				(uint64_t)hdr->ts.tv_sec * 1000000000 + (uint64_t)hdr->ts.tv_usec,
			.frame_len = hdr->len,
			.cap_len = hdr->caplen,
		};

		if (totals->packets == 0)
			first_ns = packet.time_ns;
		/* A capture's clock may step back. */
		packet.offset_ns = packet.time_ns > first_ns ? packet.time_ns - first_ns : 0;
		dump_link_parse(pcap_datalink(pcap), data, &packet);
		dump_main_count_packet(totals, &packet);
		err = dump_main_print_packet(options, &packet);
	}
	if (err != 0) {
		fprintf(stderr, "rocade-dump: %s\n", strerror(-err));
		return err;
	}
	if (got == PCAP_ERROR) {
		fprintf(stderr, "rocade-dump: %s: damaged after packet %llu: %s\n", options->path,
			(unsigned long long)totals->packets, pcap_geterr(pcap));
		return -EIO;
	}
	return 0;
}

static int
dump_main_run(const struct options *options)
{
	struct dump_totals totals = { .packets = 0 };
	pcap_t *pcap = dump_main_open_capture(options->path);
	int err;

	if (pcap == NULL)
		return STATUS_FAILED;
	err = dump_main_capture(options, pcap, &totals);
	pcap_close(pcap);
	if (options->json && dump_json_totals(stdout, &totals) != 0)
		err = -ENOMEM;
	if (!options->json)
		dump_text_totals(stdout, &totals);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "rocade-dump: can't write: %s\n", strerror(errno));
		return STATUS_FAILED;
	}
	if (err != 0)
		return STATUS_FAILED;
	return totals.icrc_bad + totals.malformed == 0 ? STATUS_GOOD : STATUS_BAD;
}

int
main(int argc, char **argv)
{
	struct option_table table;
	struct options options = { .json = false };
	int opt;

	options_table(option_list, OPTION_COUNT, &table);
	while ((opt = getopt_long(argc, argv, table.letters, table.longs, NULL)) != -1) {
		switch (opt) {
		case 'j':
			options.json = true;
			break;
		case 'q':
			options.quiet = true;
			break;
		case 'h':
			dump_main_usage(stdout);
			return STATUS_GOOD;
		case 'V':
			version_print("rocade-dump", NULL);
			return STATUS_GOOD;
		default:
			dump_main_usage(stderr);
			return STATUS_FAILED;
		}
	}
	if (optind != argc - 1) {
		fputs("rocade-dump: one FILE is needed\n", stderr);
		dump_main_usage(stderr);
		return STATUS_FAILED;
	}
	options.path = argv[optind];
	return dump_main_run(&options);
}
