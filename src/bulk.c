/*-------------------------------------------------------------------------
 *
 * bulk.c
 *	  The functions that work on many states: list, export, import, clear_all.
 *
 * State ids are taken in byte order, the order of the primary key, by
 * everybody; so two bulk calls over the same ids cannot deadlock.  Each id is
 * claimed only while its row is written, after which the row itself keeps
 * others out until the transaction ends; so the number of ids is not limited
 * by max_locks_per_transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "args.h"
#include "claim.h"
#include "json.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "plans.h"
#include "state_id.h"
#include "store.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "validate.h"

PG_FUNCTION_INFO_V1(singer_state_list);
PG_FUNCTION_INFO_V1(singer_state_export);
PG_FUNCTION_INFO_V1(singer_state_import);
PG_FUNCTION_INFO_V1(singer_state_clear_all);

/* Rows to fetch from a cursor at a time */
#define BATCH_SIZE 1000

/* Called for each row whose state id matches, in a context of its own */
typedef void (*MatchVisitor) (text *state_id, HeapTuple tuple, TupleDesc desc,
							  void *arg);

typedef enum OnConflict
{
	CONFLICT_ERROR,
	CONFLICT_OVERWRITE,
	CONFLICT_SKIP
} OnConflict;

static const char *const conflict_names[] = {"error", "overwrite", "skip", NULL};

/* One state to import */
typedef struct Import
{
	text	   *state_id;
	Jsonb	   *completed;
	Jsonb	   *partial;
	bool		skip_existing;
	bool		skipped;
} Import;

static text *
state_id_column(HeapTuple tuple, TupleDesc desc)
{
	bool		isnull;

	return DatumGetTextPP(SPI_getbinval(tuple, desc, 1, &isnull));
}

/*
 * Visit a batch of rows; answers false once the rest cannot match.
 */
