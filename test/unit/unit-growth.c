/* SPDX-License-Identifier: MIT */
/*
 * unit-growth.c - how often the growth verdict errs, measured on thousands of made-up sites, and its
 * edges.
 *
 * Each kind of behaviour is a function of time with random parameters. It is looked at as the library
 * looks: LW_HISTORY_SAMPLES moments that are left of a run after random moments in doubling intervals
 * (history.h), plus the last moment. The table that is printed is the claim; the checks hold it to at
 * most 1 % of false accusations for each kind (more where the kind says so: what looks like a leak in the
 * time it is looked at), and at most 5 % of misses for leaks that gain at least
 * twice the noise (its amplitude) within the run.
 */
#include "test/unit/tap.h"

#include <math.h>
#include <stdlib.h>

#include "preload/share/region.h"
#include "snapshot/model/growth.h"

enum { NR_SERIES = 2000, SAMPLES = LW_HISTORY_SAMPLES, RUNS = 3 };

/* ---- chance ---- */

static uint64_t state = 88172645463325252u;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / 9007199254740992.0;
}

static double between(double low, double high)
{
	return low + (high - low) * uniform();
}

static double log_between(double low, double high)
{
	return exp(between(log(low), log(high)));
}

static double gauss(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

/* ---- what a site may do; time runs from 0 to 1 ---- */

struct site {
	double level, noise, gain, period, phase, at, shape;
	bool is_gauss;
	double now, like; /* of the processes with a memory: where it is, how alike neighbours are */
	double at_time[16];
	double run_s, last_t; /* for what goes on step by step */
};

/* Amplitude `noise`: of all values if uniform, of 95 % if normal. */
static double noise(const struct site *site)
{
	return site->noise * (site->is_gauss ? gauss() / 2 : between(-1, 1));
}

static double cycle(const struct site *site, double t)
{
	double place = t / site->period + site->phase;

	return place - floor(place);
}

static double leak(struct site *site, double t)
{
	return site->level + site->gain * t + noise(site);
}

static double steady(struct site *site, double t)
{
	(void)t;
	return site->level + noise(site);
}

static double alike(struct site *site, double t)
{
	(void)t;
	site->now = site->like * site->now + sqrt(1 - site->like * site->like) * noise(site);
	return site->level + site->now;
}

static double sawtooth(struct site *site, double t)
{
	return site->level + site->gain * cycle(site, t) + noise(site);
}

static double triangle(struct site *site, double t)
{
	return site->level + site->gain * fabs(2 * cycle(site, t) - 1) + noise(site);
}

static double fill(struct site *site, double t)
{
	return site->level + site->gain * fmin(1, t / site->at) + noise(site);
}

static double saturate(struct site *site, double t)
{
	return site->level + site->gain * (1 - exp(-t / site->at)) + noise(site);
}

static double step(struct site *site, double t)
{
	return site->level + (t > site->at ? site->gain : 0) + noise(site);
}

/* A few large blocks that stay. */
static double blocks(struct site *site, double t)
{
	double held = site->level;

	for (int i = 0; i < (int)site->shape; i++)
		held += t > site->at_time[i] ? site->gain : 0;
	return held;
}

static double daily(struct site *site, double t)
{
	double angle = 6.283185307179586 * cycle(site, t);

	return site->level + site->gain * (sin(angle) + site->shape * sin(2 * angle)) + noise(site);
}

/* Between two walls; `like` is the step, as a part of the way from wall to wall. */
static double walk(struct site *site, double t)
{
	(void)t;
	site->now += site->like * gauss();
	while (site->now < 0 || site->now > 1)
		site->now = site->now < 0 ? -site->now : 2 - site->now;
	return site->level + site->gain * site->now;
}

/* A queue as often served as filled, every 5 ms, from empty; never less than empty. */
static double queue(struct site *site, double t)
{
	double nr_steps = (t - site->last_t) * site->run_s / 0.005;

	site->now = fabs((t <= site->last_t ? 0 : site->now) + sqrt(fmax(nr_steps, 0)) * gauss());
	site->last_t = t;
	return 200 * site->now;
}

/* `shape` equal steps, one at some moment of each equal part of the time (`like` of it), none given back. */
static double stairs(struct site *site, double t)
{
	double held = site->level;

	for (int i = 0; i < (int)site->shape; i++)
		held += t * (int)site->shape > i + 0.5 + site->like * (site->at_time[i] - 0.5) ? site->gain : 0;
	return held;
}

/* Up from the lowest, down again before the end. */
static double one_cycle(struct site *site, double t)
{
	return site->level + site->gain * (1 - cos(6.283185307179586 * t / site->at)) / 2 + noise(site);
}

/* 500 + 400 * sin(angle): begins half way. */
static double late_cycle(struct site *site, double t)
{
	return site->level + site->gain * sin(3.141592653589793 * t * site->at) + noise(site);
}

/* All of it in the first moments, and nothing after. */
static double startup(struct site *site, double t)
{
	return site->gain * fmin(1, t / site->at) + noise(site);
}

static double leak_and_saw(struct site *site, double t)
{
	return site->level + site->gain * t + site->noise * (2 * cycle(site, t) - 1);
}

static double leak_alike(struct site *site, double t)
{
	return alike(site, t) + site->gain * t;
}

static double leak_bent(struct site *site, double t)
{
	return site->level + site->gain * pow(t, site->shape) + noise(site);
}

struct range {
	double low, high;
};

struct kind {
	const char *name;
	double (*value)(struct site *, double t);
	struct range period, gain; /* in runs; in amplitudes of the noise */
	struct range at, like, shape;
	bool is_seen_by_steps; /* nothing else allocates: measured at each step, as it begins, and at the end */
	bool is_never_flat;    /* "grew, and is flat since" would be false */
	unsigned most_accused; /* per cent; 0: 1 */
	unsigned most_missed; /* per cent, of leaks that gain two amplitudes or more */
};

static const struct kind leaks[] = {
	{"leak", leak, .gain = {0.064, 64}, .most_missed = 5},
	{"leak with a sawtooth", leak_and_saw, {0.005, 0.3}, {0.5, 64}, .most_missed = 5},
	{"leak, faster or slower", leak_bent, .gain = {0.5, 64}, .shape = {0.7, 1.6}, .most_missed = 5},
	{"6 steps", stairs, .gain = {2, 64}, .shape = {6, 6}, .like = {0, 1}, .most_missed = 5},
	{"6 steps, else idle", stairs, .gain = {2, 64}, .shape = {6, 6}, .like = {0, 1},
		.is_seen_by_steps = true, .most_missed = 5},
	{"8 steps", stairs, .gain = {2, 64}, .shape = {8, 8}, .like = {0, 1}, .most_missed = 5},
	{"8 steps, else idle", stairs, .gain = {2, 64}, .shape = {8, 8}, .like = {0, 1},
		.is_seen_by_steps = true, .most_missed = 5},
	{"12 steps", stairs, .gain = {2, 64}, .shape = {12, 12}, .like = {0, 1}, .most_missed = 5},
	{"12 steps, else idle", stairs, .gain = {2, 64}, .shape = {12, 12}, .like = {0, 1},
		.is_seen_by_steps = true, .most_missed = 5},
	{"leak, alike noise", leak_alike, .gain = {0.5, 64}, .like = {0.2, 0.6}, .most_missed = 5},
};

static const struct kind others[] = {
	{"steady noise", steady},
	{"noise like its neighbours", alike, .like = {0.3, 0.95}},
	{"sawtooth", sawtooth, {0.004, 0.6}, {2, 1000}},
	{"triangle", triangle, {0.004, 0.6}, {2, 1000}},
	{"fill, then stop", fill, .gain = {2, 1000}, .at = {0.02, 0.66}},
	{"saturation", saturate, .gain = {2, 1000}, .at = {0.02, 0.2}},
	{"slow saturation, 8 x noise", saturate, .gain = {8, 1000}, .at = {0.2, 0.5}},
	{"slow saturation, 2-8 x noise", saturate, .gain = {2, 8}, .at = {0.2, 0.5}, .most_accused = 18},
	{"slow saturation, no noise", saturate, .gain = {1e6, 1e6}, .at = {0.1, 0.5}},
	{"one cycle", one_cycle, .gain = {4, 1e5}, .at = {1, 1.65}, .is_never_flat = true},
	{"one cycle from half way", late_cycle, .gain = {4, 1e5}, .at = {1.3, 2}, .is_never_flat = true},
	{"1 step", stairs, .gain = {1, 2}, .shape = {1, 1}, .like = {1, 1}},
	{"1 step, else idle", stairs, .gain = {1, 2}, .shape = {1, 1}, .like = {1, 1},
		.is_seen_by_steps = true},
	{"2 steps", stairs, .gain = {1, 2}, .shape = {2, 2}, .like = {1, 1}},
	{"2 steps, else idle", stairs, .gain = {1, 2}, .shape = {2, 2}, .like = {1, 1},
		.is_seen_by_steps = true},
	{"3 steps", stairs, .gain = {1, 2}, .shape = {3, 3}, .like = {1, 1}},
	{"3 steps, else idle", stairs, .gain = {1, 2}, .shape = {3, 3}, .like = {1, 1},
		.is_seen_by_steps = true},
	{"4 steps", stairs, .gain = {1, 2}, .shape = {4, 4}, .like = {0, 1}},
	{"4 steps, else idle", stairs, .gain = {1, 2}, .shape = {4, 4}, .like = {0, 1},
		.is_seen_by_steps = true},
	{"5 steps", stairs, .gain = {1, 2}, .shape = {5, 5}, .like = {0, 1}},
	{"5 steps, else idle", stairs, .gain = {1, 2}, .shape = {5, 5}, .like = {0, 1},
		.is_seen_by_steps = true},
	{"queue, a walk from empty", queue, .most_accused = 5},
	{"step", step, .gain = {2, 1000}, .at = {0.02, 0.98}},
	{"a few blocks", blocks, .gain = {1, 2}, .shape = {1, 6}},
	{"daily cycle", daily, {0.03, 0.8}, {2, 1000}, .shape = {0, 0.5}},
	{"bounded random walk", walk, .gain = {10, 10}, .like = {0.25, 1}},
	{"start-up", startup, .gain = {2, 1000}, .at = {0.0001, 0.08}},
};

static struct site make_site(const struct kind *kind)
{
	struct site site = {.is_gauss = uniform() < 0.5, .phase = uniform(), .now = uniform()};

	site.noise = log_between(100, 1e6);
	site.gain = site.noise * (kind->gain.low > 0 ? log_between(kind->gain.low, kind->gain.high) : 1);
	site.period = kind->period.low > 0 ? log_between(kind->period.low, kind->period.high) : 1;
	site.at = between(kind->at.low, kind->at.high);
	site.like = between(kind->like.low, kind->like.high);
	site.shape = between(kind->shape.low, kind->shape.high);
	site.level = 2 * site.noise + (uniform() < 0.5 ? 0 : log_between(1, 1000) * site.noise);
	for (int i = 0; i < 16; i++)
		site.at_time[i] = uniform();
	return site;
}

/* ---- how it is looked at ---- */

struct sampling {
	double s[SAMPLES];
	int nr, nr_merged;
	double interval;
};

/* As the library chooses its moments: see history.c. */
static void take(struct sampling *sampling, double s)
{
	int at;

	if (sampling->nr == SAMPLES) {
		if (sampling->nr_merged == SAMPLES / 2) {
			sampling->nr_merged = 0;
			sampling->interval *= 2;
		}
		at = sampling->nr_merged++ + (uniform() < 0.5);
		sampling->nr--;
		memmove(sampling->s + at, sampling->s + at + 1,
			(size_t)(sampling->nr - at) * sizeof(double));
	}
	sampling->s[sampling->nr++] = s;
}

static size_t look_at_steps(struct site *site, double run_s, struct growth_point *points)
{
	int nr_steps = (int)site->shape;

	for (int i = 0; i < nr_steps; i++) {
		double t = (i + 0.5 + site->like * (site->at_time[i] - 0.5)) / nr_steps;

		points[i] = (struct growth_point){t * run_s, site->level + site->gain * (i + 0.02)};
	}
	points[nr_steps] = (struct growth_point){run_s, site->level + site->gain * nr_steps};
	return (size_t)nr_steps + 1;
}

static size_t look(const struct kind *kind, struct site *site, double run_s, struct growth_point *points)
{
	struct sampling sampling = {.nr_merged = SAMPLES / 2, .interval = 0.05};
	size_t nr;

	if (kind->is_seen_by_steps)
		return look_at_steps(site, run_s, points);
	for (double begin = 0.05, s; begin < run_s;
		begin = (floor(s / sampling.interval) + 1) * sampling.interval) {
		s = begin + uniform() * sampling.interval;
		if (s < run_s)
			take(&sampling, s);
	}
	for (nr = 0; nr < (size_t)sampling.nr; nr++)
		points[nr] = (struct growth_point){
			sampling.s[nr], fmax(0, kind->value(site, sampling.s[nr] / run_s))};
	points[nr++] = (struct growth_point){run_s, fmax(0, kind->value(site, 1))};
	return nr;
}

struct tally {
	unsigned nr, nr_growing, nr_bounded;
};

static void judge_one(const struct kind *kind, struct site *site, struct tally *tally)
{
	static const double runs_s[RUNS] = {2.5, 9, 4321};
	struct growth_point points[SAMPLES + 1];
	struct growth growth;
	size_t nr;

	site->run_s = runs_s[(size_t)(uniform() * RUNS)];
	nr = look(kind, site, site->run_s, points);
	growth_judge(points, nr, &growth);
	tally->nr++;
	tally->nr_growing += growth.kind == GROWTH_GROWING;
	tally->nr_bounded += growth.kind == GROWTH_BOUNDED;
}

static double percent(unsigned part, unsigned of)
{
	return of ? 100.0 * part / of : 0;
}

/* ---- the table ---- */

static void test_others(void)
{
	printf("# %-28s %8s %8s %8s\n", "not a leak", "series", "accused", "bounded");
	for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
		unsigned most = others[k].most_accused ? others[k].most_accused : 1;
		struct tally tally = {0};

		for (int i = 0; i < NR_SERIES; i++) {
			struct site site = make_site(&others[k]);

			judge_one(&others[k], &site, &tally);
		}
		printf("# %-28s %8u %7.2f%% %7.1f%%\n", others[k].name, tally.nr,
			percent(tally.nr_growing, tally.nr), percent(tally.nr_bounded, tally.nr));
		ok(tally.nr_growing * 100 <= most * tally.nr, "%s: at most %u %% accused", others[k].name, most);
		if (others[k].is_never_flat)
			ok(tally.nr_bounded * 100 <= tally.nr, "%s: at most 1 %% bounded", others[k].name);
	}
}

