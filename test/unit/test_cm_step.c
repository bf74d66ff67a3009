/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: the life of a connection is what it is meant to be in all of its layers. Method: every step
 * in every state, beside lists that were written by themselves, from the specification (IBTA Vol.
 * 1, 12.9) and from what the kernel lets a program do; whole lives of both sides, states of the
 * three layers side by side; and no state without a way in and a way out.
 */
#include "rcd_bytes.h"
#include "rcd_cm_step.h"
#include "rcd_tap.h"

#define AGENT_STATES   (RCD_CM_STATE_AWAITS_SIDR_REP + 1)
#define SERVICE_STATES (RCD_CMA_DEVICE_REMOVAL + 1)
#define LIBRARY_STATES (RCD_RM_FAILED + 1)

#define STEP(name) RCD_CM_STEP_##name
#define IN(name)   RCD_CM_STATE_##name

/* All that the agent may do: a step, a state that permits it, and the state behind it. */
static const struct {
	uint8_t step, from, to;
} agent_moves[] = {
	{ STEP(REQ_SENT), IN(FREE), IN(REQ_SENT) },
	{ STEP(REQ_CAME), IN(FREE), IN(AWAITS_REP) },
	{ STEP(REQ_DROPPED), IN(AWAITS_REP), IN(FREE) },
	{ STEP(REQ_DROPPED), IN(AWAITS_SIDR_REP), IN(FREE) },
	{ STEP(MRA_SENT), IN(AWAITS_REP), IN(AWAITS_REP) },
	{ STEP(MRA_SENT), IN(AWAITS_RTU), IN(AWAITS_RTU) },
	{ STEP(MRA_CAME), IN(REQ_SENT), IN(REQ_SENT) },
	{ STEP(MRA_CAME), IN(REP_SENT), IN(REP_SENT) },
	{ STEP(REP_SENT), IN(AWAITS_REP), IN(REP_SENT) },
	{ STEP(REP_CAME), IN(REQ_SENT), IN(AWAITS_RTU) },
	{ STEP(RTU_SENT), IN(AWAITS_RTU), IN(ESTABLISHED) },
	{ STEP(RTU_CAME), IN(REP_SENT), IN(ESTABLISHED) },
	{ STEP(SIDR_REQ_SENT), IN(FREE), IN(SIDR_SENT) },
	{ STEP(SIDR_REQ_CAME), IN(FREE), IN(AWAITS_SIDR_REP) },
	{ STEP(SIDR_REP_SENT), IN(AWAITS_SIDR_REP), IN(TIMEWAIT) },
	{ STEP(SIDR_REP_CAME), IN(SIDR_SENT), IN(TIMEWAIT) },
	{ STEP(SIDR_NO_SENT), IN(AWAITS_SIDR_REP), IN(TIMEWAIT) },
	{ STEP(SIDR_NO_CAME), IN(SIDR_SENT), IN(TIMEWAIT) },
	{ STEP(REJ_SENT), IN(AWAITS_REP), IN(TIMEWAIT) },
	{ STEP(REJ_SENT), IN(AWAITS_RTU), IN(TIMEWAIT) },
	{ STEP(REJ_CAME), IN(REQ_SENT), IN(TIMEWAIT) },
	{ STEP(REJ_CAME), IN(AWAITS_REP), IN(TIMEWAIT) },
	{ STEP(REJ_CAME), IN(REP_SENT), IN(TIMEWAIT) },
	{ STEP(REJ_CAME), IN(AWAITS_RTU), IN(TIMEWAIT) },
	{ STEP(REJ_CAME), IN(ESTABLISHED), IN(TIMEWAIT) },
	{ STEP(NO_ANSWER), IN(REQ_SENT), IN(TIMEWAIT) },
	{ STEP(NO_ANSWER), IN(REP_SENT), IN(TIMEWAIT) },
	{ STEP(NO_ANSWER), IN(SIDR_SENT), IN(TIMEWAIT) },
	{ STEP(DREQ_SENT), IN(REP_SENT), IN(DREQ_SENT) },
	{ STEP(DREQ_SENT), IN(ESTABLISHED), IN(DREQ_SENT) },
	{ STEP(DREQ_CAME), IN(REP_SENT), IN(AWAITS_DREP) },
	{ STEP(DREQ_CAME), IN(AWAITS_RTU), IN(AWAITS_DREP) },
	{ STEP(DREQ_CAME), IN(ESTABLISHED), IN(AWAITS_DREP) },
	{ STEP(DREP_SENT), IN(AWAITS_DREP), IN(TIMEWAIT) },
	{ STEP(DREP_CAME), IN(DREQ_SENT), IN(TIMEWAIT) },
	{ STEP(PEER_FORGOT), IN(ESTABLISHED), IN(TIMEWAIT) },
	{ STEP(TIMEWAIT_OVER), IN(TIMEWAIT), IN(FREE) },
};

