/*-------------------------------------------------------------------------
 *
 * run_counts.c
 *	  What a run has seen: messages by type, and by stream and type.
 *
 * Counted in memory, a few instructions a line, and kept in the table as two
 * documents: messages, {"RECORD": 10, "STATE": 1}, and streams, {"users":
 * {"RECORD": 10, "SCHEMA": 1}}, where "version" is the one that the stream's
 * last ACTIVATE_VERSION message named.  What is not there was not seen.
 *
 * A bare state counts as the STATE message that it stands for.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "run_counts.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

#define FIRST_COUNTED SS_LINE_ACTIVATE_VERSION

#define VERSION_KEY "version"

struct SsStreamCounts
{
	SsSlice		name;			/* the hash key: what the name means */
	SsSlice		spelled;		/* as a line had it, quoted; may be empty */
	int64		lines[SS_LINE_KINDS];
	bool		activated;
	int64		version;
};

static uint32
hash_name(const void *key, Size keysize)
{
	const SsSlice *name = key;

	return hash_bytes((const unsigned char *) name->data, (int) name->length);
}

static int
compare_names(const void *a, const void *b, Size keysize)
{
	const SsSlice *x = a;
	const SsSlice *y = b;

	if (x->length != y->length)
		return 1;
	return memcmp(x->data, y->data, x->length);
}

void
ss_counts_init(SsRunCounts *counts, MemoryContext context)
{
	memset(counts, 0, sizeof(*counts));
	counts->context = context;
}

static void
create_streams(SsRunCounts *counts)
{
	HASHCTL		control;

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(SsSlice);
	control.entrysize = sizeof(SsStreamCounts);
	control.hash = hash_name;
	control.match = compare_names;
	control.hcxt = counts->context;
	counts->streams = hash_create("singer_state streams", 32, &control,
								  HASH_ELEM | HASH_FUNCTION | HASH_COMPARE |
								  HASH_CONTEXT);
}

static SsSlice
copy_slice(MemoryContext context, SsSlice slice)
{
	char	   *copy = MemoryContextAllocHuge(context, slice.length + 1);

	memcpy(copy, slice.data, slice.length);
	slice.data = copy;
	return slice;
}

/*
 * The counts of a stream, which start at zero.
 */
static SsStreamCounts *
find_stream(SsRunCounts *counts, SsSlice name)
{
	SsStreamCounts *stream;
	bool		found;

	if (counts->streams == NULL)
		create_streams(counts);

	/* copied first: should that fail, no entry points to a name that goes */
	stream = hash_search(counts->streams, &name, HASH_FIND, NULL);
	if (stream != NULL)
		return stream;

	name = copy_slice(counts->context, name);
	stream = hash_search(counts->streams, &name, HASH_ENTER, &found);
	memset((char *) stream + sizeof(SsSlice), 0,
		   sizeof(SsStreamCounts) - sizeof(SsSlice));
	return stream;
}

/*
 * What a stream's name in a message means, in the server's encoding.  A name
 * with escapes that a server of another encoding than UTF8 may be unable to
 * hold stays as it is spelled: a count is no reason to stop a run.
 */
static SsSlice
stream_name(SsSlice quoted)
{
	SsSlice		name = {quoted.data + 1, quoted.length - 2};
	char	   *meaning;

	if (memchr(name.data, '\\', name.length) == NULL ||
		GetDatabaseEncoding() != PG_UTF8)
		return name;

	meaning = MemoryContextAllocHuge(CurrentMemoryContext, quoted.length);
	name.length = ss_string_unescape(quoted, meaning);
	name.data = meaning;
	return name;
}

/*
 * The counts of the stream that a message names.  Most often that is the one
 * that the message before it named, spelled alike.
 */
static SsStreamCounts *
stream_of_line(SsRunCounts *counts, const SsLine *line)
{
	SsSlice		quoted = line->member[SS_MEMBER_STREAM];
	SsStreamCounts *stream = counts->last;

	if (stream != NULL && stream->spelled.length == quoted.length &&
		memcmp(stream->spelled.data, quoted.data, quoted.length) == 0)
		return stream;

	stream = find_stream(counts, stream_name(quoted));
	if (stream->spelled.data == NULL)
		stream->spelled = copy_slice(counts->context, quoted);
	counts->last = stream;
	return stream;
}

/* An integer whose form the scanner has checked */
static int64
read_version(SsSlice text)
{
	char		buffer[32];

	Assert(text.length < sizeof(buffer));
	memcpy(buffer, text.data, text.length);
	buffer[text.length] = '\0';
	return strtoll(buffer, NULL, 10);
}

/*
 * Count a line.
 */
void
ss_counts_add_line(SsRunCounts *counts, const SsLine *line)
{
	SsStreamCounts *stream;

	counts->lines[line->kind]++;
	if (line->kind < FIRST_COUNTED || line->kind == SS_LINE_STATE)
		return;

	stream = stream_of_line(counts, line);
	stream->lines[line->kind]++;
	if (line->kind == SS_LINE_ACTIVATE_VERSION)
	{
		stream->activated = true;
		stream->version = read_version(line->member[SS_MEMBER_VERSION]);
	}
}

static void
add_lines(int64 *lines, const int64 *more)
{
	for (int i = 0; i < SS_LINE_KINDS; i++)
		lines[i] += more[i];
}

/*
 * Add what was counted later.
 */
