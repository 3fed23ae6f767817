/*-------------------------------------------------------------------------
 *
 * progress.c
 *	  The progress of a sync in a state: replication values and markers.
 *
 * The Singer SDK's rules.  A sync begins by writing its starting replication
 * value.  Each record moves the bookmark: in a sorted stream the replication
 * value itself, for all before it has been seen; else the one in the progress
 * markers, which mean nothing until the sync is complete.  Then finalizing
 * promotes the markers, capped by the signpost, the greatest value that the
 * sync can vouch for.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access/xact.h"
#include "args.h"
#include "catalog/pg_type.h"
#include "compare.h"
#include "context.h"
#include "miscadmin.h"
#include "progress.h"
#include "utils/array.h"
#include "utils/timestamp.h"

#define REPLICATION_KEY SS_STRING("replication_key")
#define REPLICATION_KEY_VALUE SS_STRING("replication_key_value")
#define STARTING_REPLICATION_VALUE SS_STRING("starting_replication_value")
#define SIGNPOST SS_STRING("replication_key_signpost")
#define PROGRESS_MARKERS SS_STRING("progress_markers")
#define PROGRESS_NOTE SS_STRING("Progress is not resumable if interrupted.")

typedef void (*BookmarkChange) (SsEdit *bookmark, bool is_timestamp);

/*
 * Is the replication method FULL_TABLE?  Errors if it is not one at all.
 */
static bool
is_full_table(const SsValue *method)
{
	if (ss_value_identical(method, SS_STRING("FULL_TABLE")))
		return true;
	if (!ss_value_identical(method, SS_STRING("INCREMENTAL")) &&
		!ss_value_identical(method, SS_STRING("LOG_BASED")))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid replication method \"%.*s\"",
						(int) method->len, method->data),
				 errhint("Replication methods are INCREMENTAL, FULL_TABLE and LOG_BASED.")));
	return false;
}

/* ---------------------------------------------------------------------------
 * Increment
 * ---------------------------------------------------------------------------
 */

static char *
value_text(const SsValue *value)
{
	Jsonb	   *jsonb = ss_value_to_jsonb(value);

	return JsonbToCString(NULL, &jsonb->root, VARSIZE(jsonb));
}

/*
 * Where the progress of a bookmark is kept: in the bookmark if its stream is
 * sorted, else in its progress markers.
 */
static SsEdit *
open_progress(SsEdit *bookmark, bool is_sorted)
{
	SsEdit	   *markers;
	SsValue		present;

	if (is_sorted)
		return bookmark;

	if (ss_edit_get(bookmark, PROGRESS_MARKERS, &present) &&
		ss_value_is_object(&present))
		return ss_edit_open(bookmark, PROGRESS_MARKERS, JB_FOBJECT);

	markers = ss_edit_renew(bookmark, PROGRESS_MARKERS, JB_FOBJECT);
	ss_edit_set(markers, SS_STRING("Note"), PROGRESS_NOTE);
	return markers;
}

/*
 * Move a bookmark on to a replication value.
 */
Jsonb *
ss_state_increment(Jsonb *state, const SsValue *stream,
				   const SsValue *replication_key, const SsValue *value,
				   const SsValue *context, const SsIncrement *how)
{
	SsStateEdit edit = ss_state_edit(state);
	SsEdit	   *progress =
	open_progress(ss_state_edit_bookmark(&edit, stream, context),
				  how->is_sorted);
	SsValue		old;

	if (ss_value_is_null(value))
		return ss_state_edit_finish(&edit);

	if (!ss_edit_get(progress, REPLICATION_KEY_VALUE, &old) ||
		ss_value_is_null(&old) || !how->check_sorted ||
		ss_replication_compare(value, &old, how->is_timestamp) >= 0)
	{
		ss_edit_set(progress, REPLICATION_KEY, replication_key);
		ss_edit_set(progress, REPLICATION_KEY_VALUE, value);
	}
	else if (how->is_sorted)
		ereport(ERROR,
				(errcode(ERRCODE_SS_UNSORTED_DATA),
				 errmsg("unsorted data in sorted stream \"%.*s\": %s is smaller than the previous maximum %s",
						(int) stream->len, stream->data,
						value_text(value), value_text(&old)),
				 errhint("If the source does not sort, pass is_sorted => false.")));
	return ss_state_edit_finish(&edit);
}