static void
agent_does_that_and_no_more(void)
{
	for (unsigned int step = 0; step < RCD_CM_STEPS; step++)
		for (uint8_t from = 0; from < AGENT_STATES; from++) {
			uint8_t state = from, to = from;
			bool may = false;

			for (size_t i = 0; i < RCD_ARRAY_COUNT(agent_moves); i++)
				if (agent_moves[i].step == step && agent_moves[i].from == from) {
					may = true;
					to = agent_moves[i].to;
				}
			CU_ASSERT_EQUAL(rcd_cm_move_may(&rcd_cm_rows[step].agent, from), may);
			CU_ASSERT_EQUAL(rcd_cm_move(&rcd_cm_rows[step].agent, &state), may);
			CU_ASSERT_EQUAL(state, to);
		}
}

/* In each state of the service, a character for each step: where it leads, - nowhere. */
static void
service_does_that_and_no_more(void)
{
	static const char letters[SERVICE_STATES + 1] = "IBLQARCDX";
	static const struct {
		uint8_t step;
		const char *to; /* by state, in the order of the letters */
	} rows[] = {
		{ STEP(BIND), "B--------" },
		{ STEP(LISTEN), "-L-------" },
		{ STEP(ADDR_ASKED), "-Q-------" },
		{ STEP(ADDR_FOUND), "---A-----" },
		{ STEP(ADDR_FAILED), "---B-----" },
		{ STEP(ROUTE_FOUND), "----R----" },
		{ STEP(REQ_SENT), "-----C---" },
		{ STEP(SIDR_REQ_SENT), "-----C---" },
		{ STEP(REQ_CAME), "C--------" },
		{ STEP(SIDR_REQ_CAME), "C--------" },
		{ STEP(MRA_SENT), "---------" },
		{ STEP(MRA_CAME), "---------" },
		{ STEP(REP_SENT), "------C--" },
		{ STEP(REP_CAME), "------C--" },
		{ STEP(RTU_SENT), "------C--" },
		{ STEP(RTU_CAME), "------C--" },
		{ STEP(SIDR_REP_SENT), "------C--" },
		{ STEP(SIDR_REP_CAME), "------C--" },
		{ STEP(DREQ_SENT), "------C--" },
		{ STEP(DREQ_CAME), "---------" },
		{ STEP(SIDR_NO_SENT), "------D--" },
		{ STEP(SIDR_NO_CAME), "------D--" },
		{ STEP(REJ_SENT), "------D--" },
		{ STEP(REJ_CAME), "------D--" },
		{ STEP(NO_ANSWER), "------D--" },
		{ STEP(DREP_SENT), "------D--" },
		{ STEP(DREP_CAME), "------D--" },
		{ STEP(PEER_FORGOT), "------D--" },
		{ STEP(TIMEWAIT_OVER), "------CD-" },
		{ STEP(DEVICE_GONE), "-XXXXXXX-" },
		{ STEP(REQ_DROPPED), "---------" },
		{ STEP(LOOKED_AT), "---------" },
		{ STEP(CONFIRM_FAILED), "---------" },
	};

	CU_ASSERT_EQUAL(RCD_ARRAY_COUNT(rows), RCD_CM_STEPS);
	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++)
		for (uint8_t from = 0; from < SERVICE_STATES; from++) {
			bool may = rows[i].to[from] != '-';
			uint8_t state = from;

			CU_ASSERT_EQUAL(
				rcd_cm_move(&rcd_cm_rows[rows[i].step].service, &state), may);
			CU_ASSERT_EQUAL(letters[state], may ? rows[i].to[from] : letters[from]);
		}
}

