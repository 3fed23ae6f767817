/*-------------------------------------------------------------------------
 *
 * bookmark.c
 *	  Bookmarks of streams and partitions: find, set, clear.
 *
 * Results are singer-python's and the Singer SDK's.  Readers work on any
 * document, and answer NULL for what is not there; the one thing they refuse
 * is a context that two partitions have.  Writers make what is missing on the
 * way, take JSON null for missing, and refuse to overwrite what is neither:
 * a stream whose bookmark is a bare string has no place for a key.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "args.h"
#include "bookmark.h"
#include "context.h"

/* ---------------------------------------------------------------------------
 * Finding
 * ---------------------------------------------------------------------------
 */

/*
 * Find the bookmark of a stream, or of one of its partitions.
 */
bool
ss_bookmark_find(const Jsonb *state, const SsValue *stream,
				 const SsValue *context, SsValue *bookmark)
{
	SsDocument	document = ss_document_open(state);
	SsValue		partitions;
	uint32		position;

	if (!ss_document_stream(&document, stream, bookmark))
		return false;
	if (context == NULL)
		return true;
	return ss_value_is_object(bookmark) &&
		ss_object_get(ss_value_container(bookmark), SS_STRING("partitions"),
					  &partitions) &&
		ss_value_is_array(&partitions) &&
		ss_context_find(ss_value_container(&partitions), context,
						&position, bookmark);
}

/*
 * The bookmark that arguments 1 (stream) and n (context) mean.
 */
static bool
find_argument(FunctionCallInfo fcinfo, int n, SsValue *bookmark)
{
	SsValue		stream;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return false;
	stream = ss_string_arg(fcinfo, 1, "stream");
	return ss_bookmark_find(PG_GETARG_JSONB_P(0), &stream,
							n < 0 ? NULL : ss_context_arg(fcinfo, n),
							bookmark);
}

static Datum
key_datum(FunctionCallInfo fcinfo, bool found, const SsValue *object,
		  const SsValue *key)
{
	SsValue		value;

	if (!found || !ss_value_is_object(object) ||
		!ss_object_get(ss_value_container(object), key, &value))
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(ss_value_to_jsonb(&value));
}

PG_FUNCTION_INFO_V1(singer_state_get_bookmark);

Datum
singer_state_get_bookmark(PG_FUNCTION_ARGS)
{
	SsValue		bookmark,
				key;

	if (PG_ARGISNULL(2))
		PG_RETURN_NULL();
	key = ss_string_arg(fcinfo, 2, "key");
	return key_datum(fcinfo, find_argument(fcinfo, 3, &bookmark),
					 &bookmark, &key);
}

PG_FUNCTION_INFO_V1(singer_state_stream_state);

Datum
singer_state_stream_state(PG_FUNCTION_ARGS)
{
	SsValue		bookmark;

	if (!find_argument(fcinfo, 2, &bookmark))
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(ss_value_to_jsonb(&bookmark));
}

PG_FUNCTION_INFO_V1(singer_state_partitions);

Datum
singer_state_partitions(PG_FUNCTION_ARGS)
{
	SsValue		bookmark;

	return key_datum(fcinfo, find_argument(fcinfo, -1, &bookmark),
					 &bookmark, SS_STRING("partitions"));
}

PG_FUNCTION_INFO_V1(singer_state_get_offset);

Datum
singer_state_get_offset(PG_FUNCTION_ARGS)
{
	SsValue		bookmark;

	return key_datum(fcinfo, find_argument(fcinfo, -1, &bookmark),
					 &bookmark, SS_STRING("offset"));
}

/*
 * What a document has beside its bookmarks.
 */
static bool
find_beside(const Jsonb *state, const SsValue *key, SsValue *value)
{
	SsDocument	document = ss_document_open(state);

	return document.tap_state != NULL &&
		ss_object_get(document.tap_state, key, value);
}

PG_FUNCTION_INFO_V1(singer_state_get_version);

Datum
singer_state_get_version(PG_FUNCTION_ARGS)
{
	SsValue		versions,
				stream = ss_value_from_text(PG_GETARG_TEXT_PP(1));

	return key_datum(fcinfo,
					 find_beside(PG_GETARG_JSONB_P(0),
								 SS_STRING("activate_versions"), &versions),
					 &versions, &stream);
}

PG_FUNCTION_INFO_V1(singer_state_get_currently_syncing);

