/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: the kernel's groups of a netdev are found in its list of all, of which no more is read at a
 * look than is allowed, however long anybody has made it. Method: files that look like that list.
 */
#include "rcd_kgroups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rcd_tap.h"

#define OURS 7

static char path[] = "/tmp/rcd_kgroups_XXXXXX";

/* A list: lines of others, some of ours, and lines of others. */
static void
write_list(uint32_t before, uint32_t ours, uint32_t behind)
{
	FILE *file = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	for (uint32_t i = 0; i < before; i++)
		fprintf(file, "%-4u %-15s %-5d %-5d %012x\n", 70 + i, "eth0", 1, 0, i);
	for (uint32_t i = 0; i < ours; i++)
		fprintf(file, "%-4u %-15s %-5d %-5d 01005e%06x\n", OURS, "r0k", 1, 0, i);
	for (uint32_t i = 0; i < behind; i++)
		fprintf(file, "%-4u %-15s %-5d %-5d %012x\n", 8000 + i, "a_long_name_of1", 2, 1, i);
	fclose(file);
}

/* Until the list was read as a whole. @return how many looks that takes */
static uint32_t
look(struct rcd_kgroups *kgroups)
{
	uint32_t count = 0;

	do {
		CU_ASSERT_EQUAL(rcd_kgroups_look(kgroups, path, OURS), 0);
		count++;
		if (kgroups->reading)
			CU_ASSERT_EQUAL(lseek(kgroups->fd, 0, SEEK_CUR), count * RCD_KGROUPS_STEP);
	} while (kgroups->reading);
	return count;
}

static bool
all_are_there(const struct rcd_kgroups *kgroups, uint32_t count)
{
	bool there = kgroups->now.count == count;

	for (uint32_t i = 0; there && i < count; i++) {
		const uint8_t *mac = kgroups->now.macs[i];

		there = memcmp(mac, "\1\0\x5e\0", 4) == 0 && ((uint32_t)mac[4] << 8 | mac[5]) == i;
	}
	return there;
}

static void
finds_ours(void)
{
	static const uint32_t rows[][3] = { { 0, 0, 0 }, { 0, 1, 0 }, { 3, 5, 2 },
		{ 100, RCD_KGROUPS_MAX, 100 }, { 9, 0, 9 } };
	struct rcd_kgroups kgroups = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_list(rows[i][0], rows[i][1], rows[i][2]);
		/* That there are none any more is believed the second time. */
		look(&kgroups);
		CU_ASSERT_EQUAL(look(&kgroups), 1);
		CU_ASSERT(kgroups.known);
		CU_ASSERT(all_are_there(&kgroups, rows[i][1]));
		CU_ASSERT_EQUAL(kgroups.now.more, 0);
	}
	rcd_kgroups_fini(&kgroups);
}

/* What there is no room for is counted. */
static void
counts_the_rest(void)
{
	struct rcd_kgroups kgroups = { 0 };

	write_list(0, RCD_KGROUPS_MAX + 12, 0);
	look(&kgroups);
	CU_ASSERT(all_are_there(&kgroups, RCD_KGROUPS_MAX));
	CU_ASSERT_EQUAL(kgroups.now.more, 12);
	rcd_kgroups_fini(&kgroups);
}

/* A piece at a look; what was found before is there until the end; and then nothing for a while. */
static void
reads_pieces(void)
{
	struct rcd_kgroups kgroups = { 0 };
	uint32_t looks;

	write_list(0, 2, 0);
	look(&kgroups);
	write_list(20000, 5, 20000);
	CU_ASSERT_EQUAL(rcd_kgroups_look(&kgroups, path, OURS), 0);
	CU_ASSERT(kgroups.reading);
	CU_ASSERT(all_are_there(&kgroups, 2));
	rcd_kgroups_fini(&kgroups);
	looks = look(&kgroups);
	CU_ASSERT(looks > 20);
	CU_ASSERT(all_are_there(&kgroups, 5));
	write_list(0, 3, 0);
	for (uint32_t i = 1; i < looks; i++) {
		CU_ASSERT_EQUAL(rcd_kgroups_look(&kgroups, path, OURS), 0);
		CU_ASSERT(all_are_there(&kgroups, 5));
	}
	CU_ASSERT_EQUAL(look(&kgroups), 1);
	CU_ASSERT(all_are_there(&kgroups, 3));
	rcd_kgroups_fini(&kgroups);
}

/* One that had some and has none was passed over, perhaps; one that comes twice came twice. */
static void
doubts_what_it_reads(void)
{
	struct rcd_kgroups kgroups = { 0 };
	FILE *file;

	write_list(1, 4, 1);
	look(&kgroups);
	write_list(1, 0, 1);
	look(&kgroups);
	CU_ASSERT(all_are_there(&kgroups, 4));
	look(&kgroups);
	CU_ASSERT(all_are_there(&kgroups, 0));
	write_list(0, RCD_KGROUPS_MAX, 1);
	file = fopen(path, "a");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	for (uint32_t i = 0; i < RCD_KGROUPS_MAX; i++)
		fprintf(file, "%-4u %-15s %-5d %-5d 01005e%06x\n", OURS, "r0k", 1, 0, i);
	fclose(file);
	look(&kgroups);
	CU_ASSERT(all_are_there(&kgroups, RCD_KGROUPS_MAX));
	CU_ASSERT_EQUAL(kgroups.now.more, 0);
	rcd_kgroups_fini(&kgroups);
}

static void
doubts_long_lists(void)
{
	struct rcd_kgroups kgroups = { 0 };

	write_list(5000, 4, 0);
	look(&kgroups);
	write_list(5000, 0, 0);
	for (uint32_t i = 0; i < 2; i++) {
		/* As many as it read have to pass before. */
		while (kgroups.rest > 0)
			CU_ASSERT_EQUAL(rcd_kgroups_look(&kgroups, path, OURS), 0);
		CU_ASSERT(all_are_there(&kgroups, 4));
		CU_ASSERT(look(&kgroups) > 1);
		CU_ASSERT(all_are_there(&kgroups, i == 0 ? 4 : 0));
	}
	rcd_kgroups_fini(&kgroups);
}

static void
says_what_is_wrong(void)
{
	struct rcd_kgroups kgroups = { 0 };
	FILE *file;

	CU_ASSERT_EQUAL(rcd_kgroups_look(&kgroups, "/nonexistent", OURS), -ENOENT);
	CU_ASSERT(!kgroups.reading);
	CU_ASSERT_EQUAL(rcd_kgroups_look(&kgroups, "/", OURS), -EISDIR);
	CU_ASSERT(!kgroups.reading);
	/* Lines of any length and sort are passed over. */
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fprintf(file, "7 r0k 1\n\n7\nx\n%0300d\n7 r0k 1 0 01005e000000\n7 r0k 1 0 01005e", 7);
	fclose(file);
	look(&kgroups);
	CU_ASSERT(all_are_there(&kgroups, 1));
	rcd_kgroups_fini(&kgroups);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(finds_ours),
		RCD_TEST(counts_the_rest),
		RCD_TEST(reads_pieces),
		RCD_TEST(doubts_what_it_reads),
		RCD_TEST(doubts_long_lists),
		RCD_TEST(says_what_is_wrong),
	};
	int fd = mkstemp(path);
	int status;

	if (fd < 0)
		return 1;
	close(fd);
	status = rcd_tap_run("kgroups", tests, sizeof(tests) / sizeof(tests[0]));
	unlink(path);
	return status;
}