/* Its states are three flags that exclude each other. */
static void
library_tells_what_there_is_to_tell(void)
{
	static const uint8_t told[] = { STEP(REJ_CAME), STEP(DREP_CAME) };
	uint8_t state = RCD_RM_IN_HAND;

	for (size_t i = 0; i < RCD_ARRAY_COUNT(told); i++)
		for (uint8_t from = 0; from < LIBRARY_STATES; from++) {
			state = from;
			CU_ASSERT_EQUAL(rcd_cm_move(&rcd_cm_rows[told[i]].library, &state),
				from != RCD_RM_FAILED);
			CU_ASSERT_EQUAL(state, from);
		}
	state = RCD_RM_IN_HAND;
	CU_ASSERT_FALSE(rcd_cm_move(&rcd_cm_rows[STEP(LOOKED_AT)].library, &state));
	CU_ASSERT_TRUE(rcd_cm_move(&rcd_cm_rows[STEP(REQ_CAME)].library, &state));
	CU_ASSERT_EQUAL(state, RCD_RM_UNSEEN);
	CU_ASSERT_FALSE(rcd_cm_move(&rcd_cm_rows[STEP(CONFIRM_FAILED)].library, &state));
	CU_ASSERT_TRUE(rcd_cm_move(&rcd_cm_rows[STEP(LOOKED_AT)].library, &state));
	CU_ASSERT_EQUAL(state, RCD_RM_IN_HAND);
	CU_ASSERT_TRUE(rcd_cm_move(&rcd_cm_rows[STEP(CONFIRM_FAILED)].library, &state));
	CU_ASSERT_EQUAL(state, RCD_RM_FAILED);
}

/* Steps of a life, and the states of agent, service and library behind each. */
struct point {
	uint8_t step, agent, service, library;
};

#define AT(step, agent, service, library)                                                          \
	{                                                                                          \
		STEP(step), RCD_CM_STATE_##agent, RCD_CMA_##service, RCD_RM_##library              \
	}

/* A layer that takes no part in a step stays as it is. */
static void
live(const struct point *points, size_t count)
{
	uint8_t agent = RCD_CM_STATE_FREE;
	uint8_t service = RCD_CMA_IDLE;
	uint8_t library = RCD_RM_IN_HAND;

	for (size_t i = 0; i < count; i++) {
		const struct rcd_cm_row *row = &rcd_cm_rows[points[i].step];

		CU_ASSERT_EQUAL(rcd_cm_move(&row->agent, &agent), row->agent.from != 0);
		CU_ASSERT_EQUAL(rcd_cm_move(&row->service, &service), row->service.from != 0);
		CU_ASSERT_EQUAL(rcd_cm_move(&row->library, &library), row->library.from != 0);
		CU_ASSERT_EQUAL(agent, points[i].agent);
		CU_ASSERT_EQUAL(service, points[i].service);
		CU_ASSERT_EQUAL(library, points[i].library);
	}
}