/*
 * The part of a context that has the given keys; NULL if there is none.
 */
static const SsValue *
filter_context(const SsValue *context, ArrayType *keys)
{
	SsEdit	   *filtered = ss_edit_create(NULL, JB_FOBJECT);
	SsValue    *result = palloc(sizeof(SsValue));
	Datum	   *elements;
	bool	   *nulls;
	int			count;

	if (context == NULL || !ss_value_is_object(context))
		return context;

	deconstruct_array(keys, TEXTOID, -1, false, TYPALIGN_INT,
					  &elements, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		SsValue		key,
					value;

		if (nulls[i])
			continue;
		key = ss_value_from_text(DatumGetTextPP(elements[i]));
		if (ss_object_get(ss_value_container(context), &key, &value))
			ss_edit_set(filtered, &key, &value);
	}
	if (filtered->nchanges == 0)
		return NULL;
	*result = ss_value_from_jsonb(ss_edit_finish(filtered, NULL));
	return result;
}

PG_FUNCTION_INFO_V1(singer_state_partition_context);

/*
 * partition_context(context, partitioning_keys)
 */
Datum
singer_state_partition_context(PG_FUNCTION_ARGS)
{
	const SsValue *context = ss_context_arg(fcinfo, 0);

	if (context != NULL && !PG_ARGISNULL(1))
		context = filter_context(context, PG_GETARG_ARRAYTYPE_P(1));
	if (context == NULL)
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(ss_value_to_jsonb(context));
}

/*
 * The replication value of a record; errors if it has none.
 */
static SsValue
record_value(const SsValue *record, const SsValue *key)
{
	SsValue		value;

	if (!ss_value_is_object(record))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a record must be a JSON object")));
	if (!ss_object_get(ss_value_container(record), key, &value))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("record has no replication key \"%.*s\"",
						(int) key->len, key->data)));
	return value;
}

PG_FUNCTION_INFO_V1(singer_state_increment_state);

/*
 * increment_state(state, stream, latest_record, replication_key, is_sorted,
 *				   check_sorted, context, partitioning_keys, is_timestamp)
 */
Datum
singer_state_increment_state(PG_FUNCTION_ARGS)
{
	Jsonb	   *state = ss_jsonb_arg(fcinfo, 0, "state");
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");
	SsValue		record = ss_value_arg(fcinfo, 2, "latest_record");
	SsValue		key = ss_string_arg(fcinfo, 3, "replication_key");
	SsIncrement how = {
		.is_sorted = ss_flag_arg(fcinfo, 4, "is_sorted"),
		.check_sorted = ss_flag_arg(fcinfo, 5, "check_sorted"),
		.is_timestamp = ss_flag_arg(fcinfo, 8, "is_timestamp")
	};
	const SsValue *context = ss_context_arg(fcinfo, 6);
	SsValue		value = record_value(&record, &key);

	/*
	 * partitions that several contexts share are not sorted, even if these
	 * are
	 */
	if (!PG_ARGISNULL(7))
	{
		context = filter_context(context, PG_GETARG_ARRAYTYPE_P(7));
		how.is_sorted = false;
	}
	PG_RETURN_JSONB_P(ss_state_increment(state, &stream, &key, &value, context,
										 &how));
}

PG_FUNCTION_INFO_V1(singer_state_increment_agg_transition);

/*
 * Transition function of increment_agg(record, replication_key): the greatest
 * replication value so far.  Answers the old one itself while it is.
 */
