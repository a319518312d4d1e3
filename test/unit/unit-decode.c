/* SPDX-License-Identifier: MIT */
/*
 * unit-decode.c - records that lie about themselves are left out and counted, a stream that is cut
 * or damaged anywhere is read without harm, and the model says that it is not whole.
 */
#include "test/unit/tap.h"
#include "test/unit/fake_region.h"

#include <unistd.h>

#include "snapshot/model/decode.h"
#include "snapshot/source/source.h"

struct bytes {
	unsigned char *data;
	size_t nr, max;
};

static bool keep(void *context, const struct lw_wire_head *record)
{
	struct bytes *to = context;

	while (to->nr + record->bytes > to->max) {
		to->max = to->max ? to->max * 2 : 4096;
		to->data = realloc(to->data, to->max);
	}
	memcpy(to->data + to->nr, record, record->bytes);
	to->nr += record->bytes;
	return true;
}

static struct bytes make_stream(void)
{
	static const struct fake_frame stack[] = {{0x100, 1}, {0x200, 0}, {0x300, 0}};
	struct fake fake = fake_new();
	struct bytes stream = {0};

	fake_module(&fake, "/opt/app", 0x400000, 0xaa);
	fake_module(&fake, "/lib/libc.so.6", 0x7f0000000000, 0xbb);
	for (uint16_t i = 0; i < 20; i++) {
		uint32_t site = fake_site(&fake, LW_KIND_MALLOC, stack, i % 3 + 1);

		*fake_count(&fake, 0, site) = (struct lw_count){100u + i, 2, 8, 1};
		if (i % 2)
			fake_hint(&fake, site, "a.c", i);
	}
	fake_event(&fake, LW_EVENT_DOUBLE_FREE, 1, 2, 1);
	for (uint32_t slot = 0; slot < LW_HISTORY_SAMPLES; slot++)
		fake_sample(&fake, slot, 50 * slot, 4, (uint64_t[]){0, slot, 2 * slot, 3 * slot});
	(void)lw_emit_region(fake.header, fake.bytes, 0, keep, &stream);
	fake_free(&fake);
	return stream;
}

/* Each record in memory of exactly its size, as a reader would have it. */
static struct model *read_records(const unsigned char *data, size_t nr)
{
	struct decode decode = {.model = model_new()};

	for (size_t at = 0; nr - at >= sizeof(struct lw_wire_head);) {
		struct lw_wire_head head;
		struct lw_wire_head *record;
		bool goes_on;

		memcpy(&head, data + at, sizeof(head));
		if (decode_head(&head) || head.bytes > nr - at)
			break;
		record = malloc(head.bytes);
		memcpy(record, data + at, head.bytes);
		goes_on = decode_record(&decode, record);
		free(record);
		if (!goes_on)
			break;
		at += head.bytes;
	}
	model_finish(decode.model);
	return decode.model;
}

static void test_cuts(const struct bytes *stream)
{
	int nr_whole = 0;

	for (size_t nr = 0; nr < stream->nr; nr += 8) {
		struct model *model = read_records(stream->data, nr);

		nr_whole += !decode_missing(model);
		model_free(model);
	}
	is_u64(nr_whole, 0, "a stream cut anywhere is never taken for whole");
}

static void test_flips(const struct bytes *stream)
{
	unsigned char *copy = malloc(stream->nr);
	uint64_t seed = 99;
	int nr_read = 0;

	for (int round = 0; round < 3000; round++) {
		struct model *model;

		memcpy(copy, stream->data, stream->nr);
		for (int i = 0; i <= round % 8; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			copy[(seed >> 16) % stream->nr] ^= (unsigned char)(1u << (seed >> 61));
		}
		model = read_records(copy, stream->nr);
		nr_read += model->has_hello;
		model_free(model);
	}
	ok(nr_read > 0, "flipped bits: %d of 3000 still told the process", nr_read);
	free(copy);
}

/* One field of one good record made wrong; the record must be left out and counted. */
struct lie {
	const char *what;
	int64_t type;
	size_t off;
	uint32_t value;
	size_t nr_bytes;
};

