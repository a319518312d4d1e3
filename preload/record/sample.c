/* SPDX-License-Identifier: MIT */
/* sample.c - the dice and the weights, in fixed point; see sample.h. */
#include "preload/record/sample.h"

#include "preload/base/sys.h"

__extension__ typedef unsigned __int128 wide;

enum { LOG_BITS = 32, TERMS = 24, CERTAIN = 40 /* exp(-40) is less than the last bit */ };

static const unsigned one_bits = 60;
static const uint64_t one = UINT64_C(1) << 60;
static const uint64_t log2_e = UINT64_C(1663314137230540311); /* of 60 bits */
static const uint64_t ln_2 = UINT64_C(799144290325165979);
static const uint64_t ln_2_short = UINT64_C(2977044472); /* of 32 bits */

/* splitmix64: any state will do, and neighbours have nothing in common. */
static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

static uint64_t roll(struct lw_thread *thread)
{
	thread->dice += UINT64_C(0x9e3779b97f4a7c15);
	return mix(thread->dice);
}

/* -log2(u / 2^64), of 32 bits: the square of a number has twice its logarithm, so each squaring shows one more bit. */
static uint64_t minus_log2(uint64_t u)
{
	unsigned shift = (unsigned)__builtin_clzll(u | 1);
	uint64_t m = (u | 1) << shift, log = 0; /* from 2^63 on */

	for (unsigned i = 0; i < LOG_BITS; i++) {
		wide square = (wide)m * m;
		bool is_two = square >> 127;

		log = log << 1 | is_two;
		m = (uint64_t)(square >> (is_two ? 64 : 63));
	}
	return ((uint64_t)(1 + shift) << LOG_BITS) - log;
}

static uint64_t draw(struct lw_thread *thread)
{
	uint64_t nats = (uint64_t)((wide)minus_log2(roll(thread)) * ln_2_short >> LOG_BITS);

	return (uint64_t)((wide)lw_hot.sample_bytes * nats >> LOG_BITS);
}

uint8_t lw_sample_counters[1 << LW_SAMPLE_COUNTER_BITS] LW_ROOM;

/* Several blocks may share a counter, and threads take turns at it. One that is full is not counted down again. */
static void step_counter(uintptr_t address, bool is_up)
{
	uint8_t *counter = lw_sample_counter(address), now = lw_load(counter);

	while (now != UINT8_MAX && (is_up || now) &&
			!__atomic_compare_exchange_n(counter, &now, (uint8_t)(is_up ? now + 1 : now - 1), false,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void lw_sample_count_in(uintptr_t address)
{
	if (lw_hot.sample_bytes)
		step_counter(address, true);
}

void lw_sample_count_out(uintptr_t address)
{
	if (lw_hot.sample_bytes)
		step_counter(address, false);
}

LW_COLD bool lw_sample_next(struct lw_thread *thread, uint64_t bytes)
{
	if (!thread->dice) {
		thread->dice = mix(lw_sys_clock_ns(CLOCK_MONOTONIC) ^ (uintptr_t)thread << 20 ^ (uint64_t)lw_sys_gettid()) | 1;
		thread->until_sample = draw(thread);
		if (bytes <= thread->until_sample) {
			thread->until_sample -= bytes;
			return true;
		}
	}
	thread->until_sample = draw(thread);
	return false;
}

/* 1 - exp(-z) for z up to 1, by its series; of 60 bits. */
static uint64_t one_minus_exp(uint64_t z)
{
	int64_t sum = 0, term = (int64_t)z;

	for (int i = 2; term && i < TERMS; i++) {
		sum += i % 2 ? -term : term;
		term = (int64_t)((wide)(uint64_t)term * z >> one_bits) / i;
	}
	return (uint64_t)sum;
}

/* The probability that a block of so many bytes is recorded, of 60 bits. */
static uint64_t probability(uint64_t bytes)
{
	wide powers = (wide)bytes * log2_e / lw_hot.sample_bytes; /* exp(-x) is 2 to the minus this */
	unsigned whole = (unsigned)(powers >> one_bits);
	uint64_t rest = (uint64_t)powers & (one - 1), q;

	q = one_minus_exp((uint64_t)((wide)rest * ln_2 >> one_bits));
	return one - ((one - q) >> whole);
}

struct lw_weight lw_sample_weigh(uintptr_t address, uint64_t bytes)
{
	uint64_t p, part = mix(address) >> (64 - one_bits);
	bool is_empty = !bytes; /* chosen as if it were one byte, but it is none */

	bytes += is_empty;
	if (bytes / CERTAIN >= lw_hot.sample_bytes)
		return (struct lw_weight){ is_empty ? 0 : bytes, 1 };
	p = probability(bytes);
	/* a part of a block is rounded up or down by the address, so often up as it should be */
	return (struct lw_weight){
		is_empty ? 0 : (uint64_t)((((wide)bytes << one_bits) + p / 2) / p),
		(uint64_t)(((wide)one + ((wide)part * p >> one_bits)) / p),
	};
}
