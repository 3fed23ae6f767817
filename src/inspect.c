/*-------------------------------------------------------------------------
 *
 * inspect.c
 *	  What is in a document, and what is wrong with it.
 *
 * Both functions work on any document.  bookmarks() takes what it finds; what
 * check_state() reports is what a tap would trip over.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "context.h"
#include "document.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/tuplestore.h"

/* Where rows go, and the stream that they are about */
typedef struct Report
{
	ReturnSetInfo *rsinfo;
	MemoryContext row_context;
	SsValue		stream;
	bool		has_stream;
} Report;

static void
report_init(Report *report, FunctionCallInfo fcinfo)
{
	memset(report, 0, sizeof(Report));
	InitMaterializedSRF(fcinfo, 0);
	report->rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	report->row_context = AllocSetContextCreate(CurrentMemoryContext,
												"singer_state report",
												ALLOCSET_DEFAULT_SIZES);
}

static Datum
json_datum(const SsValue *value)
{
	return JsonbPGetDatum(ss_value_to_jsonb(value));
}

static bool
get_key(const SsValue *object, const SsValue *key, SsValue *value)
{
	return ss_value_is_object(object) &&
		ss_object_get(ss_value_container(object), key, value);
}

/* ---------------------------------------------------------------------------
 * bookmarks()
 * ---------------------------------------------------------------------------
 */

/*
 * A bookmark without its partitions, which have rows of their own.
 */
static Datum
bookmark_datum(const SsValue *bookmark)
{
	SsEdit	   *edit;

	if (!ss_value_is_object(bookmark))
		return json_datum(bookmark);
	edit = ss_edit_create(ss_value_container(bookmark), JB_FOBJECT);
	ss_edit_remove(edit, SS_STRING("partitions"));
	if (edit->nchanges == 0)
		return json_datum(bookmark);
	return JsonbPGetDatum(ss_edit_finish(edit,
										 ss_value_to_jsonb(bookmark)));
}

static void
add_bookmark(Report *report, const SsValue *context, const SsValue *bookmark)
{
	static const SsValue keys[] = {
		{JENTRY_ISSTRING, 21, "replication_key_value"},
		{JENTRY_ISSTRING, 26, "starting_replication_value"},
		{JENTRY_ISSTRING, 24, "replication_key_signpost"},
		{JENTRY_ISSTRING, 16, "progress_markers"},
	};
	MemoryContext caller = MemoryContextSwitchTo(report->row_context);
	Datum		values[9];
	bool		nulls[9] = {false};
	SsValue		value;

	values[0] = PointerGetDatum(ss_value_to_text(&report->stream));
	nulls[1] = context == NULL;
	if (context != NULL)
		values[1] = json_datum(context);
	nulls[2] = !get_key(bookmark, SS_STRING("replication_key"), &value) ||
		!ss_value_is_string(&value);
	if (!nulls[2])
		values[2] = PointerGetDatum(ss_value_to_text(&value));
	for (int i = 0; i < lengthof(keys); i++)
	{
		nulls[3 + i] = !get_key(bookmark, &keys[i], &value);
		if (!nulls[3 + i])
			values[3 + i] = json_datum(&value);
	}
	values[7] = BoolGetDatum(nulls[6]);
	values[8] = bookmark_datum(bookmark);
	tuplestore_putvalues(report->rsinfo->setResult, report->rsinfo->setDesc,
						 values, nulls);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(report->row_context);
}

/*
 * The rows of a stream: one for itself, unless it has nothing but partitions,
 * and one for each partition, be they a list or, as they should not, a map.
 */
static void
add_stream(Report *report, const SsValue *bookmark)
{
	SsValue		partitions,
				key,
				partition,
				context;
	SsIterator	iterator;
	bool		partitioned =
	get_key(bookmark, SS_STRING("partitions"), &partitions) &&
	ss_value_is_container(&partitions) &&
	JsonContainerSize(ss_value_container(&partitions)) > 0;

	if (!partitioned || JsonContainerSize(ss_value_container(bookmark)) > 1)
		add_bookmark(report, NULL, bookmark);
	if (!partitioned)
		return;

	ss_iterator_init(&iterator, ss_value_container(&partitions));
	while (ss_iterator_next(&iterator, &key, &partition))
	{
		CHECK_FOR_INTERRUPTS();
		add_bookmark(report,
					 ss_context_of(&partition, &context) ? &context : NULL,
					 &partition);
	}
}

PG_FUNCTION_INFO_V1(singer_state_bookmarks);

/*
 * bookmarks(state): one row per stream and partition.
 */
Datum
singer_state_bookmarks(PG_FUNCTION_ARGS)
{
	SsDocument	document = ss_document_open(PG_GETARG_JSONB_P(0));
	SsIterator	iterator;
	SsValue		bookmark;
	Report		report;

	report_init(&report, fcinfo);
	if (document.streams == NULL)
		return (Datum) 0;
	ss_iterator_init(&iterator, document.streams);
	while (ss_document_next_stream(&document, &iterator, &report.stream,
								   &bookmark))
		add_stream(&report, &bookmark);
	return (Datum) 0;
}

/* ---------------------------------------------------------------------------
 * check_state()
 * ---------------------------------------------------------------------------
 */

