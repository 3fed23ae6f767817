/*-------------------------------------------------------------------------
 *
 * stored_bookmarks.c
 *	  Bookmarks of stored states: the document functions, applied to what the
 *	  next run would start from, in one atomic write.
 *
 * What changes goes to the partial part, which overlays the completed one.
 * Since an overlay replaces arrays whole and can take nothing away, it is the
 * stream's whole entry that goes there; and where the completed part would
 * still show through, the stream is taken out of it.  The effective state is
 * then what the document function made of it, whatever the two parts were.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "args.h"
#include "bookmark.h"
#include "compare.h"
#include "merge.h"
#include "progress.h"
#include "store.h"
#include "trigger.h"
#include "validate.h"

PG_FUNCTION_INFO_V1(singer_state_update_bookmark);
PG_FUNCTION_INFO_V1(singer_state_advance_bookmark);
PG_FUNCTION_INFO_V1(singer_state_finalize_bookmarks);
PG_FUNCTION_INFO_V1(singer_state_remove_stream);
PG_FUNCTION_INFO_V1(singer_state_bookmark_part);

/* What is to become of a stream; the document functions' arguments */
typedef struct StreamChange
{
	Jsonb	   *(*apply) (Jsonb *state, const struct StreamChange *change);
	SsValue		stream;
	SsValue		key;			/* or replication key */
	SsValue		value;
	const SsValue *context;
	SsIncrement how;
} StreamChange;

static Jsonb *
apply_update(Jsonb *state, const StreamChange *change)
{
	return ss_bookmark_set(state, &change->stream, &change->key,
						   &change->value, change->context);
}

/*
 * Is a replication value smaller than the one that the bookmark has?
 */
static bool
is_behind(Jsonb *state, const StreamChange *change)
{
	SsValue		bookmark;
	SsValue		reached;

	return ss_bookmark_find(state, &change->stream, change->context, &bookmark) &&
		ss_value_is_object(&bookmark) &&
		ss_object_get(ss_value_container(&bookmark),
					  SS_STRING("replication_key_value"), &reached) &&
		!ss_value_is_null(&reached) && !ss_value_is_null(&change->value) &&
		ss_replication_compare(&change->value, &reached,
							   change->how.is_timestamp) < 0;
}

/*
 * A bookmark only ever moves on, whoever comes last: check_sorted => false
 * passes a smaller value over, it does not take it.
 */
static Jsonb *
apply_advance(Jsonb *state, const StreamChange *change)
{
	SsIncrement how = change->how;

	if (how.is_sorted && !how.check_sorted && is_behind(state, change))
		return state;
	how.check_sorted = true;
	return ss_state_increment(state, &change->stream, &change->key,
							  &change->value, change->context, &how);
}

static Jsonb *
apply_finalize_all(Jsonb *state, const StreamChange *change)
{
	return ss_state_finalize(state, NULL, change->context, change->how.is_timestamp);
}

static Jsonb *
apply_finalize(Jsonb *state, const StreamChange *change)
{
	return ss_state_finalize(state, &change->stream, change->context,
							 change->how.is_timestamp);
}

static bool
same_document(Jsonb *a, Jsonb *b)
{
	return ss_document_datum_equal(JsonbPGetDatum(a), false,
								   JsonbPGetDatum(b), false);
}

/*
 * Do the parts of a state give an effective state?
 */
static bool
parts_give(Jsonb *completed, Jsonb *partial, Jsonb *effective)
{
	return completed == NULL ||
		same_document(ss_deep_merge(completed, partial, false), effective);
}

/*
 * The next stream of a document that another does not have like this.
 */
static bool
next_difference(const SsDocument *document, const SsDocument *other,
				SsIterator *iterator, SsValue *stream, SsValue *entry)
{
	SsValue		present;

	while (ss_document_next_stream(document, iterator, stream, entry))
	{
		if (!ss_document_stream(other, stream, &present) ||
			!ss_value_identical(&present, entry))
			return true;
	}
	return false;
}

/*
 * The partial part with the streams that differ between two effective states,
 * at the place where the second has them.
 */