Datum
singer_state_increment_agg_transition(PG_FUNCTION_ARGS)
{
	SsValue		old,
				record,
				key,
				value;
	bool		is_timestamp = PG_NARGS() > 3 && !PG_ARGISNULL(3) &&
	PG_GETARG_BOOL(3);

	if (!PG_ARGISNULL(1))
	{
		record = ss_value_from_jsonb(PG_GETARG_JSONB_P(1));
		key = ss_string_arg(fcinfo, 2, "replication_key");
		value = record_value(&record, &key);
		if (!PG_ARGISNULL(0))
			old = ss_value_from_jsonb(PG_GETARG_JSONB_P(0));
		if (!ss_value_is_null(&value) &&
			(PG_ARGISNULL(0) ||
			 ss_replication_compare(&value, &old, is_timestamp) > 0))
			PG_RETURN_JSONB_P(ss_value_to_jsonb(&value));
	}

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

PG_FUNCTION_INFO_V1(singer_state_increment_agg_combine);

Datum
singer_state_increment_agg_combine(PG_FUNCTION_ARGS)
{
	SsValue		a = ss_value_from_jsonb(PG_GETARG_JSONB_P(0));
	SsValue		b = ss_value_from_jsonb(PG_GETARG_JSONB_P(1));

	PG_RETURN_DATUM(PG_GETARG_DATUM(ss_replication_compare(&b, &a, false) > 0));
}

/* ---------------------------------------------------------------------------
 * Finalizing
 * ---------------------------------------------------------------------------
 */

/*
 * Make the progress of a completed sync the bookmark.
 */
static void
finalize_bookmark(SsEdit *bookmark, bool is_timestamp)
{
	SsValue		markers,
				key,
				value,
				signpost;
	bool		has_signpost = ss_edit_get(bookmark, SIGNPOST, &signpost) &&
	ss_value_is_truthy(&signpost);

	if (ss_edit_get(bookmark, PROGRESS_MARKERS, &markers) &&
		ss_value_is_object(&markers) &&
		ss_object_get(ss_value_container(&markers), REPLICATION_KEY, &key) &&
		ss_object_get(ss_value_container(&markers), REPLICATION_KEY_VALUE, &value))
	{
		if (has_signpost &&
			ss_replication_compare(&value, &signpost, is_timestamp) > 0)
			value = signpost;
		ss_edit_set(bookmark, REPLICATION_KEY, &key);
		ss_edit_set(bookmark, REPLICATION_KEY_VALUE, &value);
	}
	ss_edit_remove(bookmark, SIGNPOST);
	ss_edit_remove(bookmark, STARTING_REPLICATION_VALUE);
	ss_edit_remove(bookmark, PROGRESS_MARKERS);
}

static void
reset_bookmark(SsEdit *bookmark, bool is_timestamp)
{
	ss_edit_remove(bookmark, PROGRESS_MARKERS);
}

/*
 * Change a child of a container, if it is an object.
 */
static void
change_child(SsEdit *parent, uint32 position, const SsValue *key,
			 const SsValue *child, BookmarkChange change, bool is_timestamp)
{
	SsEdit	   *edit;
	SsValue		changed;

	if (!ss_value_is_object(child))
		return;
	edit = ss_edit_create(ss_value_container(child), JB_FOBJECT);
	change(edit, is_timestamp);
	if (edit->nchanges == 0)
		return;
	changed = ss_value_from_edit(edit);
	ss_edit_change(parent, position, false, key, &changed);
}

/*
 * Change a stream and all its partitions.
 */
static void
change_with_partitions(SsEdit *stream, bool is_timestamp, BookmarkChange change)
{
	SsEdit	   *edit;
	SsIterator	iterator;
	SsValue		partitions,
				key,
				partition;

	change(stream, is_timestamp);
	if (!ss_object_get(stream->base, SS_STRING("partitions"), &partitions) ||
		!ss_value_is_array(&partitions))
		return;

	edit = ss_edit_create(ss_value_container(&partitions), JB_FARRAY);
	ss_iterator_init(&iterator, edit->base);
	while (ss_iterator_next(&iterator, &key, &partition))
	{
		CHECK_FOR_INTERRUPTS();
		change_child(edit, iterator.index - 1, NULL, &partition, change,
					 is_timestamp);
	}
	if (edit->nchanges > 0)
	{
		partitions = ss_value_from_edit(edit);
		ss_edit_set(stream, SS_STRING("partitions"), &partitions);
	}
}

static void
finalize_with_partitions(SsEdit *stream, bool is_timestamp)
{
	change_with_partitions(stream, is_timestamp, finalize_bookmark);
}

static void
reset_with_partitions(SsEdit *stream, bool is_timestamp)
{
	change_with_partitions(stream, is_timestamp, reset_bookmark);
}

/*
 * Change every stream of a state.
 */
static Jsonb *
change_all(Jsonb *state, BookmarkChange change, bool is_timestamp)
{
	SsStateEdit edit = ss_state_edit(state);
	SsDocument	document = ss_document_open(state);
	SsEdit	   *streams;
	SsIterator	iterator;
	SsValue		stream,
				value;

	if (document.streams == NULL)
		return state;
	streams = ss_state_edit_streams(&edit);
	ss_iterator_init(&iterator, document.streams);
	while (ss_document_next_stream(&document, &iterator, &stream, &value))
		change_child(streams, iterator.index - 1, &stream, &value, change,
					 is_timestamp);
	return ss_state_edit_finish(&edit);
}

/*
 * Change the bookmark of a stream, or of one of its partitions.
 */
static Jsonb *
change_one(Jsonb *state, const SsValue *stream, const SsValue *context,
		   BookmarkChange change, bool is_timestamp)
{
	SsStateEdit edit = ss_state_edit(state);

	change(ss_state_edit_bookmark(&edit, stream, context), is_timestamp);
	return ss_state_edit_finish(&edit);
}

static void
check_context_has_stream(const SsValue *context)
{
	if (context != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a context needs a stream")));
}

/*
 * Finalize the bookmark of a stream or of one partition; if stream is NULL,
 * those of all streams and partitions.
 */
Jsonb *
ss_state_finalize(Jsonb *state, const SsValue *stream, const SsValue *context,
				  bool is_timestamp)
{
	if (stream != NULL)
		return change_one(state, stream, context, finalize_bookmark,
						  is_timestamp);
	check_context_has_stream(context);
	return change_all(state, finalize_with_partitions, is_timestamp);
}

PG_FUNCTION_INFO_V1(singer_state_finalize_state_progress_markers);

/*
 * finalize_state_progress_markers(state, stream, context, is_timestamp)
 */
Datum
singer_state_finalize_state_progress_markers(PG_FUNCTION_ARGS)
{
	Jsonb	   *state = ss_jsonb_arg(fcinfo, 0, "state");
	SsValue		stream = {0};

	if (!PG_ARGISNULL(1))
		stream = ss_string_arg(fcinfo, 1, "stream");
	PG_RETURN_JSONB_P(ss_state_finalize(state,
										PG_ARGISNULL(1) ? NULL : &stream,
										ss_context_arg(fcinfo, 2),
										ss_flag_arg(fcinfo, 3, "is_timestamp")));
}

PG_FUNCTION_INFO_V1(singer_state_reset_state_progress_markers);

/*
 * reset_state_progress_markers(state, stream, context)
 */
Datum
singer_state_reset_state_progress_markers(PG_FUNCTION_ARGS)
{
	Jsonb	   *state = ss_jsonb_arg(fcinfo, 0, "state");
	const SsValue *context = ss_context_arg(fcinfo, 2);
	SsValue		stream;

	if (PG_ARGISNULL(1))
	{
		check_context_has_stream(context);
		PG_RETURN_JSONB_P(change_all(state, reset_with_partitions, false));
	}
	stream = ss_string_arg(fcinfo, 1, "stream");
	PG_RETURN_JSONB_P(change_one(state, &stream, context, reset_bookmark, false));
}

/* ---------------------------------------------------------------------------
 * Resumable or not
 * ---------------------------------------------------------------------------
 */

static bool
has_markers(const SsValue *bookmark)
{
	SsValue		markers;

	return ss_value_is_object(bookmark) &&
		ss_object_get(ss_value_container(bookmark), PROGRESS_MARKERS, &markers);
}

static bool
any_partition_has_markers(const SsValue *stream)
{
	SsIterator	iterator;
	SsValue		partitions,
				key,
				partition;

	if (!ss_value_is_object(stream) ||
		!ss_object_get(ss_value_container(stream), SS_STRING("partitions"),
					   &partitions) ||
		!ss_value_is_array(&partitions))
		return false;
	ss_iterator_init(&iterator, ss_value_container(&partitions));
	while (ss_iterator_next(&iterator, &key, &partition))
	{
		if (has_markers(&partition))
			return true;
	}
	return false;
}

/*
 * Can the next run resume from this state?  Not if a stream or partition
 * still has progress markers.
 */
bool
ss_state_is_resumable(const Jsonb *state)
{
	SsDocument	document = ss_document_open(state);
	SsIterator	iterator;
	SsValue		stream,
				value;

	if (document.streams == NULL)
		return true;
	ss_iterator_init(&iterator, document.streams);
	while (ss_document_next_stream(&document, &iterator, &stream, &value))
	{
		if (has_markers(&value) || any_partition_has_markers(&value))
			return false;
	}
	return true;
}

PG_FUNCTION_INFO_V1(singer_state_is_state_non_resumable);

/*
 * is_state_non_resumable(state, stream, replication_method, context)
 */
Datum
singer_state_is_state_non_resumable(PG_FUNCTION_ARGS)
{
	SsValue		stream,
				method,
				bookmark;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	stream = ss_string_arg(fcinfo, 1, "stream");
	method = ss_string_arg(fcinfo, 2, "replication_method");
	if (is_full_table(&method))
		PG_RETURN_BOOL(true);
	PG_RETURN_BOOL(ss_bookmark_find(PG_GETARG_JSONB_P(0), &stream,
									ss_context_arg(fcinfo, 3), &bookmark) &&
				   has_markers(&bookmark));
}

/* ---------------------------------------------------------------------------
 * Starting value and signpost
 * ---------------------------------------------------------------------------
 */

/*
 * The value to start from: the bookmark of the same replication key, or the
 * start date if that is later.
 */
static SsValue
starting_value(const SsEdit *bookmark, const SsValue *replication_key,
			   const SsValue *start_date, bool is_timestamp)
{
	SsValue		key,
				value;

	if (!ss_edit_get(bookmark, REPLICATION_KEY_VALUE, &value) ||
		!ss_value_is_truthy(&value) ||
		!ss_edit_get(bookmark, REPLICATION_KEY, &key) ||
		!ss_value_is_string(&key) ||
		!ss_value_identical(&key, replication_key))
		return start_date != NULL ? *start_date : ss_value_null();

	if (start_date != NULL && is_timestamp &&
		ss_replication_compare(&value, start_date, true) < 0)
		return *start_date;
	return value;
}

PG_FUNCTION_INFO_V1(singer_state_write_starting_replication_value);

/*
 * write_starting_replication_value(state, stream, replication_method,
 *				   replication_key, start_date, is_timestamp, context)
 */
Datum
singer_state_write_starting_replication_value(PG_FUNCTION_ARGS)
{
	Jsonb	   *state = ss_jsonb_arg(fcinfo, 0, "state");
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");
	SsValue		method = ss_string_arg(fcinfo, 2, "replication_method");
	bool		is_timestamp = ss_flag_arg(fcinfo, 5, "is_timestamp");
	SsValue		value = ss_value_null();
	SsValue		key,
				start_date = {0};
	SsStateEdit edit;
	SsEdit	   *bookmark;

	if (is_full_table(&method))
		PG_RETURN_JSONB_P(state);

	edit = ss_state_edit(state);
	bookmark = ss_state_edit_bookmark(&edit, &stream,
									  ss_context_arg(fcinfo, 6));
	if (!PG_ARGISNULL(4))
		start_date = ss_string_arg(fcinfo, 4, "start_date");
	if (!PG_ARGISNULL(3))
	{
		key = ss_string_arg(fcinfo, 3, "replication_key");
		if (key.len > 0)
			value = starting_value(bookmark, &key,
								   start_date.len > 0 ? &start_date : NULL,
								   is_timestamp);
	}
	ss_edit_set(bookmark, STARTING_REPLICATION_VALUE, &value);
	PG_RETURN_JSONB_P(ss_state_edit_finish(&edit));
}

/*
 * The starting value of arguments stream (1), method (2) and context (3).
 */
static bool
find_starting_value(FunctionCallInfo fcinfo, SsValue *value)
{
	SsValue		stream,
				method,
				bookmark;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		return false;
	stream = ss_string_arg(fcinfo, 1, "stream");
	method = ss_string_arg(fcinfo, 2, "replication_method");
	return !is_full_table(&method) &&
		ss_bookmark_find(PG_GETARG_JSONB_P(0), &stream,
						 ss_context_arg(fcinfo, 3), &bookmark) &&
		ss_value_is_object(&bookmark) &&
		ss_object_get(ss_value_container(&bookmark),
					  STARTING_REPLICATION_VALUE, value);
}

PG_FUNCTION_INFO_V1(singer_state_get_starting_replication_value);

Datum
singer_state_get_starting_replication_value(PG_FUNCTION_ARGS)
{
	SsValue		value;

	if (!find_starting_value(fcinfo, &value))
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(ss_value_to_jsonb(&value));
}

PG_FUNCTION_INFO_V1(singer_state_get_starting_timestamp);

Datum
singer_state_get_starting_timestamp(PG_FUNCTION_ARGS)
{
	SsValue		value;

	if (!find_starting_value(fcinfo, &value) || ss_value_is_null(&value))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(ss_timestamp_from_value(&value));
}

PG_FUNCTION_INFO_V1(singer_state_write_replication_key_signpost);

/*
 * write_replication_key_signpost(state, stream, value, context)
 */
Datum
singer_state_write_replication_key_signpost(PG_FUNCTION_ARGS)
{
	Jsonb	   *state = ss_jsonb_arg(fcinfo, 0, "state");
	SsValue		stream = ss_string_arg(fcinfo, 1, "stream");
	SsValue		value = ss_value_arg(fcinfo, 2, "value");

	if (!ss_value_is_truthy(&value))
		PG_RETURN_JSONB_P(state);
	PG_RETURN_JSONB_P(ss_bookmark_set(state, &stream, SIGNPOST, &value,
									  ss_context_arg(fcinfo, 3)));
}

PG_FUNCTION_INFO_V1(singer_state_get_replication_key_signpost);

/*
 * get_replication_key_signpost(is_timestamp): the time of the transaction in
 * UTC, as Python prints it.
 */
Datum
singer_state_get_replication_key_signpost(PG_FUNCTION_ARGS)
{
	struct pg_tm tm;
	fsec_t		fsec;
	char text[	64];
	SsValue		value;

	if (PG_ARGISNULL(0) || !PG_GETARG_BOOL(0))
		PG_RETURN_NULL();
	/* as a timestamp without zone, so that no zone is applied */
	if (timestamp2tm(GetCurrentTransactionStartTimestamp(), NULL, &tm, &fsec,
					 NULL, NULL) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d",
			 tm.tm_year, tm.tm_mon, tm.tm_mday,
			 tm.tm_hour, tm.tm_min, tm.tm_sec);
	if (fsec != 0)
		snprintf(text +strlen(text), sizeof(text) - strlen(text), ".%06d",
				 (int) fsec);
	strlcat(text, "+00:00", sizeof(text));
	value = ss_value_from_string(text, strlen(text));
	PG_RETURN_JSONB_P(ss_value_to_jsonb(&value));
}
