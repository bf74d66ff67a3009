/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the 5-bit timer codes on the wire and in QP attributes mean, in nanoseconds.
 */
#ifndef RCD_TIMER_H
#define RCD_TIMER_H

#include <stdint.h>

#define RCD_TIMER_CODE_MASK 0x1f

/**
 * The scale that AETH credits and RNR timers share: 1 2 3 4 6 8 12 16 24 ..., two steps to a
 * doubling.
 *
 * @param code  1..32
 */
static inline uint32_t
rcd_code_scale(uint32_t code)
{
	if (code == 1)
		return 1;
	return code % 2 == 0 ? UINT32_C(1) << code / 2 : UINT32_C(3) << (code - 3) / 2;
}

/**
 * How long an RNR NAK with this timer code asks the requester to wait (IBTA Vol. 1, 9.7.5.2.8).
 *
 * @param code  0..31, higher bits are ignored; 0 stands for the longest time
 * @return nanoseconds, 10 us .. 655.36 ms
 */
static inline uint64_t
rcd_rnr_timer_ns(uint8_t code)
{
	code &= RCD_TIMER_CODE_MASK;
	return rcd_code_scale(code == 0 ? 32 : code) * UINT64_C(10000);
}

/**
 * The ACK timeout of a QP, 4.096 us * 2^code (IBTA Vol. 1, 9.7.6.1.3).
 *
 * @param code  0..31, higher bits are ignored
 * @return nanoseconds; 0 when the code is 0: the timer is off
 */
static inline uint64_t
rcd_ack_timeout_ns(uint8_t code)
{
	code &= RCD_TIMER_CODE_MASK;
	return code == 0 ? 0 : UINT64_C(4096) << code;
}

#endif /* RCD_TIMER_H */
