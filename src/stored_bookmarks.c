/*-------------------------------------------------------------------------
 *
 * stored_bookmarks.c
 *	  Bookmarks of stored states: the document functions, applied to what the
 *	  next run would start from, in one atomic write.
 *
 * What changes goes to the partial part, which overlays the completed one.
 * Since an overlay replaces arrays whole and can take nothing away, it is the
 * stream's whole entry that goes there; and where the completed part would
 * still show through, the stream is taken out of it.
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
 * A bookmark only ever moves on, whoever comes last.
 */
static Jsonb *
apply_advance(Jsonb *state, const StreamChange *change)
{
	if (change->how.is_sorted && !change->how.check_sorted &&
		is_behind(state, change))
		return state;
	return ss_state_increment(state, &change->stream, &change->key,
							  &change->value, change->context, &change->how);
}

static Jsonb *
apply_finalize(Jsonb *state, const StreamChange *change)
{
	return ss_state_finalize(state, &change->stream, change->context,
							 change->how.is_timestamp);
}

/*
 * The partial part with a stream's entry in it, in the form of the completed
 * part if there was none.
 */
static Jsonb *
put_stream(Jsonb *partial, Jsonb *completed, const SsValue *stream,
		   const SsValue *entry)
{
	SsStateEdit edit;

	if (partial == NULL && completed != NULL &&
		ss_document_form(&completed->root) == SS_FORM_FLAT)
	{
		SsEdit	   *flat = ss_edit_create(NULL, JB_FOBJECT);

		ss_edit_set(flat, stream, entry);
		return ss_edit_finish(flat, ss_document_empty());
	}

	edit = ss_state_edit(partial != NULL ? partial : ss_document_empty());
	ss_edit_set(ss_state_edit_streams(&edit), stream, entry);
	partial = ss_state_edit_finish(&edit);
	return completed != NULL ? ss_document_conform(partial, completed) : partial;
}

static bool
same_document(Jsonb *a, Jsonb *b)
{
	return ss_document_datum_equal(JsonbPGetDatum(a), false,
								   JsonbPGetDatum(b), false);
}

static void
edit_stream(SsState *state, void *arg)
{
	const StreamChange *change = arg;
	Jsonb	   *completed = ss_state_part(state->completed);
	Jsonb	   *before = ss_state_effective(state);
	Jsonb	   *after;
	Jsonb	   *partial;
	SsDocument	document;
	SsValue		entry;

	if (before == NULL)
		before = ss_document_empty();
	after = change->apply(before, change);
	if (after == before)
		return;

	document = ss_document_open(after);
	if (!ss_document_stream(&document, &change->stream, &entry))
		return;
	partial = put_stream(ss_state_part(state->partial), completed,
						 &change->stream, &entry);
	state->partial = (struct varlena *) partial;
	if (completed != NULL &&
		!same_document(ss_deep_merge(completed, partial, false), after))
		state->completed = (struct varlena *)
			ss_document_normalize(ss_stream_remove(completed, &change->stream));
}

/*
 * Finalize every stream.  Markers are taken out of both parts.
 */
static void
edit_finalize_all(SsState *state, void *arg)
{
	const StreamChange *change = arg;
	Jsonb	   *completed = ss_state_part(state->completed);
	Jsonb	   *before = ss_state_effective(state);
	Jsonb	   *after;

	if (before == NULL)
		return;
	after = ss_state_finalize(before, NULL, NULL, change->how.is_timestamp);
	if (after == before)
		return;

	state->partial = (struct varlena *) after;
	if (completed != NULL)
		state->completed = (struct varlena *)
			ss_state_finalize(completed, NULL, NULL, change->how.is_timestamp);
}

static void
edit_remove(SsState *state, void *arg)
{
	const StreamChange *change = arg;

	if (state->completed != NULL)
		state->completed = (struct varlena *)
			ss_document_normalize(ss_stream_remove(ss_state_part(state->completed),
												   &change->stream));
	if (state->partial != NULL)
		state->partial = (struct varlena *)
			ss_document_normalize(ss_stream_remove(ss_state_part(state->partial),
												   &change->stream));
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
	change.stream = ss_argument_string(fcinfo, 1, "stream");
	change.key = ss_argument_string(fcinfo, 2, "key");
	change.value = ss_argument_value(fcinfo, 3, "value");
	change.context = ss_argument_context(fcinfo, 4);
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
	change.stream = ss_argument_string(fcinfo, 1, "stream");
	change.key = ss_argument_string(fcinfo, 2, "replication_key");
	change.value = ss_argument_value(fcinfo, 3, "value");
	change.context = ss_argument_context(fcinfo, 4);
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
	StreamChange change = {apply_finalize};
	SsWrite		write;

	init_write(&write, "finalize_bookmarks", fcinfo, 4);
	write.must_exist = true;
	change.how.is_timestamp = ss_flag_arg(fcinfo, 3, "is_timestamp");
	if (PG_ARGISNULL(1))
		PG_RETURN_INT64(ss_store_write(&write, edit_finalize_all, &change));

	change.stream = ss_argument_string(fcinfo, 1, "stream");
	change.context = ss_argument_context(fcinfo, 2);
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
	change.stream = ss_argument_string(fcinfo, 1, "stream");
	PG_RETURN_INT64(ss_store_write(&write, edit_remove, &change));
}
