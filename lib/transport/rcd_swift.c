/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A window by delay in the manner of Swift (Kumar et al., SIGCOMM 2020, algorithm 1): it grows by a
 * packet or so in each round trip as long as packets wait no longer than a target, and shrinks in
 * proportion to how much longer they do, once in a round trip. The target is wider for small
 * windows (their section 3.5), and a window below one packet is a pace (3.4).
 *
 * What differs, since the two ends are software on cores that others use as well:
 * - A target is what packets may wait beyond the shortest round trip of the last seconds, and not
 *   an absolute delay: nobody knows how long the ends themselves take.
 * - Of three round trips in a row the shortest counts. A queue in the network delays all of them, a
 *   scheduler one now and then.
 * - The target is wider by how long this end was away of late, if it was so often (rcd_cc_ack): an
 *   end whose core is taken for a slice of the scheduler looks like a queue to who measures. Of the
 *   other end nobody tells: who shares cores takes his peer to be like himself.
 * - Responses to READs are not held back: nothing tells how long they are on their way. A READ is
 *   the requester's to ask for.
 * - The window begins with a third of what 100 Gb/s hold in 20 us, and doubles in each round trip
 *   until packets first wait too long. A mark or many losses before say that it is far too much:
 *   the queue is let run empty, and the window filled to a small part.
 * - It grows by a share of itself, not by a packet: where many share a link whose switches mark, a
 *   packet for each of them in a round trip is more than the marks leave room for. Those that have
 *   more are marked more often, and so all come to the same.
 * - A loss has the window shrink as far as packets waited beyond half of the target. Where they
 *   wait less the path has lost them; unless they are many (rcd_gate.c): then the queue is let run
 *   empty, which shows how long the way is.
 */
#include "rcd_cc.h"

#include <assert.h>
#include <stdbool.h>

#define WINDOW_MAX     (UINT32_C(1) << 26) /**< 100 Gb/s for 5 ms; sums of it can't wrap */
#define LOW_PART       2   /**< of the target: so long packets wait where no buffer is full */
#define FREE_PART      8   /**< and less than this: there is room */
#define FREE_STEP      24  /**< then the window grows by this part of itself in a round trip... */
#define FREE_LEAST     8   /**< ...or this one of a packet, if that is more */
#define STEP           64  /**< else by this part of itself... */
#define LEAST          16  /**< ...or of a packet */
#define DEEP_PART      8   /**< filled again, of the half of a window that was far too large */
#define FLOOR_PART     16  /**< smallest window: of a packet one in... */
#define WIDE_PACKETS   100 /**< from then on a window's target is no wider */
#define GAP_MAX_NS     500000 /**< longest time between two packets: less than a timeout */
#define RTT_UNKNOWN_NS 100000 /**< until one was measured */
#define RTT_MIN_NS     UINT64_C(5000000000) /**< a shorter one counts for so long, or twice */

struct swift {
	uint64_t cut_ns;   /**< when the window last shrank */
	uint64_t epoch_ns; /**< since when rtt_min is looked for */
	uint32_t window;   /**< bytes */
	uint32_t acked;    /**< bytes since the window grew */
	uint32_t refill;   /**< up to there the window doubles; UINT32_MAX: to begin with */
	uint32_t packet;   /**< bytes of the longest packet */
	uint32_t rtt_min;  /**< shortest since epoch_ns, ns */
	uint32_t rtt_old;  /**< of the epoch before */
	uint32_t last[2];  /**< round trips before the newest; 0: none */
	uint32_t rtt_ns;   /**< shortest of the last three; 0: none was measured */
	uint32_t target_ns, range_ns;
	uint32_t away_ns; /**< with the last round trip */
	uint32_t late;    /**< measures by which packets waited too long */
	uint8_t gain, beta_pct, cut_pct;
	bool low;     /**< nothing waits too long now */
	bool settled; /**< it grew by a step: the beginning is over */
};

static_assert(sizeof(struct swift) <= sizeof(struct rcd_cc), "state of an algorithm");

static struct swift *
swift_of(struct rcd_cc *cc)
{
	return (struct swift *)(void *)cc->words;
}

static uint32_t
swift_round(const struct swift *swift)
{
	return swift->rtt_ns != 0 ? swift->rtt_ns : RTT_UNKNOWN_NS;
}

/* How long packets may wait, for the network or for this end. */
static uint64_t
swift_target(const struct swift *swift)
{
	return (uint64_t)swift->target_ns + swift->away_ns;
}

/* The way without a queue. Longest when none was measured. */
static uint32_t
swift_shortest(const struct swift *swift)
{
	return swift->rtt_min < swift->rtt_old ? swift->rtt_min : swift->rtt_old;
}