static void test_leaks(void)
{
	static const double edges[] = {0, 0.5, 1, 2, 3, 4, 8, 16, 1e9};
	enum { BUCKETS = sizeof(edges) / sizeof(edges[0]) - 1 };

	printf("# %-28s %8s %8s   missed at a gain of so many amplitudes of the noise\n", "a leak",
		"series", "missed");
	printf("# %-28s %8s %8s ", "", "", ">= 2");
	for (int b = 0; b < BUCKETS; b++)
		printf(" %5.1f-%-4.0f", edges[b], edges[b + 1] < 1e6 ? edges[b + 1] : 0);
	putchar('\n');
	for (size_t k = 0; k < sizeof(leaks) / sizeof(leaks[0]); k++) {
		struct tally tallies[BUCKETS] = {{0}}, all = {0};

		for (int i = 0; i < 2 * NR_SERIES; i++) {
			struct site site = make_site(&leaks[k]);
			int b = 0;

			while (site.gain / site.noise >= edges[b + 1])
				b++;
			judge_one(&leaks[k], &site, &tallies[b]);
		}
		for (int b = 3; b < BUCKETS; b++) {
			all.nr += tallies[b].nr;
			all.nr_growing += tallies[b].nr_growing;
		}
		printf("# %-28s %8u %7.2f%% ", leaks[k].name, all.nr,
			percent(all.nr - all.nr_growing, all.nr));
		for (int b = 0; b < BUCKETS; b++)
			printf(" %9.1f%%", percent(tallies[b].nr - tallies[b].nr_growing, tallies[b].nr));
		putchar('\n');
		ok(all.nr >= 1000 && (all.nr - all.nr_growing) * 100 <= leaks[k].most_missed * all.nr,
			"%s: at most %u %% missed", leaks[k].name, leaks[k].most_missed);
	}
}

