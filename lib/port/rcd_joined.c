/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A list in order, that is searched by halves: at most as long as the tables of all lcores.
 */
#include "rcd_joined.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_check.h"
#include "rcd_thread.h"

#define ROOM_FIRST 16

void
rcd_joined_fini(struct rcd_joined *joined)
{
	RCD_ON_CONTROL();
	free(joined->macs);
	*joined = (struct rcd_joined){ 0 };
}

/* Its place, or that where it would go. */
static uint32_t
joined_place(const struct rcd_joined *joined, const uint8_t *mac)
{
	uint32_t from = 0, to = joined->count;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (memcmp(joined->macs[middle].mac, mac, RCD_MAC_LEN) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool
joined_has(const struct rcd_joined *joined, uint32_t at, const uint8_t *mac)
{
	return at < joined->count && memcmp(joined->macs[at].mac, mac, RCD_MAC_LEN) == 0;
}

bool
rcd_joined_has(const struct rcd_joined *joined, const uint8_t *mac)
{
	RCD_ON_CONTROL();
	return joined_has(joined, joined_place(joined, mac), mac);
}

static int
joined_make_room(struct rcd_joined *joined)
{
	uint32_t room = joined->room > 0 ? 2 * joined->room : ROOM_FIRST;
	struct rcd_joined_mac *macs;

	if (joined->count < joined->room)
		return 0;
	macs = realloc(joined->macs, room * sizeof(*macs));
	if (macs == NULL)
		return -ENOMEM;
	joined->macs = macs;
	joined->room = room;
	return 0;
}

int
rcd_joined_add(struct rcd_joined *joined, const struct rcd_gid *group)
{
	uint8_t mac[RCD_MAC_LEN];
	struct rcd_joined_mac *place;
	uint32_t at;

	RCD_ON_CONTROL();
	rcd_gid_multicast_mac(group, mac);
	at = joined_place(joined, mac);
	if (joined_has(joined, at, mac)) {
		joined->macs[at].members++;
		return 0;
	}
	if (joined_make_room(joined) != 0)
		return -ENOMEM;
	place = &joined->macs[at];
	memmove(place + 1, place, (joined->count - at) * sizeof(*place));
	memcpy(place->mac, mac, RCD_MAC_LEN);
	place->members = 1;
	joined->count++;
	return 0;
}

void
rcd_joined_del(struct rcd_joined *joined, const struct rcd_gid *group)
{
	uint8_t mac[RCD_MAC_LEN];
	struct rcd_joined_mac *place;
	uint32_t at;

	RCD_ON_CONTROL();
	rcd_gid_multicast_mac(group, mac);
	at = joined_place(joined, mac);
	RCD_CHECK(joined_has(joined, at, mac));
	place = &joined->macs[at];
	if (--place->members > 0)
		return;
	joined->count--;
	memmove(place, place + 1, (joined->count - at) * sizeof(*place));
}