static void
lives_go_side_by_side(void)
{
	static const struct point active[] = {
		AT(BIND, FREE, BOUND, IN_HAND),
		AT(ADDR_ASKED, FREE, ADDR_QUERY, IN_HAND),
		AT(ADDR_FAILED, FREE, BOUND, IN_HAND),
		AT(ADDR_ASKED, FREE, ADDR_QUERY, IN_HAND),
		AT(ADDR_FOUND, FREE, ADDR_RESOLVED, IN_HAND),
		AT(ROUTE_FOUND, FREE, ROUTE_RESOLVED, IN_HAND),
		AT(REQ_SENT, REQ_SENT, CONNECT, IN_HAND),
		AT(MRA_CAME, REQ_SENT, CONNECT, IN_HAND),
		AT(REP_CAME, AWAITS_RTU, CONNECT, IN_HAND),
		AT(MRA_SENT, AWAITS_RTU, CONNECT, IN_HAND),
		AT(RTU_SENT, ESTABLISHED, CONNECT, IN_HAND),
		AT(DREQ_SENT, DREQ_SENT, CONNECT, IN_HAND),
		AT(DREP_CAME, TIMEWAIT, DISCONNECT, IN_HAND),
		AT(TIMEWAIT_OVER, FREE, DISCONNECT, IN_HAND),
	};
	static const struct point passive[] = {
		AT(REQ_CAME, AWAITS_REP, CONNECT, UNSEEN),
		AT(MRA_SENT, AWAITS_REP, CONNECT, UNSEEN),
		AT(LOOKED_AT, AWAITS_REP, CONNECT, IN_HAND),
		AT(REP_SENT, REP_SENT, CONNECT, IN_HAND),
		AT(MRA_CAME, REP_SENT, CONNECT, IN_HAND),
		AT(RTU_CAME, ESTABLISHED, CONNECT, IN_HAND),
		AT(DREQ_CAME, AWAITS_DREP, CONNECT, IN_HAND),
		AT(DREP_SENT, TIMEWAIT, DISCONNECT, IN_HAND),
		AT(TIMEWAIT_OVER, FREE, DISCONNECT, IN_HAND),
	};
	static const struct point unseen[] = {
		AT(REQ_CAME, AWAITS_REP, CONNECT, UNSEEN),
		AT(REJ_CAME, TIMEWAIT, DISCONNECT, UNSEEN),
	};
	static const struct point asks[] = {
		AT(BIND, FREE, BOUND, IN_HAND),
		AT(ADDR_ASKED, FREE, ADDR_QUERY, IN_HAND),
		AT(ADDR_FOUND, FREE, ADDR_RESOLVED, IN_HAND),
		AT(ROUTE_FOUND, FREE, ROUTE_RESOLVED, IN_HAND),
		AT(SIDR_REQ_SENT, SIDR_SENT, CONNECT, IN_HAND),
		AT(SIDR_REP_CAME, TIMEWAIT, CONNECT, IN_HAND),
		AT(TIMEWAIT_OVER, FREE, CONNECT, IN_HAND),
		AT(DEVICE_GONE, FREE, DEVICE_REMOVAL, IN_HAND),
	};
	static const struct point refuses[] = {
		AT(SIDR_REQ_CAME, AWAITS_SIDR_REP, CONNECT, UNSEEN),
		AT(LOOKED_AT, AWAITS_SIDR_REP, CONNECT, IN_HAND),
		AT(SIDR_NO_SENT, TIMEWAIT, DISCONNECT, IN_HAND),
		AT(TIMEWAIT_OVER, FREE, DISCONNECT, IN_HAND),
	};

	live(active, RCD_ARRAY_COUNT(active));
	live(passive, RCD_ARRAY_COUNT(passive));
	live(unseen, RCD_ARRAY_COUNT(unseen));
	live(asks, RCD_ARRAY_COUNT(asks));
	live(refuses, RCD_ARRAY_COUNT(refuses));
}

/* From FREE to each state of the agent, and from each back to FREE. */
static void
every_state_has_a_way_in_and_out(void)
{
	uint16_t reached = 1u << RCD_CM_STATE_FREE, ending = reached;

	for (int round = 0; round < AGENT_STATES; round++)
		for (int step = 0; step < RCD_CM_STEPS; step++) {
			const struct rcd_cm_move *move = &rcd_cm_rows[step].agent;

			if (move->to == RCD_CM_STAY)
				continue;
			if (move->from & reached)
				reached |= (uint16_t)(1u << move->to);
			if (ending >> move->to & 1)
				ending |= move->from;
		}
	CU_ASSERT_EQUAL(reached, (1u << AGENT_STATES) - 1);
	CU_ASSERT_EQUAL(ending, (1u << AGENT_STATES) - 1);
	for (int step = 0; step < RCD_CM_STEPS; step++)
		CU_ASSERT_PTR_NOT_NULL(rcd_cm_rows[step].name);
}

static void
states_have_the_names_of_iproute2(void)
{
	CU_ASSERT_STRING_EQUAL(rcd_cma_state_name(RCD_CMA_IDLE), "IDLE");
	CU_ASSERT_STRING_EQUAL(rcd_cma_state_name(RCD_CMA_BOUND), "ADDR_BOUND");
	CU_ASSERT_STRING_EQUAL(rcd_cma_state_name(RCD_CMA_DEVICE_REMOVAL), "DEVICE_REMOVAL");
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(agent_does_that_and_no_more),
		RCD_TEST(service_does_that_and_no_more),
		RCD_TEST(library_tells_what_there_is_to_tell),
		RCD_TEST(lives_go_side_by_side),
		RCD_TEST(every_state_has_a_way_in_and_out),
		RCD_TEST(states_have_the_names_of_iproute2),
	};

	return rcd_tap_run("cm_step", tests, RCD_ARRAY_COUNT(tests));
}