static bool
visit_batch(const SsGlob *glob, MatchVisitor visitor, void *arg)
{
	MemoryContext row_context = AllocSetContextCreate(CurrentMemoryContext,
													  "singer_state row",
													  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(row_context);
	SPITupleTable *rows = SPI_tuptable;
	uint64		nrows = SPI_processed;
	bool		covered = true;

	for (uint64 i = 0; i < nrows && covered; i++)
	{
		text	   *state_id = state_id_column(rows->vals[i], rows->tupdesc);

		CHECK_FOR_INTERRUPTS();
		covered = ss_glob_covers(glob, state_id);
		if (covered && ss_glob_match(glob, state_id))
			visitor(state_id, rows->vals[i], rows->tupdesc, arg);
		MemoryContextReset(row_context);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(row_context);
	return covered;
}

/*
 * Visit the states whose ids match a pattern, in byte order.  Needs an SPI
 * connection.
 *
 * The scan starts at the pattern's fixed prefix and ends with the first state
 * id that does not have it.
 */
static void
visit_matches(SsPlan plan, text *pattern, bool read_only,
			  MatchVisitor visitor, void *arg)
{
	SsGlob	   *glob = ss_glob_compile(pattern);
	Datum		values[2];
	SPIPlanPtr	prepared;
	Portal		portal;
	int			level;
	bool		more = true;

	values[0] = PointerGetDatum(ss_namespace_current());
	values[1] = PointerGetDatum(ss_glob_prefix(glob));
	prepared = ss_plan_get(plan);
	level = ss_plan_begin(prepared);
	portal = SPI_cursor_open(NULL, prepared, values, NULL, read_only);
	ss_plan_end(level);
	while (more)
	{
		SPI_cursor_fetch(portal, true, BATCH_SIZE);
		more = SPI_processed > 0 && visit_batch(glob, visitor, arg);
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_cursor_close(portal);
}

static void
put_state_id(ReturnSetInfo *rsinfo, text *state_id)
{
	Datum		value = PointerGetDatum(state_id);
	bool		isnull = false;

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value, &isnull);
}

static void
list_visitor(text *state_id, HeapTuple tuple, TupleDesc desc, void *arg)
{
	put_state_id((ReturnSetInfo *) arg, state_id);
}

static text *
pattern_arg(FunctionCallInfo fcinfo, int argno)
{
	ss_require_arg(fcinfo, argno, "pattern");
	return PG_GETARG_TEXT_PP(argno);
}

/*
 * list(pattern): the state ids that match, in byte order.
 */
Datum
singer_state_list(PG_FUNCTION_ARGS)
{
	text	   *pattern = pattern_arg(fcinfo, 0);

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	SPI_connect();
	visit_matches(SS_PLAN_STATE_LIST, pattern, true, list_visitor,
				  fcinfo->resultinfo);
	SPI_finish();
	return (Datum) 0;
}

static void
push_key(JsonbParseState **parse_state, const char *key, int length)
{
	JsonbValue	value;

	value.type = jbvString;
	value.val.string.val = pnstrdup(key, length);
	value.val.string.len = length;
	pushJsonbValue(parse_state, WJB_KEY, &value);
}

static void
push_part(JsonbParseState **parse_state, const char *key, Jsonb *part)
{
	JsonbValue	value;

	push_key(parse_state, key, strlen(key));
	if (part == NULL)
		part = ss_document_empty();
	value.type = jbvBinary;
	value.val.binary.data = &part->root;
	value.val.binary.len = VARSIZE(part) - VARHDRSZ;
	pushJsonbValue(parse_state, WJB_VALUE, &value);
}

/* Where export builds its document, and in which context */
typedef struct Export
{
	MemoryContext context;
	JsonbParseState *parse_state;
} Export;

static void
export_visitor(text *state_id, HeapTuple tuple, TupleDesc desc, void *arg)
{
	Export	   *export = arg;
	MemoryContext old;

	old = MemoryContextSwitchTo(export->context);
	push_key(&export->parse_state, VARDATA_ANY(state_id),
			 VARSIZE_ANY_EXHDR(state_id));
	pushJsonbValue(&export->parse_state, WJB_BEGIN_OBJECT, NULL);
	push_part(&export->parse_state, "completed",
			  ss_plan_jsonb(export->context, tuple, desc, 2));
	push_part(&export->parse_state, "partial",
			  ss_plan_jsonb(export->context, tuple, desc, 3));
	pushJsonbValue(&export->parse_state, WJB_END_OBJECT, NULL);
	MemoryContextSwitchTo(old);
}

/*
 * export(pattern): {state id: {"completed": ..., "partial": ...}} as Meltano
 * exports it.
 */
Datum
singer_state_export(PG_FUNCTION_ARGS)
{
	text	   *pattern = pattern_arg(fcinfo, 0);
	MemoryContext caller = CurrentMemoryContext;
	Export		export;
	Jsonb	   *result;

	export.context = AllocSetContextCreate(caller, "singer_state export",
										   ALLOCSET_DEFAULT_SIZES);
	export.parse_state = NULL;
	MemoryContextSwitchTo(export.context);
	pushJsonbValue(&export.parse_state, WJB_BEGIN_OBJECT, NULL);

	SPI_connect();
	visit_matches(SS_PLAN_STATE_EXPORT, pattern, true, export_visitor, &export);
	SPI_finish();

	MemoryContextSwitchTo(export.context);
	result = JsonbValueToJsonb(pushJsonbValue(&export.parse_state,
											  WJB_END_OBJECT, NULL));
	MemoryContextSwitchTo(caller);
	result = (Jsonb *) DatumGetPointer(datumCopy(JsonbPGetDatum(result), false, -1));
	MemoryContextDelete(export.context);
	PG_RETURN_JSONB_P(result);
}

static void
refuse_import(text *state_id, const char *problem)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("cannot import state \"%s\": %s",
					text_to_cstring(state_id), problem),
			 errhint("An export is {\"state id\": {\"completed\": ..., \"partial\": ...}, ...}.")));
}

/*
 * A part of an imported state: null and absent stand for the empty object.
 * Unlike set, import takes any object or array, since that is what may have
 * been exported.
 */
static Jsonb *
imported_part(text *state_id, JsonbContainer *entry, const char *key)
{
	JsonbValue	value;

	if (getKeyJsonValueFromContainer(entry, key, strlen(key), &value) == NULL ||
		value.type == jbvNull)
		return NULL;
	if (value.type != jbvBinary)
		refuse_import(state_id, psprintf("\"%s\" is not an object", key));
	return ss_document_normalize(JsonbValueToJsonb(&value));
}

/*
 * Has an entry no keys but those of an export?  Whoever imports a plain map
 * of state ids to states must not end up with empty states.
 */
static bool
is_entry(JsonbContainer *entry)
{
	JsonbValue	part;
	int			known = 0;

	if (getKeyJsonValueFromContainer(entry, "completed", 9, &part) != NULL)
		known++;
	if (getKeyJsonValueFromContainer(entry, "partial", 7, &part) != NULL)
		known++;
	return JsonContainerSize(entry) == known;
}

static void
edit_import(SsState *state, void *arg)
{
	Import	   *import = arg;

	if (import->skip_existing && state->exists)
	{
		import->skipped = true;
		return;
	}
	import->skipped = false;
	state->completed = (struct varlena *) import->completed;
	state->partial = (struct varlena *) import->partial;
}

/*
 * Import one state; answers whether it was written.
 */