/* ---- edges ---- */

static enum growth_kind kind_of(const struct growth_point *points, size_t nr)
{
	struct growth growth;

	growth_judge(points, nr, &growth);
	return growth.kind;
}

static void test_edges(void)
{
	struct growth_point points[3000];
	struct growth growth;

	for (int i = 0; i < 3000; i++)
		points[i] = (struct growth_point){10 + i, 5000 + 1000.0 * i};
	ok(kind_of(points, 0) == GROWTH_STEADY, "no points");
	ok(kind_of(points, GROWTH_LEAST_POINTS - 1) == GROWTH_STEADY, "too few points");
	ok(kind_of(points, 20) == GROWTH_GROWING, "twenty that rise");
	growth_judge(points, 60, &growth);
	ok(fabs(growth.bytes_per_s - 1000) < 1e-6, "its slope is exact without noise");
	ok(growth.since_s >= 0 && growth.since_s <= 15, "since its start: %g", growth.since_s);
	ok(growth.p < 1e-6, "and sure");
	growth_judge(points, 3000, &growth);
	ok(growth.kind == GROWTH_GROWING && fabs(growth.bytes_per_s - 1000) < 1e-3,
		"a long series of a viewer");
	points[7].bytes = NAN;
	ok(kind_of(points, 60) == GROWTH_STEADY, "what is no number is nothing");
	points[7].bytes = HUGE_VAL;
	ok(kind_of(points, 60) == GROWTH_STEADY, "nor what has no end");
	points[7].bytes = 12000;
	points[30].s = 1;
	ok(kind_of(points, 60) == GROWTH_STEADY, "time that falls");
	for (int i = 0; i < 60; i++)
		points[i] = (struct growth_point){5, i};
	ok(kind_of(points, 60) == GROWTH_STEADY, "all at one time");
	for (int i = 0; i < 60; i++)
		points[i] = (struct growth_point){i < 40 ? i : 1e9 + i, 1000.0 * i};
	ok(kind_of(points, 40) == GROWTH_GROWING, "a busy time");
	points[40].bytes = points[39].bytes;
	ok(kind_of(points, 41) != GROWTH_GROWING, "and then a pause: no growth");
	for (int i = 0; i < 60; i++)
		points[i] = (struct growth_point){i, 5e6 + (i / 20) * 1e6};
	ok(kind_of(points, 60) == GROWTH_STEADY, "two large blocks more are no trend");
	for (int i = 0; i < 60; i++)
		points[i] = (struct growth_point){i, 9e18 * i};
	ok(kind_of(points, 60) == GROWTH_GROWING, "numbers as large as can be");
}