static void
add_problem(Report *report, const SsValue *context, const char *problem,
			const char *detail)
{
	MemoryContext caller = MemoryContextSwitchTo(report->row_context);
	Datum		values[4];
	bool		nulls[4] = {!report->has_stream, context == NULL};

	if (report->has_stream)
		values[0] = PointerGetDatum(ss_value_to_text(&report->stream));
	if (context != NULL)
		values[1] = json_datum(context);
	values[2] = CStringGetTextDatum(problem);
	values[3] = CStringGetTextDatum(detail);
	tuplestore_putvalues(report->rsinfo->setResult, report->rsinfo->setDesc,
						 values, nulls);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(report->row_context);
}

static void
check_partition(Report *report, SsContextIndex *index,
				const SsValue *partition, uint32 position)
{
	SsValue		context;

	if (!ss_value_is_object(partition))
		add_problem(report, NULL, "partition_not_object",
					"A partition is not a JSON object.");
	else if (!ss_context_of(partition, &context))
		add_problem(report, NULL, "partition_without_context",
					"A partition has no context, so that no run finds it.");
	else if (!ss_context_index_add(index, &context, &position))
		add_problem(report, &context, "duplicate_partition",
					"Another partition of the stream has the same context; the tap refuses to start.");
}

static void
check_partitions(Report *report, const SsValue *partitions)
{
	SsContextIndex *index;
	SsIterator	iterator;
	SsValue		key,
				partition;

	if (!ss_value_is_array(partitions))
	{
		add_problem(report, NULL,
					ss_value_is_object(partitions) ?
					"partitions_are_map" : "partitions_not_array",
					"Partitions must be a JSON array; the tap cannot read them.");
		return;
	}

	index = ss_context_index_create(JsonContainerSize(ss_value_container(partitions)));
	ss_iterator_init(&iterator, ss_value_container(partitions));
	while (ss_iterator_next(&iterator, &key, &partition))
	{
		CHECK_FOR_INTERRUPTS();
		check_partition(report, index, &partition, iterator.index - 1);
	}
}

static void
check_stream(Report *report, const SsValue *bookmark)
{
	SsValue		value;

	if (ss_value_is_null(bookmark))
		add_problem(report, NULL, "null_stream",
					"The bookmark is null; the stream begins anew, or the tap fails.");
	else if (!ss_value_is_object(bookmark))
		add_problem(report, NULL, "stream_not_object",
					"The bookmark is not a JSON object; only taps that keep bare values read it.");
	else if (JsonContainerSize(ss_value_container(bookmark)) == 0)
		add_problem(report, NULL, "empty_stream",
					"The bookmark is empty; the stream begins anew.");
	if (get_key(bookmark, SS_STRING("partitions"), &value))
		check_partitions(report, &value);
	if (get_key(bookmark, SS_STRING("progress_markers"), &value) &&
		!ss_value_is_object(&value))
		add_problem(report, NULL, "progress_markers_not_object",
					"Progress markers must be a JSON object.");
}

/*
 * What is wrong with the document around the streams.  NULL if nothing is.
 */
static const char *
find_document_problem(const SsDocument *document, const SsValue *root,
					  const char **detail)
{
	SsValue		value;

	*detail = "A state is a JSON object.";
	if (ss_value_is_string(root))
		*detail = "It is a string, perhaps one that holds JSON: pass what it holds.";
	if (!ss_value_is_object(root))
		return "not_object";
	*detail = "\"singer_state\" must be a JSON object.";
	if (document->tap_state == NULL || document->form == SS_FORM_OTHER)
		return "singer_state_not_object";
	*detail = "A payload is wrapped in another; the tap finds no bookmarks.";
	if (document->form == SS_FORM_PAYLOAD &&
		ss_object_get(document->tap_state, SS_STRING("singer_state"), &value))
		return "double_wrapping";
	*detail = "This is a STATE message; its value is the state.";
	if (get_key(root, SS_STRING("type"), &value) &&
		ss_value_identical(&value, SS_STRING("STATE")))
		return "state_message";
	*detail = "\"bookmarks\" must be a JSON object.";
	if (!document->flat &&
		ss_object_get(document->tap_state, SS_STRING("bookmarks"), &value) &&
		!ss_value_is_object(&value))
		return "bookmarks_not_object";
	return NULL;
}

PG_FUNCTION_INFO_V1(singer_state_check_state);

/*
 * check_state(state): one row for each problem.
 */
Datum
singer_state_check_state(PG_FUNCTION_ARGS)
{
	Jsonb	   *state = PG_GETARG_JSONB_P(0);
	SsDocument	document = ss_document_open(state);
	SsValue		root = ss_value_from_jsonb(state);
	const char *problem;
	const char *detail;
	SsIterator	iterator;
	SsValue		bookmark;
	Report		report;

	report_init(&report, fcinfo);
	problem = find_document_problem(&document, &root, &detail);
	if (problem != NULL)
		add_problem(&report, NULL, problem, detail);
	if (document.streams == NULL || problem != NULL)
		return (Datum) 0;

	report.has_stream = true;
	ss_iterator_init(&iterator, document.streams);
	while (ss_document_next_stream(&document, &iterator, &report.stream,
								   &bookmark))
		check_stream(&report, &bookmark);
	return (Datum) 0;
}
