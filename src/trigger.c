/*-------------------------------------------------------------------------
 *
 * trigger.c
 *	  The row triggers of the state table, which keep its invariants for every
 *	  writer, a person's plain UPDATE included:
 *
 *	  - a version grows by one with each change, and goes on where it ended
 *		when a state is deleted and created again, as long as its history is
 *		kept; updated_at advances with it;
 *	  - the row that a change replaces goes to the history, which is cut to
 *		singer_state.history_limit;
 *	  - an UPDATE that changes neither names nor documents changes nothing;
 *	  - documents are objects or arrays within the size limit, and an empty
 *		object is kept as NULL.
 *
 * History is written as the owner of the table, so that those who may write
 * states can neither alter it nor forge it.  For the same reason the triggers
 * refuse to work on any table but ours.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "commands/async.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "row_probe.h"
#include "settings.h"
#include "state_id.h"
#include "store.h"
#include "trigger.h"
#include "utils/acl.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "validate.h"

PG_FUNCTION_INFO_V1(singer_state_state_trigger);
PG_FUNCTION_INFO_V1(singer_state_state_after);

typedef struct StateTuple
{
	Datum		values[SS_STATE_NCOLUMNS];
	bool		nulls[SS_STATE_NCOLUMNS];
} StateTuple;

/* The newest row of a state's history that is over the limit */
typedef struct Excess
{
	int			spared;			/* rows that are within the limit */
	int64		version;		/* 0 if there is no such row */
} Excess;

/*
 * Name of the function that is writing, for the history.  NULL when somebody
 * writes to the table directly.
 */
static const char *current_operation = NULL;

/* Is the UPDATE under way the one that renumbers a new row? */
static bool renumbering = false;

/* The version that the row inserted last was given, if it was given another */
static int64 renumbered_version = 0;

/*
 * Run a statement that writes to the state table, on behalf of the function
 * of the given name.  Its documents must have been checked, and be known to
 * differ from what they replace.
 */
uint64
ss_trigger_write(const char *operation, SsPlan plan,
				 const Datum *values, const char *nulls)
{
	const char *outer = current_operation;
	uint64		processed;

	current_operation = operation;
	renumbered_version = 0;
	PG_TRY();
	{
		processed = ss_plan_execute(plan, values, nulls, false);
	}
	PG_FINALLY();
	{
		current_operation = outer;
	}
	PG_END_TRY();

	return processed;
}

/*
 * The version that the row inserted by the last ss_trigger_write has, given
 * the one that the INSERT answered.
 */
int64
ss_trigger_version(int64 answered)
{
	return renumbered_version != 0 ? renumbered_version : answered;
}

/*
 * Are two documents the same bytes?  Equality of jsonb would not do, since
 * 1.0 and 1 are equal to it.
 *
 * Toasted values are compared by pointer and by size before anything is
 * detoasted.
 */
bool
ss_document_datum_equal(Datum a, bool a_null, Datum b, bool b_null)
{
	struct varlena *left;
	struct varlena *right;
	bool		result;

	if (a_null || b_null)
		return a_null && b_null;
	if (DatumGetPointer(a) == DatumGetPointer(b))
		return true;
	if (toast_raw_datum_size(a) != toast_raw_datum_size(b))
		return false;

	left = PG_DETOAST_DATUM_PACKED(a);
	right = PG_DETOAST_DATUM_PACKED(b);
	result = memcmp(VARDATA_ANY(left), VARDATA_ANY(right),
					VARSIZE_ANY_EXHDR(left)) == 0;
	if ((Pointer) left != DatumGetPointer(a))
		pfree(left);
	if ((Pointer) right != DatumGetPointer(b))
		pfree(right);
	return result;
}

static void
check_called_as_trigger(FunctionCallInfo fcinfo, const char *name)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	Relation	relation;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called by trigger manager",
						name)));

	relation = trigdata->tg_relation;
	if (!TRIGGER_FIRED_FOR_ROW(trigdata->tg_event) ||
		strcmp(RelationGetRelationName(relation), "state") != 0 ||
		RelationGetNamespace(relation) != get_namespace_oid(SS_SCHEMA, false))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" serves table \"%s.state\" only",
						name, SS_SCHEMA)));
}

