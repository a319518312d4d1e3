/* SPDX-License-Identifier: MIT */
/*
 * stream.c - records from a pipe or a file.
 *
 * The bytes may come from anywhere. The head of each record is checked before its body is read, so
 * that a size is never believed beyond LW_WIRE_MAX and the buffer is all the memory this takes. A
 * stream that stops inside a record hands over what came before, and says that it was cut. What is no record at all at the very start is refused.
 */
#include "snapshot/source/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/model/decode.h"

struct stream {
	int fd;
	size_t nr_bytes, at; /* of buffer: filled, consumed */
	_Alignas(8) unsigned char record[LW_WIRE_MAX];
	unsigned char buffer[65536];
};

/* Up to nr_bytes, fewer only at the end; -errno. */
static ssize_t take(struct stream *stream, void *to, size_t nr_bytes)
{
	size_t nr_taken = 0;

	while (nr_taken < nr_bytes) {
		size_t have = stream->nr_bytes - stream->at;
		ssize_t got;

		if (have > 0) {
			size_t now = have < nr_bytes - nr_taken ? have : nr_bytes - nr_taken;

			memcpy((unsigned char *)to + nr_taken, stream->buffer + stream->at, now);
			stream->at += now;
			nr_taken += now;
			continue;
		}
		got = read(stream->fd, stream->buffer, sizeof(stream->buffer));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		stream->nr_bytes = (size_t)got;
		stream->at = 0;
	}
	return (ssize_t)nr_taken;
}

static bool fail(struct source_error *error, const char *name, const char *why)
{
	(void)snprintf(error->text, sizeof(error->text), "cannot read %s: %s", name, why);
	return false;
}

bool source_stream(
	int fd, const char *name, lw_emit_sink_fn *sink, void *context, struct source_error *error)
{
	static struct stream stream;
	struct lw_wire_head head;
	const char *wrong;

	stream.fd = fd;
	stream.nr_bytes = stream.at = 0;
	for (size_t nr_records = 0;; nr_records++) {
		ssize_t got = take(&stream, &head, sizeof(head));

		if (got < 0)
			return fail(error, name, strerror((int)-got));
		if ((size_t)got < sizeof(head)) {
			error->is_cut = got > 0;
			return nr_records ? true : fail(error, name, "it holds no records");
		}
		wrong = decode_head(&head);
		if (wrong)
			return fail(
				error, name, nr_records ? wrong : "it holds no LeakWatch records");
		memcpy(stream.record, &head, sizeof(head));
		got = take(&stream, stream.record + sizeof(head), head.bytes - sizeof(head));
		if (got < 0)
			return fail(error, name, strerror((int)-got));
		if ((size_t)got < head.bytes - sizeof(head)) {
			error->is_cut = true;
			return true;
		}
		if (!sink(context, (const struct lw_wire_head *)(const void *)stream.record))
			return fail(error, name, "its records cannot be read");
	}
}
