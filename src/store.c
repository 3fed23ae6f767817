/*-------------------------------------------------------------------------
 *
 * store.c
 *	  Reading and changing one stored state.
 *
 * A write reads the state, computes what it is to become, and replaces it if
 * it still is what was read; if not, it starts again.  So nothing is locked
 * while it computes, a write that changes nothing leaves no trace, and no
 * write is lost: under READ COMMITTED each attempt has a new snapshot, under
 * the stricter levels the server itself reports the conflict (40001).  Each
 * failed attempt means that somebody else has succeeded.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "claim.h"
#include "merge.h"
#include "miscadmin.h"
#include "plans.h"
#include "row_probe.h"
#include "state_id.h"
#include "store.h"
#include "trigger.h"
#include "utils/datum.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "validate.h"

/* Attempts that nobody else's success explains, before we give up */
#define MAX_BLIND_ATTEMPTS 3

/*
 * A write with no conditions.
 */
void
ss_write_init(SsWrite *write, const char *operation, text *state_id)
{
	memset(write, 0, sizeof(SsWrite));
	write->operation = operation;
	write->state_id = state_id;
}

/*
 * Take the conditions of a write from the function's arguments.  A negative
 * number stands for an argument that the function does not have.
 */
void
ss_write_condition(SsWrite *write, FunctionCallInfo fcinfo,
				   int if_version_argno, int token_argno)
{
	if (if_version_argno >= 0 && !PG_ARGISNULL(if_version_argno))
	{
		write->has_if_version = true;
		write->if_version = PG_GETARG_INT64(if_version_argno);
	}
	if (token_argno >= 0 && !PG_ARGISNULL(token_argno))
	{
		write->has_token = true;
		write->token = PG_GETARG_INT64(token_argno);
	}
}

void
ss_state_missing(text *state_id)
{
	ereport(ERROR,
			(errcode(ERRCODE_NO_DATA),
			 errmsg("state \"%s\" does not exist", text_to_cstring(state_id))));
}

static struct varlena *
part_column(HeapTuple tuple, TupleDesc desc, int column)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, column, desc, &isnull);

	return isnull ? NULL : (struct varlena *) DatumGetPointer(value);
}

/*
 * Take a row of the table for the state, in the current memory context.
 */
static bool
take_row(HeapTuple row, TupleDesc desc, void *arg)
{
	SsState    *state = arg;
	HeapTuple	tuple = heap_copytuple(row);
	bool		isnull;

	state->exists = true;
	state->place = row->t_self;
	state->completed = part_column(tuple, desc, SS_STATE_COMPLETED + 1);
	state->partial = part_column(tuple, desc, SS_STATE_PARTIAL + 1);
	state->version = DatumGetInt64(heap_getattr(tuple, SS_STATE_VERSION + 1,
												desc, &isnull));
	state->updated_at = DatumGetTimestampTz(heap_getattr(tuple,
														 SS_STATE_UPDATED_AT + 1,
														 desc, &isnull));
	return false;
}

/*
 * Read a state, under the active snapshot if "read_only", else under a new
 * one.  Needs an SPI connection, to which the result belongs.
 */
void
ss_state_read(text *state_id, bool read_only, SsState *state)
{
	Oid			table = ss_row_table("state");
	text	   *name = ss_namespace_current();
	Datum		values[2];
	bool		done;

	memset(state, 0, sizeof(SsState));
	if (!read_only)
	{
		CommandCounterIncrement();
		PushActiveSnapshot(GetTransactionSnapshot());
	}
	done = ss_row_read(table, name, state_id, take_row, state);
	if (!read_only)
		PopActiveSnapshot();
	if (done)
		return;

	values[0] = PointerGetDatum(name);
	values[1] = PointerGetDatum(state_id);
	if (ss_plan_execute(SS_PLAN_STATE_READ, values, NULL, read_only) > 0)
		(void) take_row(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, state);
	ItemPointerSetInvalid(&state->place);
}