static void
deform(HeapTuple tuple, TupleDesc desc, StateTuple *row)
{
	for (int i = 0; i < SS_STATE_NCOLUMNS; i++)
		row->values[i] = heap_getattr(tuple, i + 1, desc, &row->nulls[i]);
}

static void
check_part(StateTuple *row, int column)
{
	Jsonb	   *document;

	if (row->nulls[column] || current_operation != NULL)
		return;

	ss_document_check_size(row->values[column]);
	document = DatumGetJsonbP(row->values[column]);
	ss_document_check_kind(document);
	row->nulls[column] = (ss_document_normalize(document) == NULL);
}

/*
 * What the functions check before they write, for the direct writer.
 */
static void
check_row(StateTuple *row)
{
	if (!row->nulls[SS_STATE_NAMESPACE])
		ss_namespace_check(DatumGetTextPP(row->values[SS_STATE_NAMESPACE]));
	if (!row->nulls[SS_STATE_STATE_ID])
		ss_state_id_check(DatumGetTextPP(row->values[SS_STATE_STATE_ID]));
	check_part(row, SS_STATE_PARTIAL);
	check_part(row, SS_STATE_COMPLETED);
}

static bool
same_name(const StateTuple *a, const StateTuple *b, int column)
{
	text	   *left;
	text	   *right;

	if (a->nulls[column] || b->nulls[column])
		return false;
	left = DatumGetTextPP(a->values[column]);
	right = DatumGetTextPP(b->values[column]);
	return ss_state_id_compare(&left, &right) == 0;
}

static bool
same_key(const StateTuple *a, const StateTuple *b)
{
	return same_name(a, b, SS_STATE_NAMESPACE) &&
		same_name(a, b, SS_STATE_STATE_ID);
}

static bool
same_content(const StateTuple *a, const StateTuple *b)
{
	return same_key(a, b) &&
		ss_document_datum_equal(a->values[SS_STATE_PARTIAL], a->nulls[SS_STATE_PARTIAL],
								b->values[SS_STATE_PARTIAL], b->nulls[SS_STATE_PARTIAL]) &&
		ss_document_datum_equal(a->values[SS_STATE_COMPLETED], a->nulls[SS_STATE_COMPLETED],
								b->values[SS_STATE_COMPLETED], b->nulls[SS_STATE_COMPLETED]);
}

/*
 * Run statements as the owner of the history, as the server does for
 * referential integrity.  An error on the way leaves it to the end of the
 * transaction to restore the caller.
 */
static void
become_owner(Relation relation, Oid *userid, int *context)
{
	GetUserIdAndSecContext(userid, context);
	SetUserIdAndSecContext(relation->rd_rel->relowner,
						   *context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_NOFORCE_RLS);
}

static bool
read_history_version(HeapTuple tuple, TupleDesc desc, void *arg)
{
	bool		isnull;

	*(int64 *) arg = DatumGetInt64(heap_getattr(tuple, SS_STATE_VERSION + 1,
												desc, &isnull));
	return false;
}

/*
 * The highest version that the history of a state knows, or 0.
 */
static int64
last_version(const StateTuple *row)
{
	int64		version = 0;

	(void) ss_row_probe(ss_row_table("state_history"),
						DatumGetTextPP(row->values[SS_STATE_NAMESPACE]),
						DatumGetTextPP(row->values[SS_STATE_STATE_ID]),
						read_history_version, &version);
	return version;
}

static bool
find_excess(HeapTuple tuple, TupleDesc desc, void *arg)
{
	Excess	   *excess = arg;

	if (excess->spared++ < ss_history_limit)
		return true;
	return read_history_version(tuple, desc, &excess->version);
}

/*
 * Take what is over the limit out of the history.  Needs an SPI connection,
 * as the owner.
 *
 * The lookup counts in a fraction of the time that a subquery takes.  Nobody
 * else writes history of this state now: we have its row.
 */
static void
prune_history(const StateTuple *row)
{
	Excess		excess = {0};
	Datum		values[3];

	(void) ss_row_probe(ss_row_table("state_history"),
						DatumGetTextPP(row->values[SS_STATE_NAMESPACE]),
						DatumGetTextPP(row->values[SS_STATE_STATE_ID]),
						find_excess, &excess);
	if (excess.version == 0)
		return;

	values[0] = row->values[SS_STATE_NAMESPACE];
	values[1] = row->values[SS_STATE_STATE_ID];
	values[2] = Int64GetDatum(excess.version);
	ss_plan_execute(SS_PLAN_HISTORY_PRUNE, values, NULL, false);
}