Datum
singer_state_get_currently_syncing(PG_FUNCTION_ARGS)
{
	SsValue		stream;

	if (!find_beside(PG_GETARG_JSONB_P(0), SS_STRING("currently_syncing"),
					 &stream) ||
		!ss_value_is_string(&stream))
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(ss_value_to_text(&stream));
}

/* ---------------------------------------------------------------------------
 * Opening for changes
 * ---------------------------------------------------------------------------
 */

/*
 * Open a state for changes.  Errors if it cannot hold any.
 */
SsStateEdit
ss_state_edit(Jsonb *state)
{
	SsStateEdit edit = {state};
	SsDocument	document = ss_document_open(state);

	if (!JB_ROOT_IS_OBJECT(state))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a state must be a JSON object")));
	if (document.form == SS_FORM_OTHER)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"singer_state\" must be a JSON object")));

	edit.flat = document.flat;
	edit.root = ss_edit_create(&state->root, JB_FOBJECT);
	edit.tap_state = document.form == SS_FORM_PAYLOAD ?
		ss_edit_open(edit.root, SS_STRING("singer_state"), JB_FOBJECT) :
		edit.root;
	return edit;
}

/*
 * Open what is under a key, which must be a container of a kind if it is
 * there at all.
 */
static SsEdit *
open_or_error(SsEdit *edit, const SsValue *key, uint32 kind, const char *what)
{
	SsEdit	   *opened = ss_edit_open(edit, key, kind);

	if (opened == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be a JSON %s", what,
						kind == JB_FOBJECT ? "object" : "array")));
	return opened;
}

/*
 * Open the object of the streams.
 */
SsEdit *
ss_state_edit_streams(SsStateEdit *edit)
{
	if (edit->flat)
		return edit->tap_state;
	return open_or_error(edit->tap_state, SS_STRING("bookmarks"), JB_FOBJECT,
						 "\"bookmarks\"");
}

static void
check_stream_name(const SsStateEdit *edit, const SsValue *stream)
{
	if (edit->flat && ss_document_is_reserved_key(stream))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a flat state cannot have a stream named \"%.*s\"",
						(int) stream->len, stream->data)));
}

static SsEdit *
open_stream(SsStateEdit *edit, const SsValue *stream)
{
	SsEdit	   *opened;

	check_stream_name(edit, stream);
	opened = ss_edit_open(ss_state_edit_streams(edit), stream, JB_FOBJECT);
	if (opened == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("bookmark of stream \"%.*s\" is not a JSON object",
						(int) stream->len, stream->data),
				 errhint("Use reset_stream() to begin it anew.")));
	return opened;
}

/*
 * Open the bookmark of a stream, or of one of its partitions; makes it if it
 * is not there.
 */
SsEdit *
ss_state_edit_bookmark(SsStateEdit *edit, const SsValue *stream,
					   const SsValue *context)
{
	SsEdit	   *bookmark = open_stream(edit, stream);
	SsEdit	   *partitions;
	SsValue		partition;
	uint32		position;

	if (context == NULL)
		return bookmark;
	if (!ss_value_is_object(context))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a context must be a JSON object")));

	partitions = open_or_error(bookmark, SS_STRING("partitions"), JB_FARRAY,
							   "\"partitions\"");
	if (partitions->base != NULL &&
		ss_context_find(partitions->base, context, &position, &partition))
	{
		SsEdit	   *found = ss_edit_create(ss_value_container(&partition),
										   JB_FOBJECT);
		SsValue		value = ss_value_from_edit(found);

		ss_edit_change(partitions, position, false, NULL, &value);
		return found;
	}

	bookmark = ss_edit_append(partitions);
	ss_edit_set(bookmark, SS_STRING("context"), context);
	return bookmark;
}

static SsEdit *
open_versions(SsStateEdit *edit)
{
	return open_or_error(edit->tap_state, SS_STRING("activate_versions"),
						 JB_FOBJECT, "\"activate_versions\"");
}

Jsonb *
ss_state_edit_finish(SsStateEdit *edit)
{
	return ss_edit_finish(edit->root, edit->state);
}

/* ---------------------------------------------------------------------------
 * Setting and clearing
 * ---------------------------------------------------------------------------
 */

/*
 * Set a key of a bookmark.
 */