/*
 * Delete a state, and tell what it was.  Answers false if there is none.
 * Needs an SPI connection, to which the result belongs.
 */
bool
ss_state_delete(const char *operation, text *state_id, SsState *deleted)
{
	Datum		values[2];

	memset(deleted, 0, sizeof(SsState));
	values[0] = PointerGetDatum(ss_namespace_current());
	values[1] = PointerGetDatum(state_id);
	if (ss_trigger_write(operation, SS_PLAN_STATE_DELETE, values, NULL) == 0)
		return false;

	deleted->exists = true;
	deleted->completed = part_column(SPI_tuptable->vals[0],
									 SPI_tuptable->tupdesc, 1);
	deleted->partial = part_column(SPI_tuptable->vals[0],
								   SPI_tuptable->tupdesc, 2);
	return true;
}

/*
 * A part as a document; NULL stands for the empty object.
 */
Jsonb *
ss_state_part(struct varlena *part)
{
	return part != NULL ? DatumGetJsonbP(PointerGetDatum(part)) : NULL;
}

/*
 * What the next run starts from: partial deep-merged over completed.  NULL
 * stands for the empty object.
 */
Jsonb *
ss_state_effective(const SsState *state)
{
	if (state->partial == NULL)
		return ss_state_part(state->completed);
	if (state->completed == NULL)
		return ss_state_part(state->partial);
	return ss_deep_merge(ss_state_part(state->completed),
						 ss_state_part(state->partial), false);
}

/*
 * The effective state as a document of its own, in the current memory
 * context; {} if it is empty.
 */
Jsonb *
ss_state_effective_copy(const SsState *state)
{
	Jsonb	   *result = ss_state_effective(state);

	if (result == NULL)
		return ss_document_empty();
	if ((void *) result == (void *) state->completed ||
		(void *) result == (void *) state->partial)
		return (Jsonb *) DatumGetPointer(datumCopy(JsonbPGetDatum(result),
												   false, -1));
	return result;
}

/*
 * The edit of promote, and of a run that succeeds: the effective state becomes
 * the completed one.
 */
void
ss_store_edit_promote(SsState *state, void *arg)
{
	if (state->partial == NULL)
		return;
	state->completed = (struct varlena *) ss_state_effective(state);
	state->partial = NULL;
}

static bool
same_part(struct varlena *a, struct varlena *b)
{
	return ss_document_datum_equal(PointerGetDatum(a), a == NULL,
								   PointerGetDatum(b), b == NULL);
}

/*
 * Do two states have the same parts, to the byte?
 */
bool
ss_state_same_parts(const SsState *a, const SsState *b)
{
	return same_part(a->completed, b->completed) &&
		same_part(a->partial, b->partial);
}

static bool
has_bookmarks(const SsState *state)
{
	return ss_document_has_bookmarks(ss_state_part(state->completed)) ||
		ss_document_has_bookmarks(ss_state_part(state->partial));
}

static void
check_conditions(const SsWrite *write, const SsState *state)
{
	char	   *id = text_to_cstring(write->state_id);

	if (write->has_if_version && write->if_version != state->version)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("state \"%s\" has version " INT64_FORMAT ", not " INT64_FORMAT,
						id, state->version, write->if_version),
				 errhint("Read the state again and retry.")));
	if (write->must_exist && !state->exists)
		ss_state_missing(write->state_id);
	if (write->must_not_exist && state->exists)
		ereport(ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg("state \"%s\" exists", id),
				 errhint("Overwrite it on purpose, or choose another state id.")));
}

/*
 * Refuse a write after which a state that has bookmarks has none.
 */
static void
check_loss(const SsWrite *write, const SsState *old, const SsState *new)
{
	if (write->allow_empty || !old->exists || has_bookmarks(new) ||
		!has_bookmarks(old))
		return;

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("an empty state would replace the bookmarks of state \"%s\"",
					text_to_cstring(write->state_id)),
			 errhint("Pass allow_empty => true if that is what you want, or call clear.")));
}