static Jsonb *
put_streams(Jsonb *partial, const SsDocument *before, const SsDocument *after)
{
	Jsonb	   *base = partial != NULL ? partial : ss_document_empty();
	SsEdit	   *root = ss_edit_create(&base->root, JB_FOBJECT);
	SsEdit	   *streams = root;
	SsIterator	iterator;
	SsValue		stream,
				entry;

	if (after->form == SS_FORM_PAYLOAD)
		streams = ss_edit_open(streams, SS_STRING("singer_state"), JB_FOBJECT);
	if (!after->flat)
		streams = ss_edit_open(streams, SS_STRING("bookmarks"), JB_FOBJECT);

	ss_iterator_init(&iterator, after->streams);
	while (next_difference(after, before, &iterator, &stream, &entry))
		ss_edit_set(streams, &stream, &entry);
	return ss_edit_finish(root, base);
}

/*
 * Does an entry of the completed part show through the one that overlays it?
 */
static bool
shows_through(const SsValue *completed, const SsValue *entry)
{
	Jsonb	   *overlay = ss_value_to_jsonb(entry);

	return !same_document(ss_deep_merge(ss_value_to_jsonb(completed), overlay,
										false), overlay);
}

/*
 * The completed part without those of the differing streams that show through
 * the partial part.
 */
static Jsonb *
hide_streams(Jsonb *completed, const SsDocument *before,
			 const SsDocument *after)
{
	SsDocument	document = ss_document_open(completed);
	SsStateEdit edit;
	SsEdit	   *streams;
	SsIterator	iterator;
	SsValue		stream,
				entry,
				present;

	if (document.streams == NULL)
		return completed;
	edit = ss_state_edit(completed);
	streams = ss_state_edit_streams(&edit);
	ss_iterator_init(&iterator, after->streams);
	while (next_difference(after, before, &iterator, &stream, &entry))
	{
		if (ss_document_stream(&document, &stream, &present) &&
			shows_through(&present, &entry))
			ss_edit_remove(streams, &stream);
	}
	return ss_document_normalize(ss_state_edit_finish(&edit));
}

/*
 * Change the parts of a state so that its effective state becomes another one,
 * in which no stream is missing.
 */
static void
change_effective(SsState *state, Jsonb *before, Jsonb *after)
{
	SsDocument	from = ss_document_open(before);
	SsDocument	to = ss_document_open(after);
	Jsonb	   *completed = ss_state_part(state->completed);
	Jsonb	   *partial;

	if (after == before)
		return;
	partial = put_streams(ss_state_part(state->partial), &from, &to);
	if (!parts_give(completed, partial, after))
	{
		completed = hide_streams(completed, &from, &to);
		state->completed = (struct varlena *) completed;
	}

	/* the partial part may have hidden all bookmarks, as null does */
	if (!parts_give(completed, partial, after))
	{
		state->completed = NULL;
		partial = after;
	}
	state->partial = (struct varlena *) partial;
}

/*
 * The effective state as a document.
 */
static Jsonb *
effective_document(const SsState *state)
{
	Jsonb	   *effective = ss_state_effective(state);

	return effective != NULL ? effective : ss_document_empty();
}

static void
edit_stream(SsState *state, void *arg)
{
	const StreamChange *change = arg;
	Jsonb	   *before = effective_document(state);

	change_effective(state, before, change->apply(before, change));
}

/*
 * A part without a stream.
 */
static struct varlena *
remove_from_part(struct varlena *part, const SsValue *stream)
{
	Jsonb	   *document = ss_state_part(part);

	if (document == NULL || ss_document_open(document).streams == NULL)
		return part;
	return (struct varlena *)
		ss_document_normalize(ss_stream_remove(document, stream));
}

static void
edit_remove(SsState *state, void *arg)
{
	const StreamChange *change = arg;

	/* complains about what is no state, as the document function does */
	(void) ss_state_edit(effective_document(state));
	state->completed = remove_from_part(state->completed, &change->stream);
	state->partial = remove_from_part(state->partial, &change->stream);
}

static void
init_write(SsWrite *write, const char *operation, FunctionCallInfo fcinfo,
		   int token_argno)
{
	ss_write_init(write, operation, ss_state_id_arg(fcinfo, 0));
	ss_write_condition(write, fcinfo, -1, token_argno);
	write->allow_empty = true;	/* only a stream that was named goes away */
}

/*
 * update_bookmark(state_id, stream, key, value, context, token): set_bookmark
 * on a stored state; answers the version.
 */