#define LIE(record_type, name, member, wrong)                                                      \
	{                                                                                          \
#member " = " #wrong, record_type, offsetof(struct lw_wire_##name, member), wrong, \
			sizeof(((struct lw_wire_##name *)0)->member)                               \
	}

static const struct lie lies[] = {
	LIE(LW_WIRE_HELLO, hello, pid, 0),
	LIE(LW_WIRE_HELLO, hello, state, 99),
	LIE(LW_WIRE_HELLO, hello, end_kind, 99),
	LIE(LW_WIRE_TEXT, text, what, 0),
	LIE(LW_WIRE_TEXT, text, what, 77),
	LIE(LW_WIRE_TEXT, text, nr_bytes, 9000),
	LIE(LW_WIRE_TEXT, text, offset, UINT32_MAX),
	LIE(LW_WIRE_TEXT, text, total_bytes, UINT32_MAX),
	LIE(LW_WIRE_MODULE, module, id, LW_MAX_MODULES),
	LIE(LW_WIRE_MODULE, module, path_bytes, 9000),
	LIE(LW_WIRE_MODULE, module, build_id_bytes, 33),
	LIE(LW_WIRE_SITE, site, nr_frames, 129),
	LIE(LW_WIRE_SITE, site, nr_frames, 20),
	LIE(LW_WIRE_SITE, site, hint_file_bytes, 60000),
	LIE(LW_WIRE_SITE, site, kind, LW_NR_KINDS),
	LIE(LW_WIRE_HISTORY, history, nr_samples, LW_HISTORY_SAMPLES + 1),
	LIE(LW_WIRE_HISTORY, history, nr_samples, UINT32_MAX),
	LIE(LW_WIRE_EVENT, event, what, 0),
	LIE(LW_WIRE_EVENT, event, what, LW_NR_EVENT_KINDS),
};

static void test_lies(const struct bytes *stream)
{
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		unsigned char *copy = malloc(stream->nr);
		struct lw_wire_head head = {0};
		struct model *model;
		size_t at = 0;

		memcpy(copy, stream->data, stream->nr);
		for (; memcpy(&head, copy + at, sizeof(head)), head.type != lies[i].type;
			at += head.bytes)
			;
		memcpy(copy + at + lies[i].off, &lies[i].value, lies[i].nr_bytes);
		model = read_records(copy, stream->nr);
		is_u64(model->nr_bad, 1, "left out: %s", lies[i].what);
		/* a text has no number to be missed by, nor has a history */
		ok(lies[i].type == LW_WIRE_TEXT || lies[i].type == LW_WIRE_HISTORY || decode_missing(model), "and missed: %s",
			lies[i].what);
		model_free(model);
		free(copy);
	}
}

static void test_versions(const struct bytes *stream)
{
	struct decode decode = {.model = model_new()};
	struct lw_wire_hello hello;

	memcpy(&hello, stream->data, sizeof(hello));
	hello.head.version = 9;
	ok(!decode_record(&decode, &hello.head), "another version ends it");
	ok(strstr(decode.why, "9") && strstr(decode.why, "1"), "both versions are named");
	hello.head.version = LW_WIRE_VERSION;
	hello.head.type = 4711;
	ok(decode_record(&decode, &hello.head) && decode.model->nr_unknown == 1,
		"a type from the future is passed over");
	model_free(decode.model);
}

/* Through a pipe, in one piece or cut, or something else entirely. */
static bool through_pipe(
	const void *data, size_t nr, struct decode *decode, struct source_error *error)
{
	int fds[2];
	bool is_read;

	if (pipe(fds) < 0 || write(fds[1], data, nr) != (ssize_t)nr)
		return false;
	close(fds[1]);
	is_read = source_stream(fds[0], "the pipe", decode_record, decode, error);
	close(fds[0]);
	return is_read;
}

static void test_stream(const struct bytes *stream)
{
	static const char text[] = "this is a text file and no stream of records at all\n";
	struct decode whole = {.model = model_new()}, cut = {.model = model_new()};
	struct decode none = {.model = model_new()};
	struct source_error error = {""};

	ok(through_pipe(stream->data, stream->nr, &whole, &error), "through a pipe");
	ok(!decode_missing(whole.model), "all of it");
	ok(through_pipe(stream->data, stream->nr - 20, &cut, &error), "a cut one gives what came");
	is_str(decode_missing(cut.model), "the records end too early", "and says so");
	ok(!through_pipe(text, sizeof(text), &none, &error), "a text is refused");
	ok(strstr(error.text, "no LeakWatch records"), "with a clear word: %s", error.text);
	ok(!through_pipe("", 0, &none, &error), "so is an empty file");
	model_free(whole.model);
	model_free(cut.model);
	model_free(none.model);
}

int main(void)
{
	struct bytes stream = make_stream();
	struct model *model = read_records(stream.data, stream.nr);

	ok(!decode_missing(model), "the good stream is whole");
	is_u64(model->nr_sites, 20, "with its sites");
	model_free(model);
	test_cuts(&stream);
	test_flips(&stream);
	test_lies(&stream);
	test_versions(&stream);
	test_stream(&stream);
	free(stream.data);
	return done();
}