Jsonb *
ss_bookmark_set(Jsonb *state, const SsValue *stream, const SsValue *key,
				const SsValue *value, const SsValue *context)
{
	SsStateEdit edit = ss_state_edit(state);

	ss_edit_set(ss_state_edit_bookmark(&edit, stream, context), key, value);
	return ss_state_edit_finish(&edit);
}

/*
 * Remove a stream from the bookmarks.
 */
Jsonb *
ss_stream_remove(Jsonb *state, const SsValue *stream)
{
	SsStateEdit edit = ss_state_edit(state);
	SsDocument	document = ss_document_open(state);
	SsValue		bookmark;

	if (!ss_document_stream(&document, stream, &bookmark))
		return state;
	ss_edit_remove(ss_state_edit_streams(&edit), stream);
	return ss_state_edit_finish(&edit);
}

PG_FUNCTION_INFO_V1(singer_state_set_bookmark);

Datum
singer_state_set_bookmark(PG_FUNCTION_ARGS)
{
	Jsonb	   *state = ss_jsonb_arg(fcinfo, 0, "state");
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");
	SsValue		key = ss_string_arg(fcinfo, 2, "key");
	SsValue		value = ss_value_arg(fcinfo, 3, "value");

	PG_RETURN_JSONB_P(ss_bookmark_set(state, &stream, &key, &value,
									  ss_context_arg(fcinfo, 4)));
}

/*
 * Remove a key of a bookmark.  As in singer-python, a stream that is not
 * there is made; a partition is not, and a bare value is left alone.
 */
static Jsonb *
clear_key(Jsonb *state, const SsValue *stream, const SsValue *key,
		  const SsValue *context)
{
	SsStateEdit edit = ss_state_edit(state);
	SsValue		bookmark;
	bool		found = ss_bookmark_find(state, stream, context, &bookmark);

	if (found ? !ss_value_is_object(&bookmark) && !ss_value_is_null(&bookmark) :
		context != NULL)
		return state;
	ss_edit_remove(ss_state_edit_bookmark(&edit, stream, context), key);
	return ss_state_edit_finish(&edit);
}

PG_FUNCTION_INFO_V1(singer_state_clear_bookmark);

Datum
singer_state_clear_bookmark(PG_FUNCTION_ARGS)
{
	Jsonb	   *state = ss_jsonb_arg(fcinfo, 0, "state");
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");
	SsValue		key = ss_string_arg(fcinfo, 2, "key");

	PG_RETURN_JSONB_P(clear_key(state, &stream, &key,
								ss_context_arg(fcinfo, 3)));
}

PG_FUNCTION_INFO_V1(singer_state_clear_offset);

Datum
singer_state_clear_offset(PG_FUNCTION_ARGS)
{
	Jsonb	   *state = ss_jsonb_arg(fcinfo, 0, "state");
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");

	PG_RETURN_JSONB_P(clear_key(state, &stream, SS_STRING("offset"), NULL));
}

PG_FUNCTION_INFO_V1(singer_state_set_offset);

Datum
singer_state_set_offset(PG_FUNCTION_ARGS)
{
	SsStateEdit edit = ss_state_edit(ss_jsonb_arg(fcinfo, 0, "state"));
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");
	SsValue		key = ss_string_arg(fcinfo, 2, "offset_key");
	SsValue		value = ss_value_arg(fcinfo, 3, "value");

	ss_edit_set(open_or_error(open_stream(&edit, &stream), SS_STRING("offset"),
							  JB_FOBJECT, "\"offset\""),
				&key, &value);
	PG_RETURN_JSONB_P(ss_state_edit_finish(&edit));
}

PG_FUNCTION_INFO_V1(singer_state_reset_stream);

/*
 * reset_stream(state, stream): an empty object, in the versions too if there
 * are any.
 */
Datum
singer_state_reset_stream(PG_FUNCTION_ARGS)
{
	SsStateEdit edit = ss_state_edit(ss_jsonb_arg(fcinfo, 0, "state"));
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");
	SsValue		empty = ss_value_empty_object();
	SsValue		versions;

	check_stream_name(&edit, &stream);
	ss_edit_set(ss_state_edit_streams(&edit), &stream, &empty);
	if (ss_edit_get(edit.tap_state, SS_STRING("activate_versions"), &versions))
		ss_edit_set(open_versions(&edit), &stream, &empty);
	PG_RETURN_JSONB_P(ss_state_edit_finish(&edit));
}