/* 64 moments of ten seconds. */
static void judge_curve(double (*value)(double t, double how), double how, struct growth *growth)
{
	struct growth_point points[64];

	for (int i = 0; i < 64; i++)
		points[i] = (struct growth_point){(i + 1) / 6.4, value((i + 1) / 64.0, how)};
	growth_judge(points, 64, growth);
}

/* A ring that grows, and shrinks before the end; angles in parts of a turn, from the middle or from the lowest. */
static double wave(double t, double turns)
{
	return 100 * (500 + 400 * sin(6.283185307179586 * turns * t));
}

static double hill(double t, double turns)
{
	return 100 * (500 - 400 * cos(6.283185307179586 * turns * t));
}

static double slow_fill(double t, double part)
{
	return 100 * floor(2000 * (1 - exp(-t / part)));
}

static double logarithm(double t, double per_run)
{
	return 100 * floor(300 * log(1 + per_run * t));
}

static double power(double t, double exponent)
{
	return 1e6 * pow(t, exponent);
}

static void test_curves(void)
{
	struct growth growth;
	unsigned nr_told = 0, nr_unsaid = 0, nr_growing = 0;

	for (double turns = 0.31; turns < 1; turns += 0.005) {
		judge_curve(wave, turns, &growth);
		nr_told += growth.kind != GROWTH_STEADY;
		judge_curve(hill, turns, &growth);
		/* up to 0.6 of a turn it is still near its highest when it ends */
		nr_told += turns > 0.602 && growth.kind != GROWTH_STEADY;
		nr_unsaid += turns > 0.507 && growth.kind == GROWTH_GROWING && !growth.is_slowing;
	}
	is_u64(nr_told, 0, "up and down again is neither growing nor flat");
	is_u64(nr_unsaid, 0, "at the top of a wave it slows down at least");
	for (double part = 0.05; part <= 0.5; part += 0.01) {
		judge_curve(slow_fill, part, &growth);
		nr_growing += growth.kind == GROWTH_GROWING;
	}
	is_u64(nr_growing, 0, "what fills slowly does not grow");
	for (double per_run = 1; per_run < 1000; per_run *= 1.5) {
		judge_curve(logarithm, per_run, &growth);
		nr_growing += growth.kind == GROWTH_GROWING && per_run > 3 && !growth.is_slowing;
	}
	is_u64(nr_growing, 0, "a logarithm slows down at least");
	judge_curve(power, 0.5, &growth);
	ok(growth.kind == GROWTH_GROWING && growth.is_slowing, "a root grows, but slows down");
	judge_curve(power, 1, &growth);
	ok(growth.kind == GROWTH_GROWING && !growth.is_slowing, "a line does not slow down");
}

static void test_few_points(void)
{
	struct growth_point points[10];

	for (int i = 0; i < 10; i++)
		points[i] = (struct growth_point){i * 0.25, 1000 * (i + 1)};
	ok(kind_of(points, 10) == GROWTH_GROWING, "few points, in seconds without an allocation between");
	ok(kind_of(points, 7) == GROWTH_STEADY, "but not in less than two seconds");
	points[5].bytes = points[4].bytes - 1;
	ok(kind_of(points, 10) == GROWTH_STEADY, "nor if one of them falls");
}

int main(void)
{
	test_edges();
	test_curves();
	test_few_points();
	test_others();
	test_leaks();
	return done();
}
