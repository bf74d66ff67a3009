/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The timer wheel.
 */
#include "rcd_wheel.h"

static struct rcd_timer_list *
wheel_slot_of(struct rcd_wheel *wheel, uint64_t at_ns)
{
	/* Rounded up, so that a timer in its slot is due when the slot is. */
	uint64_t tick = (at_ns >> wheel->tick_log2) + 1;

	if (tick < wheel->floor)
		tick = wheel->floor;
	return &wheel->slots[tick % RCD_WHEEL_SLOTS];
}

void
rcd_wheel_init(struct rcd_wheel *wheel, uint32_t tick_log2, uint64_t now_ns)
{
	*wheel = (struct rcd_wheel){ .tick_log2 = tick_log2, .tick = now_ns >> tick_log2 };
	wheel->floor = wheel->tick;
	LIST_INIT(&wheel->late);
	for (uint32_t i = 0; i < RCD_WHEEL_SLOTS; i++)
		LIST_INIT(&wheel->slots[i]);
}

void
rcd_wheel_set(struct rcd_wheel *wheel, struct rcd_timer *timer, uint64_t at_ns)
{
	rcd_wheel_cancel(wheel, timer);
	timer->at_ns = at_ns;
	LIST_INSERT_HEAD(wheel_slot_of(wheel, at_ns), timer, link);
	wheel->count++;
}

void
rcd_wheel_cancel(struct rcd_wheel *wheel, struct rcd_timer *timer)
{
	if (timer->at_ns == 0)
		return;
	LIST_REMOVE(timer, link);
	timer->at_ns = 0;
	wheel->count--;
}

/* Take the list away: an expired timer may be set into the same slot again. */
static void
wheel_take_list(struct rcd_timer_list *slot, struct rcd_timer_list *list)
{
	list->lh_first = slot->lh_first;
	if (list->lh_first != NULL)
		list->lh_first->link.le_prev = &list->lh_first;
	LIST_INIT(slot);
}

uint32_t
rcd_wheel_advance(struct rcd_wheel *wheel, uint64_t now_ns, uint32_t budget,
	void (*expired)(struct rcd_timer *timer, void *arg), void *arg)
{
	uint64_t last = now_ns >> wheel->tick_log2;
	uint32_t done = 0;

	if (last >= wheel->tick) {
		/* After a long stop each list once is enough. */
		if (last - wheel->tick >= RCD_WHEEL_SLOTS)
			wheel->tick = last - RCD_WHEEL_SLOTS + 1;
		/* What is set from now on belongs behind the last tick that is looked at. */
		wheel->floor = last + 1;
	}
	while (done < budget && wheel->count > 0) {
		struct rcd_timer *timer = LIST_FIRST(&wheel->late);
		uint64_t at_ns;

		if (timer == NULL) {
			if (wheel->tick > last)
				break;
			wheel_take_list(
				&wheel->slots[wheel->tick++ % RCD_WHEEL_SLOTS], &wheel->late);
			continue;
		}
		at_ns = timer->at_ns;
		rcd_wheel_cancel(wheel, timer);
		if (at_ns <= now_ns)
			expired(timer, arg);
		else
			rcd_wheel_set(wheel, timer, at_ns);
		done++;
	}
	/* With none left there is nothing to look for in the ticks between. */
	if (wheel->count == 0 && wheel->tick <= last)
		wheel->tick = last + 1;
	return done;
}

uint64_t
rcd_wheel_next(const struct rcd_wheel *wheel)
{
	if (wheel->count == 0)
		return UINT64_MAX;
	if (!LIST_EMPTY(&wheel->late))
		return 0;
	for (uint64_t tick = wheel->tick; tick < wheel->tick + RCD_WHEEL_SLOTS; tick++)
		if (!LIST_EMPTY(&wheel->slots[tick % RCD_WHEEL_SLOTS]))
			return tick << wheel->tick_log2;
	return UINT64_MAX;
}