PG_FUNCTION_INFO_V1(singer_state_clear_stream);

Datum
singer_state_clear_stream(PG_FUNCTION_ARGS)
{
	Jsonb	   *state = ss_jsonb_arg(fcinfo, 0, "state");
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");

	PG_RETURN_JSONB_P(ss_stream_remove(state, &stream));
}

/*
 * Move what is under a key to another, if it is there.
 */
static void
rename_key(SsEdit *edit, const SsValue *old_key, const SsValue *new_key)
{
	SsValue		value,
				present;

	if (edit == NULL || !ss_edit_get(edit, old_key, &value))
		return;
	if (ss_edit_get(edit, new_key, &present))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("stream \"%.*s\" is there already",
						(int) new_key->len, new_key->data)));
	ss_edit_remove(edit, old_key);
	ss_edit_set(edit, new_key, &value);
}

PG_FUNCTION_INFO_V1(singer_state_rename_stream);

/*
 * rename_stream(state, stream, new_name): in all places that name a stream.
 */
Datum
singer_state_rename_stream(PG_FUNCTION_ARGS)
{
	Jsonb	   *state = ss_jsonb_arg(fcinfo, 0, "state");
	SsStateEdit edit = ss_state_edit(state);
	SsDocument	document = ss_document_open(state);
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");
	SsValue		new_name = ss_string_arg(fcinfo, 2, "new_name");
	SsValue		value;

	check_stream_name(&edit, &new_name);
	if (!ss_document_stream(&document, &stream, &value))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there is no stream \"%.*s\" in this state",
						(int) stream.len, stream.data)));
	if (ss_value_identical(&stream, &new_name))
		PG_RETURN_JSONB_P(state);

	rename_key(ss_state_edit_streams(&edit), &stream, &new_name);
	if (ss_edit_get(edit.tap_state, SS_STRING("activate_versions"), &value))
		rename_key(ss_edit_open(edit.tap_state, SS_STRING("activate_versions"),
								JB_FOBJECT), &stream, &new_name);
	if (ss_edit_get(edit.tap_state, SS_STRING("currently_syncing"), &value) &&
		ss_value_identical(&value, &stream))
		ss_edit_set(edit.tap_state, SS_STRING("currently_syncing"), &new_name);
	PG_RETURN_JSONB_P(ss_state_edit_finish(&edit));
}

PG_FUNCTION_INFO_V1(singer_state_set_currently_syncing);

Datum
singer_state_set_currently_syncing(PG_FUNCTION_ARGS)
{
	SsStateEdit edit = ss_state_edit(ss_jsonb_arg(fcinfo, 0, "state"));
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");

	ss_edit_set(edit.tap_state, SS_STRING("currently_syncing"), &stream);
	PG_RETURN_JSONB_P(ss_state_edit_finish(&edit));
}

PG_FUNCTION_INFO_V1(singer_state_clear_currently_syncing);

/*
 * clear_currently_syncing(state): singer-python's
 * set_currently_syncing(state, None), which leaves a null.
 */
Datum
singer_state_clear_currently_syncing(PG_FUNCTION_ARGS)
{
	SsStateEdit edit = ss_state_edit(ss_jsonb_arg(fcinfo, 0, "state"));
	SsValue		null = ss_value_null();

	ss_edit_set(edit.tap_state, SS_STRING("currently_syncing"), &null);
	PG_RETURN_JSONB_P(ss_state_edit_finish(&edit));
}

PG_FUNCTION_INFO_V1(singer_state_set_version);

Datum
singer_state_set_version(PG_FUNCTION_ARGS)
{
	SsStateEdit edit = ss_state_edit(ss_jsonb_arg(fcinfo, 0, "state"));
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");
	SsValue		version = ss_value_arg(fcinfo, 2, "version");

	ss_edit_set(open_versions(&edit), &stream, &version);
	PG_RETURN_JSONB_P(ss_state_edit_finish(&edit));
}

PG_FUNCTION_INFO_V1(singer_state_clear_version);

Datum
singer_state_clear_version(PG_FUNCTION_ARGS)
{
	SsStateEdit edit = ss_state_edit(ss_jsonb_arg(fcinfo, 0, "state"));
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");

	ss_edit_remove(open_versions(&edit), &stream);
	PG_RETURN_JSONB_P(ss_state_edit_finish(&edit));
}