Datum
singer_state_update_bookmark(PG_FUNCTION_ARGS)
{
	StreamChange change = {apply_update};
	SsWrite		write;

	init_write(&write, "update_bookmark", fcinfo, 5);
	change.stream = ss_string_arg(fcinfo, 1, "stream");
	change.key = ss_string_arg(fcinfo, 2, "key");
	change.value = ss_value_arg(fcinfo, 3, "value");
	change.context = ss_context_arg(fcinfo, 4);
	PG_RETURN_INT64(ss_store_write(&write, edit_stream, &change));
}

/*
 * advance_bookmark(state_id, stream, replication_key, value, context,
 * is_sorted, check_sorted, is_timestamp, token): increment_state on a stored
 * state; answers the version.
 */
Datum
singer_state_advance_bookmark(PG_FUNCTION_ARGS)
{
	StreamChange change = {apply_advance};
	SsWrite		write;

	init_write(&write, "advance_bookmark", fcinfo, 8);
	change.stream = ss_string_arg(fcinfo, 1, "stream");
	change.key = ss_string_arg(fcinfo, 2, "replication_key");
	change.value = ss_value_arg(fcinfo, 3, "value");
	change.context = ss_context_arg(fcinfo, 4);
	change.how.is_sorted = ss_flag_arg(fcinfo, 5, "is_sorted");
	change.how.check_sorted = ss_flag_arg(fcinfo, 6, "check_sorted");
	change.how.is_timestamp = ss_flag_arg(fcinfo, 7, "is_timestamp");
	PG_RETURN_INT64(ss_store_write(&write, edit_stream, &change));
}

/*
 * finalize_bookmarks(state_id, stream, context, is_timestamp, token):
 * finalize_state_progress_markers on a stored state, of all streams if stream
 * is NULL; answers the version.
 */
Datum
singer_state_finalize_bookmarks(PG_FUNCTION_ARGS)
{
	StreamChange change = {apply_finalize_all};
	SsWrite		write;

	init_write(&write, "finalize_bookmarks", fcinfo, 4);
	write.must_exist = true;
	change.how.is_timestamp = ss_flag_arg(fcinfo, 3, "is_timestamp");
	change.context = ss_context_arg(fcinfo, 2);
	if (!PG_ARGISNULL(1))
	{
		change.apply = apply_finalize;
		change.stream = ss_string_arg(fcinfo, 1, "stream");
	}
	PG_RETURN_INT64(ss_store_write(&write, edit_stream, &change));
}

/*
 * remove_stream(state_id, stream, token): takes a stream out of both parts;
 * answers the version.
 */
Datum
singer_state_remove_stream(PG_FUNCTION_ARGS)
{
	StreamChange change = {NULL};
	SsWrite		write;

	init_write(&write, "remove_stream", fcinfo, 2);
	write.must_exist = true;
	change.stream = ss_string_arg(fcinfo, 1, "stream");
	PG_RETURN_INT64(ss_store_write(&write, edit_remove, &change));
}

/*
 * Does an overlay have a stream itself, or its partitions?  An array of them
 * replaces that of the completed part whole.
 */
static bool
overlays_bookmark(const SsValue *entry, bool is_partition)
{
	SsValue		partitions;
	bool		partitioned = ss_value_is_object(entry) &&
	ss_object_get(ss_value_container(entry), SS_STRING("partitions"),
				  &partitions) &&
	ss_value_is_container(&partitions);

	if (is_partition || !partitioned)
		return is_partition == partitioned;
	return JsonContainerSize(ss_value_container(entry)) > 1;
}

/*
 * bookmark_part(partial_state, stream, context): the part that a row of the
 * view "bookmarks" comes from.
 */
Datum
singer_state_bookmark_part(PG_FUNCTION_ARGS)
{
	Jsonb	   *partial = ss_jsonb_arg(fcinfo, 0, "partial_state");
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");
	SsDocument	document = ss_document_open(partial);
	SsValue		entry;
	bool		is_partial;

	is_partial = ss_document_stream(&document, &stream, &entry) &&
		overlays_bookmark(&entry, !PG_ARGISNULL(2));
	PG_RETURN_TEXT_P(cstring_to_text(is_partial ? "partial" : "completed"));
}