/*
 * Put the row that a change replaces into the history, and take out what is
 * over the limit.
 */
static void
keep_history(Relation relation, const StateTuple *row, const char *operation)
{
	Datum		values[9];
	char		nulls[9];
	Oid			userid;
	int			context;

	if (ss_history_limit == 0 && last_version(row) == 0)
		return;

	for (int i = 0; i < SS_STATE_NCOLUMNS; i++)
	{
		values[i] = row->values[i];
		nulls[i] = row->nulls[i] ? 'n' : ' ';
	}
	values[6] = CStringGetTextDatum(current_operation ? current_operation : operation);
	values[7] = CStringGetTextDatum(GetUserNameFromId(GetUserId(), false));
	values[8] = CStringGetTextDatum(application_name ? application_name : "");
	memset(nulls + 6, ' ', 3);

	become_owner(relation, &userid, &context);
	SPI_connect();
	if (ss_history_limit != 0)
		ss_plan_execute(SS_PLAN_HISTORY_INSERT, values, nulls, false);
	if (ss_history_limit >= 0)
		prune_history(row);
	SPI_finish();
	SetUserIdAndSecContext(userid, context);
}

static HeapTuple
form(HeapTuple tuple, TupleDesc desc, StateTuple *row)
{
	int			columns[SS_STATE_NCOLUMNS];

	for (int i = 0; i < SS_STATE_NCOLUMNS; i++)
		columns[i] = i + 1;
	return heap_modify_tuple_by_cols(tuple, desc, SS_STATE_NCOLUMNS, columns,
									 row->values, row->nulls);
}

static int64
next_version(int64 version)
{
	if (version == PG_INT64_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("version out of range")));
	return version + 1;
}

/*
 * May the caller say which version a new row has?  Those who restore a dump
 * may, which takes the right to write history.  A writer could choose the
 * last one that there is, after which the state can never be changed.
 */
static bool
may_restore(void)
{
	return pg_class_aclcheck(ss_row_table("state_history"), GetUserId(),
							 ACL_INSERT) == ACLCHECK_OK;
}

/*
 * A new state: its version goes on from its history.  A version that came
 * with the row of a dump is kept if it is higher, so that what is restored
 * keeps its versions, whichever table is loaded first.
 */
static HeapTuple
before_insert(Relation relation, HeapTuple tuple)
{
	StateTuple	row;
	int64		version;

	deform(tuple, RelationGetDescr(relation), &row);
	check_row(&row);
	if (row.nulls[SS_STATE_NAMESPACE] || row.nulls[SS_STATE_STATE_ID])
		return tuple;			/* the table's constraints refuse it */

	version = next_version(last_version(&row));
	if (!row.nulls[SS_STATE_VERSION] &&
		DatumGetInt64(row.values[SS_STATE_VERSION]) > version && may_restore())
		version = DatumGetInt64(row.values[SS_STATE_VERSION]);
	row.values[SS_STATE_VERSION] = Int64GetDatum(version);
	row.nulls[SS_STATE_VERSION] = false;
	return form(tuple, RelationGetDescr(relation), &row);
}

static HeapTuple
before_update(Relation relation, HeapTuple oldtuple, HeapTuple newtuple)
{
	StateTuple	old;
	StateTuple	new;
	int64		version;
	TimestampTz now = GetCurrentTimestamp();

	deform(oldtuple, RelationGetDescr(relation), &old);
	deform(newtuple, RelationGetDescr(relation), &new);
	if (renumbering)
		return newtuple;
	check_row(&new);
	if (current_operation == NULL && same_content(&old, &new))
		return NULL;

	keep_history(relation, &old, "UPDATE");

	version = DatumGetInt64(old.values[SS_STATE_VERSION]);
	if (!same_key(&old, &new) &&
		!new.nulls[SS_STATE_NAMESPACE] && !new.nulls[SS_STATE_STATE_ID])
		version = Max(version, last_version(&new));
	new.values[SS_STATE_VERSION] = Int64GetDatum(next_version(version));
	new.nulls[SS_STATE_VERSION] = false;

	/* the clock may stand still or go back; updated_at does not */
	now = Max(now, DatumGetTimestampTz(old.values[SS_STATE_UPDATED_AT]) + 1);
	new.values[SS_STATE_UPDATED_AT] = TimestampTzGetDatum(now);
	new.nulls[SS_STATE_UPDATED_AT] = false;
	return form(newtuple, RelationGetDescr(relation), &new);
}

