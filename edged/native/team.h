/* The threads that share a call: who takes which items, and how they wait for one another.
 *
 * A call is a row of phases. In each, the items (rows of a matrix, heads, tokens) are divided evenly, so that a thread
 * reads memory in order; one that is done early takes over what another has not begun. Thread 0 is the caller's; the
 * others live in `help`, spin for a moment between calls, then sleep.
 */
#ifndef EDGED_TEAM_H
#define EDGED_TEAM_H

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE 64 /* bytes that two cores should not write at the same time */
#define SPINS_INSIDE 400    /* at a barrier, some 9 us, before others are let onto the core: the one waited for may be
			       among them, and a step has 230 barriers */
#define SPINS_BETWEEN 20000 /* after a call, before sleeping: the next step mostly comes within 0.3 ms */

struct counter {
	_Alignas(LINE) atomic_int taken;
};

struct team {
	_Alignas(LINE) atomic_uint arrived; /* at barriers, of all threads and calls */
	_Alignas(LINE) atomic_uint call;    /* number of the call; helpers begin when it changes */
	atomic_uint sleepers;
	atomic_int stop;
	int threads, phases;
	struct counter *counters; /* [phases, threads] */
};

struct member {
	struct team *team;
	int index, phase;
	unsigned barriers; /* `arrived` once all have come to the next one */
};

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

/* Ends a phase: nobody goes on before all have come. */
static inline void together(struct member *me)
{
	struct team *team = me->team;
	me->phase++;
	if (team->threads == 1)
		return;
	me->barriers += (unsigned)team->threads;
	atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel);
	for (int n = 0; (int)(atomic_load_explicit(&team->arrived, memory_order_acquire) - me->barriers) < 0; n++) {
		if (n < SPINS_INSIDE)
			relax();
		else
			sched_yield();
	}
}

struct share {
	int victim, left; /* whose items are being taken, and from how many threads they still can be */
};

/* The next items, from..to - 1, at most `piece`; 0 when all are taken. */
static inline int next(const struct member *me, struct share *share, int items, int piece, int *from, int *to)
{
	const struct team *team = me->team;
	while (share->left) {
		int begin = (int)((int64_t)items * share->victim / team->threads);
		int end = (int)((int64_t)items * (share->victim + 1) / team->threads);
		atomic_int *taken = &team->counters[me->phase * team->threads + share->victim].taken;
		*from = begin + atomic_fetch_add_explicit(taken, piece, memory_order_relaxed);
		if (*from < end) {
			*to = *from + piece < end ? *from + piece : end;
			return 1;
		}
		share->victim = share->victim + 1 == team->threads ? 0 : share->victim + 1;
		share->left--;
	}
	return 0;
}

static inline struct share share_of(const struct member *me)
{
	return (struct share){me->index, me->team->threads};
}

/* Caller: begins a call. */
static inline void begin(struct member *me)
{
	struct team *team = me->team;
	me->phase = 0;
	for (int n = 0; n < team->phases * team->threads; n++)
		atomic_store_explicit(&team->counters[n].taken, 0, memory_order_relaxed);
	atomic_fetch_add(&team->call, 1);
	if (atomic_load(&team->sleepers))
		syscall(SYS_futex, &team->call, FUTEX_WAKE_PRIVATE, team->threads, 0, 0, 0);
}

/* Helper: waits for a call after number `seen`; its number. */
static inline unsigned await(struct team *team, unsigned seen)
{
	unsigned now;
	for (int n = 0; n < SPINS_BETWEEN; n++) {
		if ((now = atomic_load_explicit(&team->call, memory_order_acquire)) != seen)
			return now;
		relax();
	}
	atomic_fetch_add(&team->sleepers, 1);
	while ((now = atomic_load(&team->call)) == seen)
		syscall(SYS_futex, &team->call, FUTEX_WAIT_PRIVATE, seen, 0, 0, 0);
	atomic_fetch_sub(&team->sleepers, 1);
	return now;
}

#endif