/*
 * Run the statement that writes the new state over the old one; answers the
 * number of rows.
 */
static uint64
write_over(const SsWrite *write, const SsState *old, const SsState *new)
{
	bool		has_place = ItemPointerIsValid(&old->place);
	Datum		values[6];
	char		nulls[] = "      ";
	int			n = 0;

	if (has_place)
		values[n++] = PointerGetDatum(&old->place);
	else
	{
		values[n++] = PointerGetDatum(ss_namespace_current());
		values[n++] = PointerGetDatum(write->state_id);
	}
	nulls[n] = new->completed ? ' ' : 'n';
	values[n++] = PointerGetDatum(new->completed);
	nulls[n] = new->partial ? ' ' : 'n';
	values[n++] = PointerGetDatum(new->partial);
	values[n++] = Int64GetDatum(old->version);
	values[n++] = TimestampTzGetDatum(old->updated_at);

	if (has_place)
		return ss_trigger_write(write->operation, SS_PLAN_STATE_UPDATE_PLACE,
								values, nulls);
	return ss_trigger_write(write->operation,
							old->exists ? SS_PLAN_STATE_UPDATE : SS_PLAN_STATE_INSERT,
							values, nulls);
}

/*
 * Write the new state if the old one is still there; answers the new version,
 * or 0 if it is not.
 */
static int64
replace(const SsWrite *write, const SsState *old, const SsState *new)
{
	bool		isnull;

	if (new->completed != NULL && new->completed != old->completed)
		ss_document_check_size(PointerGetDatum(new->completed));
	if (new->partial != NULL && new->partial != old->partial)
		ss_document_check_size(PointerGetDatum(new->partial));

	if (write_over(write, old, new) == 0)
		return 0;
	return ss_trigger_version(DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0],
														  SPI_tuptable->tupdesc,
														  1, &isnull)));
}

/*
 * Report a state that we can neither change nor create, though nobody else
 * has changed it: a row security policy, or a trigger of somebody's, is in
 * the way.
 */
static void
report_hidden(text *state_id)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to change state \"%s\"",
					text_to_cstring(state_id)),
			 errdetail("A row security policy or a trigger on table \"%s.state\" does not let the row be written.",
					   SS_SCHEMA)));
}

/*
 * ss_store_write for a state id that the caller has claimed.
 */
int64
ss_store_write_claimed(const SsWrite *write, SsStoreEdit edit, void *arg)
{
	SsState		seen = {0};
	int64		version;
	int			blind_attempts = 0;

	SPI_connect();
	for (;;)
	{
		SsState		old;
		SsState		new;

		ss_state_read(write->state_id, false, &old);
		check_conditions(write, &old);
		new = old;
		edit(&new, arg);

		version = old.version;
		if (old.exists && ss_state_same_parts(&old, &new))
			break;
		check_loss(write, &old, &new);
		version = replace(write, &old, &new);
		if (version != 0)
			break;

		CHECK_FOR_INTERRUPTS();
		if (old.version != seen.version || old.updated_at != seen.updated_at)
			blind_attempts = 0;
		else if (++blind_attempts >= MAX_BLIND_ATTEMPTS)
			report_hidden(write->state_id);
		seen = old;
	}
	SPI_finish();
	return version;
}

/*
 * Change a state; answers its version.  Waits for a run lock or a lease of
 * somebody else's first.
 */
int64
ss_store_write(const SsWrite *write, SsStoreEdit edit, void *arg)
{
	SsClaim		claim;
	int64		version;

	if (XactReadOnly)
		PreventCommandIfReadOnly(psprintf("%s()", write->operation));
	ss_claim_write(&claim, write->state_id,
				   write->has_token ? &write->token : NULL, false);
	version = ss_store_write_claimed(write, edit, arg);
	ss_claim_release(&claim);
	return version;
}