void
ss_counts_add(SsRunCounts *counts, const SsRunCounts *more)
{
	HASH_SEQ_STATUS status;
	SsStreamCounts *theirs;

	add_lines(counts->lines, more->lines);
	if (more->streams == NULL)
		return;

	hash_seq_init(&status, more->streams);
	while ((theirs = hash_seq_search(&status)) != NULL)
	{
		SsStreamCounts *ours = find_stream(counts, theirs->name);

		add_lines(ours->lines, theirs->lines);
		if (theirs->activated)
		{
			ours->activated = true;
			ours->version = theirs->version;
		}
	}
}

static int64
number_of(const JsonbValue *value)
{
	if (value->type != jbvNumeric)
		return 0;
	return DatumGetInt64(DirectFunctionCall1(numeric_int8,
											 NumericGetDatum(value->val.numeric)));
}

static bool
is_key(const JsonbValue *key, const char *name)
{
	return key->val.string.len == strlen(name) &&
		memcmp(key->val.string.val, name, key->val.string.len) == 0;
}

/*
 * Set the count of one type, by its name.
 */
static void
load_count(int64 *lines, const JsonbValue *type, const JsonbValue *count)
{
	for (int kind = FIRST_COUNTED; kind < SS_LINE_KINDS; kind++)
	{
		if (is_key(type, ss_line_kind_name(kind)))
			lines[kind] = number_of(count);
	}
}

static void
load_stream(SsStreamCounts *stream, JsonbIterator **iterator)
{
	JsonbValue	key;
	JsonbValue	value;
	JsonbIteratorToken token;

	while ((token = JsonbIteratorNext(iterator, &key, true)) == WJB_KEY)
	{
		(void) JsonbIteratorNext(iterator, &value, true);
		if (is_key(&key, VERSION_KEY))
		{
			stream->activated = true;
			stream->version = number_of(&value);
		}
		else
			load_count(stream->lines, &key, &value);
	}
	Assert(token == WJB_END_OBJECT);
}

static void
load_streams(SsRunCounts *counts, Jsonb *streams)
{
	JsonbIterator *iterator = JsonbIteratorInit(&streams->root);
	JsonbValue	key;

	(void) JsonbIteratorNext(&iterator, &key, false);
	while (JsonbIteratorNext(&iterator, &key, false) == WJB_KEY)
	{
		SsSlice		name = {key.val.string.val, key.val.string.len};
		JsonbValue	ignored;

		if (JsonbIteratorNext(&iterator, &ignored, false) == WJB_BEGIN_OBJECT)
			load_stream(find_stream(counts, name), &iterator);
	}
}

/*
 * Set fresh counts to what a row of the table says.
 */
void
ss_counts_load(SsRunCounts *counts, Jsonb *messages, Jsonb *streams,
			   int64 skipped)
{
	JsonbIterator *iterator = JsonbIteratorInit(&messages->root);
	JsonbValue	key;
	JsonbValue	value;

	(void) JsonbIteratorNext(&iterator, &key, true);
	while (JsonbIteratorNext(&iterator, &key, true) == WJB_KEY)
	{
		(void) JsonbIteratorNext(&iterator, &value, true);
		load_count(counts->lines, &key, &value);
	}
	load_streams(counts, streams);
	counts->lines[SS_LINE_INVALID] = skipped;
}

static void
push_key(JsonbParseState **state, const char *key, size_t length)
{
	JsonbValue	value;

	value.type = jbvString;
	value.val.string.val = unconstify(char *, key);
	value.val.string.len = (int) length;
	pushJsonbValue(state, WJB_KEY, &value);
}

static void
push_count(JsonbParseState **state, const char *key, int64 count)
{
	JsonbValue	value;

	push_key(state, key, strlen(key));
	value.type = jbvNumeric;
	value.val.numeric = DatumGetNumeric(DirectFunctionCall1(int8_numeric,
															Int64GetDatum(count)));
	pushJsonbValue(state, WJB_VALUE, &value);
}

static int64
messages_of_kind(const int64 *lines, SsLineKind kind)
{
	return kind == SS_LINE_STATE ?
		lines[SS_LINE_STATE] + lines[SS_LINE_BARE_STATE] : lines[kind];
}

static void
push_lines(JsonbParseState **state, const int64 *lines)
{
	for (int kind = FIRST_COUNTED; kind < SS_LINE_KINDS; kind++)
	{
		int64		count = messages_of_kind(lines, kind);

		if (count > 0)
			push_count(state, ss_line_kind_name(kind), count);
	}
}

/*
 * The counts by type, as the table keeps them.
 */
Jsonb *
ss_counts_messages(const SsRunCounts *counts)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	push_lines(&state, counts->lines);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

static void
push_stream(JsonbParseState **state, const SsStreamCounts *stream)
{
	push_key(state, stream->name.data, stream->name.length);
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	push_lines(state, stream->lines);
	if (stream->activated)
		push_count(state, VERSION_KEY, stream->version);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

/*
 * The counts by stream and type, as the table keeps them.
 */
Jsonb *
ss_counts_streams(const SsRunCounts *counts)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	if (counts->streams != NULL)
	{
		HASH_SEQ_STATUS status;
		SsStreamCounts *stream;

		hash_seq_init(&status, counts->streams);
		while ((stream = hash_seq_search(&status)) != NULL)
			push_stream(&state, stream);
	}
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

/*
 * How many messages there were, of whatever type.
 */
int64
ss_counts_total(const SsRunCounts *counts)
{
	int64		total = 0;

	for (int kind = FIRST_COUNTED; kind < SS_LINE_KINDS; kind++)
		total += messages_of_kind(counts->lines, kind);
	return total;
}

int64
ss_counts_states(const SsRunCounts *counts)
{
	return messages_of_kind(counts->lines, SS_LINE_STATE);
}