static HeapTuple
before_delete(Relation relation, HeapTuple tuple)
{
	StateTuple	row;

	deform(tuple, RelationGetDescr(relation), &row);
	keep_history(relation, &row, "DELETE");
	return tuple;
}

/*
 * BEFORE INSERT OR UPDATE OR DELETE, for each row.
 */
Datum
singer_state_state_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	HeapTuple	result;

	check_called_as_trigger(fcinfo, "state_trigger");
	if (!TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" must be fired before row",
						"state_trigger")));

	if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		result = before_insert(trigdata->tg_relation, trigdata->tg_trigtuple);
	else if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
		result = before_update(trigdata->tg_relation, trigdata->tg_trigtuple,
							   trigdata->tg_newtuple);
	else
		result = before_delete(trigdata->tg_relation, trigdata->tg_trigtuple);

	return PointerGetDatum(result);
}

/*
 * Give a new row its version again, as the owner.
 */
static void
renumber(Relation relation, const StateTuple *row, int64 version)
{
	Datum		values[3];
	Oid			userid;
	int			context;

	values[0] = row->values[SS_STATE_NAMESPACE];
	values[1] = row->values[SS_STATE_STATE_ID];
	values[2] = Int64GetDatum(version);

	become_owner(relation, &userid, &context);
	SPI_connect();
	renumbering = true;
	PG_TRY();
	{
		ss_plan_execute(SS_PLAN_STATE_RENUMBER, values, NULL, false);
	}
	PG_FINALLY();
	{
		renumbering = false;
	}
	PG_END_TRY();
	SPI_finish();
	SetUserIdAndSecContext(userid, context);
	renumbered_version = version;
}

/*
 * The insertion may have waited in the primary key for a row that was there
 * and is gone again, and has left history since before_insert looked.  Now
 * that our row is there nobody can add to it.
 */
static bool
after_insert(Relation relation, const StateTuple *row)
{
	int64		last = last_version(row);

	if (last < DatumGetInt64(row->values[SS_STATE_VERSION]))
		return false;
	renumber(relation, row, next_version(last));
	return true;
}

/*
 * NOTIFY with namespace, state id and version as JSON.  The version of a
 * deleted state is null.  The limits on names keep the payload under the
 * server's 8000 bytes, even if each byte is escaped.
 */
static void
notify(const StateTuple *row, bool deleted)
{
	StringInfoData payload;

	initStringInfo(&payload);
	appendStringInfoString(&payload, "{\"namespace\": ");
	escape_json(&payload, TextDatumGetCString(row->values[SS_STATE_NAMESPACE]));
	appendStringInfoString(&payload, ", \"state_id\": ");
	escape_json(&payload, TextDatumGetCString(row->values[SS_STATE_STATE_ID]));
	if (deleted)
		appendStringInfoString(&payload, ", \"version\": null}");
	else
		appendStringInfo(&payload, ", \"version\": " INT64_FORMAT "}",
						 DatumGetInt64(row->values[SS_STATE_VERSION]));
	Async_Notify("singer_state", payload.data);
}

/*
 * AFTER INSERT OR UPDATE OR DELETE, for each row.
 */
Datum
singer_state_state_after(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	Relation	relation;
	StateTuple	row;
	bool		inserted;

	check_called_as_trigger(fcinfo, "state_after");
	inserted = TRIGGER_FIRED_BY_INSERT(trigdata->tg_event);
	if (!inserted && !ss_notify)
		return PointerGetDatum(NULL);

	relation = trigdata->tg_relation;
	deform(TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event) ?
		   trigdata->tg_newtuple : trigdata->tg_trigtuple,
		   RelationGetDescr(relation), &row);
	if (inserted && after_insert(relation, &row))
		return PointerGetDatum(NULL);	/* the UPDATE has notified */
	if (ss_notify)
		notify(&row, TRIGGER_FIRED_BY_DELETE(trigdata->tg_event));
	return PointerGetDatum(NULL);
}