static void
swift_init(struct rcd_cc *cc, const struct rcd_cc_params *params, uint32_t packet_bytes,
	uint64_t now_ns)
{
	uint32_t start = params->swift_start_kb * 1024;

	*swift_of(cc) = (struct swift){
		.epoch_ns = now_ns,
		.window = start > packet_bytes ? start : packet_bytes,
		.packet = packet_bytes,
		.rtt_min = UINT32_MAX,
		.rtt_old = UINT32_MAX,
		.target_ns = params->swift_target_us * 1000,
		.range_ns = params->swift_range_us * 1000,
		.gain = (uint8_t)params->swift_gain,
		.beta_pct = (uint8_t)params->swift_beta_pct,
		.cut_pct = (uint8_t)params->swift_cut_pct,
		.refill = UINT32_MAX,
		.low = true,
	};
}

static uint32_t
swift_root(uint32_t val)
{
	uint32_t root = 0;

	for (uint32_t bit = UINT32_C(1) << 15; bit != 0; bit >>= 1) {
		uint64_t guess = root | bit;

		if (guess * guess <= val)
			root |= bit;
	}
	return root;
}

/*
 * How much longer packets of a small window may wait: all of the range at a tenth of a packet and
 * nothing at a hundred, and in between as the inverse of the root. With w in packets it is range *
 * (1/sqrt(w) - 1/sqrt(100)) / (1/sqrt(0.1) - 1/sqrt(100)); the root is of w in parts of 256.
 */
static uint32_t
swift_widen(const struct swift *swift)
{
	uint64_t wider;
	uint32_t root;

	if (swift->window >= WIDE_PACKETS * swift->packet)
		return 0;
	root = swift_root((uint32_t)((uint64_t)swift->window * 256 / swift->packet));
	if (root == 0)
		return swift->range_ns;
	if (root >= 160)
		return 0;
	wider = (uint64_t)swift->range_ns * (160 - root) * 1000 / (root * UINT64_C(30623));
	return wider < swift->range_ns ? (uint32_t)wider : swift->range_ns;
}

/* By so many parts of a thousand, if that was not done in this round trip. */
static void
swift_shrink(struct swift *swift, uint32_t permille, uint64_t now_ns)
{
	uint32_t floor = swift->packet / FLOOR_PART;

	if (permille == 0 || (swift->cut_ns != 0 && now_ns - swift->cut_ns < swift_round(swift)))
		return;
	if (permille > swift->cut_pct * 10u)
		permille = swift->cut_pct * 10u;
	swift->window -= (uint32_t)((uint64_t)swift->window * permille / 1000);
	if (swift->window < floor)
		swift->window = floor;
	swift->refill = 0;
	swift->acked = 0;
	swift->cut_ns = now_ns;
}

/* Have the queue run empty, and fill what is left of the window again. @param deep  little of it */
static void
swift_drain(struct swift *swift, bool deep, uint64_t now_ns)
{
	uint32_t before = swift->window;

	swift_shrink(swift, swift->cut_pct * 10u, now_ns);
	if (swift->window == before || swift->window < swift->packet)
		return;
	swift->refill = swift->window / (deep ? DEEP_PART : 1);
	swift->window = swift->packet;
	swift->last[0] = swift->last[1] = 0;
}

/* @return what is taken for the round trip */
static uint32_t
swift_filter(struct swift *swift, uint32_t rtt_ns, uint64_t now_ns)
{
	uint32_t shortest = rtt_ns;

	if (now_ns - swift->epoch_ns > RTT_MIN_NS) {
		swift->epoch_ns = now_ns;
		swift->rtt_old = swift->rtt_min;
		swift->rtt_min = UINT32_MAX;
	}
	if (rtt_ns < swift->rtt_min)
		swift->rtt_min = rtt_ns;
	for (int i = 0; i < 2; i++)
		if (swift->last[i] != 0 && swift->last[i] < shortest)
			shortest = swift->last[i];
	swift->last[1] = swift->last[0];
	swift->last[0] = rtt_ns;
	return shortest;
}

static void
swift_measure(struct swift *swift, uint32_t rtt_ns, uint64_t now_ns)
{
	uint64_t target;

	swift->rtt_ns = swift_filter(swift, rtt_ns, now_ns);
	target = swift_shortest(swift) + swift_target(swift);
	/* On an idle network nobody asks how much wider it is. */
	swift->low = swift->rtt_ns < target;
	if (swift->low)
		return;
	target += swift_widen(swift);
	swift->low = swift->rtt_ns < target;
	if (swift->low)
		return;
	swift->late++;
	swift_shrink(swift,
		(uint32_t)((swift->rtt_ns - target) * swift->beta_pct * 10 / swift->rtt_ns),
		now_ns);
}

/*
 * What the window grows by in a round trip: a share of itself, so that flows together take no more
 * of the queue in one, however many they are. (The paper's flow scaling, 3.5, widens the target,
 * and where switches mark nobody comes as far.) Small windows take a bit more, to come to theirs.
 */