static bool
import_state(text *state_id, JsonbContainer *states,
			 OnConflict on_conflict)
{
	JsonbValue	entry;
	SsWrite		write;
	Import		import;

	ss_state_id_check(state_id);
	if (getKeyJsonValueFromContainer(states, VARDATA_ANY(state_id),
									 VARSIZE_ANY_EXHDR(state_id), &entry) == NULL ||
		entry.type != jbvBinary || !JsonContainerIsObject(entry.val.binary.data))
		refuse_import(state_id, "its entry is not an object");

	import.state_id = state_id;
	if (!is_entry(entry.val.binary.data))
		refuse_import(state_id, "its entry has keys other than \"completed\" and \"partial\"");
	import.completed = imported_part(state_id, entry.val.binary.data, "completed");
	import.partial = imported_part(state_id, entry.val.binary.data, "partial");
	import.skip_existing = (on_conflict == CONFLICT_SKIP);

	ss_write_init(&write, "import", state_id);
	write.must_not_exist = (on_conflict == CONFLICT_ERROR);
	write.allow_empty = true;	/* whoever says overwrite means it */
	(void) ss_store_write(&write, edit_import, &import);
	return !import.skipped;
}

/*
 * The keys of an object, in byte order.
 */
static text **
sorted_keys(Jsonb *object, int *count)
{
	JsonbIterator *iterator = JsonbIteratorInit(&object->root);
	JsonbIteratorToken token;
	JsonbValue	value;
	text	  **keys = palloc_extended(Max(JB_ROOT_COUNT(object), 1) * sizeof(text *),
									   MCXT_ALLOC_HUGE);

	*count = 0;
	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			keys[(*count)++] = cstring_to_text_with_len(value.val.string.val,
														value.val.string.len);
	}
	qsort(keys, *count, sizeof(text *), ss_state_id_compare);
	return keys;
}

/*
 * import(states, on_conflict): the inverse of export, all or nothing; answers
 * how many states were written.
 */
Datum
singer_state_import(PG_FUNCTION_ARGS)
{
	OnConflict	on_conflict = ss_choice_arg(fcinfo, 1, "on_conflict",
											conflict_names);
	MemoryContext row_context;
	MemoryContext old;
	Jsonb	   *states;
	text	  **keys;
	int			count;
	int64		written = 0;

	ss_require_arg(fcinfo, 0, "states");
	PreventCommandIfReadOnly("import()");
	states = PG_GETARG_JSONB_P(0);
	if (!JB_ROOT_IS_OBJECT(states))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("states to import must be a JSON object"),
				 errhint("An export is {\"state id\": {\"completed\": ..., \"partial\": ...}, ...}.")));

	keys = sorted_keys(states, &count);
	row_context = AllocSetContextCreate(CurrentMemoryContext,
										"singer_state import",
										ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(row_context);
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (import_state(keys[i], &states->root, on_conflict))
			written++;
		MemoryContextReset(row_context);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(row_context);
	PG_RETURN_INT64(written);
}

/* The state ids that clear_all found, in a context that outlives the rows */
typedef struct Found
{
	MemoryContext context;
	List	   *state_ids;
} Found;

static void
clear_visitor(text *state_id, HeapTuple tuple, TupleDesc desc, void *arg)
{
	Found	   *found = arg;
	MemoryContext old = MemoryContextSwitchTo(found->context);

	found->state_ids = lappend(found->state_ids,
							   DatumGetTextPCopy(PointerGetDatum(state_id)));
	MemoryContextSwitchTo(old);
}

/*
 * Delete a state unless somebody else was faster.
 */
static bool
clear_state(text *state_id)
{
	SsClaim		claim;
	SsState		deleted;
	bool		result;

	ss_claim_write(&claim, state_id, NULL, false);
	SPI_connect();
	result = ss_state_delete("clear_all", state_id, &deleted);
	SPI_finish();
	ss_claim_release(&claim);
	return result;
}

/*
 * clear_all(pattern, dry_run): deletes the states whose ids match; answers
 * their ids.
 */
Datum
singer_state_clear_all(PG_FUNCTION_ARGS)
{
	text	   *pattern = pattern_arg(fcinfo, 0);
	bool		dry_run = ss_flag_arg(fcinfo, 1, "dry_run");
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext row_context;
	MemoryContext old;
	Found		found;
	ListCell   *cell;

	if (!dry_run)
		PreventCommandIfReadOnly("clear_all()");
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	found.context = CurrentMemoryContext;
	found.state_ids = NIL;
	SPI_connect();
	visit_matches(SS_PLAN_STATE_LIST, pattern, dry_run, clear_visitor, &found);
	SPI_finish();

	row_context = AllocSetContextCreate(CurrentMemoryContext,
										"singer_state clear_all",
										ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(row_context);
	foreach(cell, found.state_ids)
	{
		CHECK_FOR_INTERRUPTS();
		if (dry_run || clear_state((text *) lfirst(cell)))
			put_state_id(rsinfo, (text *) lfirst(cell));
		MemoryContextReset(row_context);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(row_context);
	return (Datum) 0;
}