static uint32_t
swift_step(const struct swift *swift)
{
	bool free = swift->rtt_ns < swift_shortest(swift) + swift_target(swift) / FREE_PART;
	uint32_t step = swift->window / (free ? FREE_STEP : STEP) * swift->gain;
	uint32_t least = swift->gain * swift->packet / (free ? FREE_LEAST : LEAST);

	return step > least ? step : least;
}

static void
swift_grow(struct swift *swift, uint32_t bytes)
{
	if (swift->window < swift->refill) {
		swift->window += bytes;
	} else {
		swift->acked += bytes;
		if (swift->acked < swift->window)
			return;
		swift->acked = 0;
		swift->window += swift_step(swift);
		swift->settled = true;
	}
	if (swift->window > WINDOW_MAX)
		swift->window = WINDOW_MAX;
}

static void
swift_on_ack(struct rcd_cc *cc, const struct rcd_cc_ack *ack)
{
	struct swift *swift = swift_of(cc);

	if (ack->rtt_ns != 0) {
		swift->away_ns = ack->away_ns;
		swift_measure(swift, ack->rtt_ns, ack->now_ns);
	}
	/* A window that is not used says nothing of what the network would take. */
	if (swift->low && ack->flight >= swift->window / 2)
		swift_grow(swift, ack->bytes);
}

/*
 * Packets that wait for more than half of the target may have filled a buffer: behind a loss they
 * are to wait no longer than that, and the window shrinks by the part of the round trip that is
 * beyond. If they wait less the path lost one, or it is late, unless so much is lost that a short
 * buffer may be why. Many queue pairs of one core wait for each other about as long as the half.
 */
static void
swift_on_loss(struct rcd_cc *cc, bool heavy, uint64_t now_ns)
{
	struct swift *swift = swift_of(cc);
	uint32_t shortest = swift_shortest(swift);
	uint64_t waits_ns = swift->rtt_ns > shortest ? swift->rtt_ns - shortest : 0;
	uint64_t low_ns = swift_target(swift) / LOW_PART;

	if (heavy || swift->refill == UINT32_MAX)
		swift_drain(swift, heavy && !swift->settled, now_ns);
	else if (waits_ns > low_ns)
		swift_shrink(swift, (uint32_t)((waits_ns - low_ns) * 1000 / swift->rtt_ns), now_ns);
}

/* As the window was, and what it did: it may have been doubled. It never shrinks by this. */
static void
swift_undo(struct rcd_cc *cc, const struct rcd_cc *before)
{
	const struct swift *old = (const struct swift *)(const void *)before->words;
	struct swift *swift = swift_of(cc);

	if (swift->late != old->late || swift->window >= old->window)
		return;
	swift->window = old->window;
	swift->acked = old->acked;
	swift->refill = old->refill;
	swift->cut_ns = old->cut_ns;
}

/*
 * A mark comes long before packets wait for the whole target, and before a loss: once in a round
 * trip the window shrinks as much as it may for waiting.
 */
static void
swift_on_cnp(struct rcd_cc *cc, uint64_t now_ns)
{
	struct swift *swift = swift_of(cc);

	if (swift->refill == UINT32_MAX)
		swift_drain(swift, true, now_ns);
	else
		swift_shrink(swift, swift->cut_pct * 10u, now_ns);
}

static uint64_t
swift_send_at(struct rcd_cc *cc, uint32_t bytes, uint64_t now_ns)
{
	struct swift *swift = swift_of(cc);
	uint64_t gap_ns = swift_round(swift);

	if (swift->window >= bytes)
		return now_ns;
	gap_ns = gap_ns * bytes / swift->window;
	return now_ns + (gap_ns < GAP_MAX_NS ? gap_ns : GAP_MAX_NS);
}

static uint32_t
swift_window(const struct rcd_cc *cc)
{
	return ((const struct swift *)(const void *)cc->words)->window;
}

static uint32_t
swift_rate(const struct rcd_cc *cc)
{
	const struct swift *swift = (const struct swift *)(const void *)cc->words;
	uint32_t kbps;

	if (swift->window >= swift->packet)
		return 0;
	/* The smallest window in a round trip of seconds is less than that, and not none. */
	kbps = (uint32_t)(swift->window * UINT64_C(8000000) / swift_round(swift));
	return kbps > 0 ? kbps : 1;
}

const struct rcd_cc_ops rcd_cc_swift = {
	.name = "swift",
	.by_acks = true,
	.init = swift_init,
	.on_cnp = swift_on_cnp,
	.on_ack = swift_on_ack,
	.on_loss = swift_on_loss,
	.undo = swift_undo,
	.send_at = swift_send_at,
	.window = swift_window,
	.rate = swift_rate,
};
