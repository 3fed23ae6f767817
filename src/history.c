/*-------------------------------------------------------------------------
 *
 * history.c
 *	  Versions of a state: looking one up, and going back to it.
 *
 * The history holds the versions that were replaced, the state table the one
 * that is there now; a version is looked for in both.  What a change replaces
 * is written there by the trigger (trigger.c).
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "args.h"
#include "miscadmin.h"
#include "plans.h"
#include "state_id.h"
#include "store.h"

PG_FUNCTION_INFO_V1(singer_state_state_at);
PG_FUNCTION_INFO_V1(singer_state_restore);

/*
 * Report a version that is not there, and those that are.  Needs an SPI
 * connection.
 */
static void
report_version(text *state_id, int64 version)
{
	Datum		values[2];
	char	   *versions = NULL;

	values[0] = PointerGetDatum(ss_namespace_current());
	values[1] = PointerGetDatum(state_id);
	if (ss_plan_execute(SS_PLAN_HISTORY_VERSIONS, values, NULL, true) == 1)
		versions = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);

	ereport(ERROR,
			(errcode(ERRCODE_NO_DATA),
			 errmsg("state \"%s\" has no version " INT64_FORMAT,
					text_to_cstring(state_id), version),
			 versions != NULL ? errdetail("Its versions are %s.", versions) :
			 errdetail("It has no versions.")));
}

/*
 * Look up a version, or report that it is gone.  Needs an SPI connection, to
 * which the result belongs.
 */
static void
read_version(text *state_id, int64 version, bool read_only, SsState *state)
{
	Datum		values[3];
	HeapTuple	tuple;
	TupleDesc	desc;
	bool		isnull;
	Datum		value;

	ss_state_read(state_id, read_only, state);
	if (state->exists && state->version == version)
		return;

	values[0] = PointerGetDatum(ss_namespace_current());
	values[1] = PointerGetDatum(state_id);
	values[2] = Int64GetDatum(version);
	if (ss_plan_execute(SS_PLAN_HISTORY_READ, values, NULL, read_only) == 0)
		report_version(state_id, version);

	tuple = SPI_tuptable->vals[0];
	desc = SPI_tuptable->tupdesc;
	value = SPI_getbinval(tuple, desc, 1, &isnull);
	state->completed = isnull ? NULL : (struct varlena *) DatumGetPointer(value);
	value = SPI_getbinval(tuple, desc, 2, &isnull);
	state->partial = isnull ? NULL : (struct varlena *) DatumGetPointer(value);
}

static int64
version_arg(FunctionCallInfo fcinfo, int argno)
{
	ss_require_arg(fcinfo, argno, "version");
	return PG_GETARG_INT64(argno);
}

/*
 * state_at(state_id, version): the effective state that a version had.
 */
Datum
singer_state_state_at(PG_FUNCTION_ARGS)
{
	text	   *state_id = ss_state_id_arg(fcinfo, 0);
	int64		version = version_arg(fcinfo, 1);
	MemoryContext context = CurrentMemoryContext;
	MemoryContext spi_context;
	SsState		state;
	Jsonb	   *result;

	SPI_connect();
	read_version(state_id, version, true, &state);
	spi_context = MemoryContextSwitchTo(context);
	result = ss_state_effective_copy(&state);
	MemoryContextSwitchTo(spi_context);
	SPI_finish();
	PG_RETURN_JSONB_P(result);
}

static void
edit_restore(SsState *state, void *arg)
{
	SsState    *version = arg;

	state->completed = version->completed;
	state->partial = version->partial;
}

/*
 * restore(state_id, version, token): makes a version the current one again,
 * as a new version, whose number it answers; also when the state was cleared.
 */
Datum
singer_state_restore(PG_FUNCTION_ARGS)
{
	int64		version = version_arg(fcinfo, 1);
	SsWrite		write;
	SsState		state;
	int64		result;

	ss_write_init(&write, "restore", ss_state_id_arg(fcinfo, 0));
	ss_write_condition(&write, fcinfo, -1, 2);
	write.allow_empty = true;
	PreventCommandIfReadOnly("restore()");

	SPI_connect();
	read_version(write.state_id, version, false, &state);
	result = ss_store_write(&write, edit_restore, &state);
	SPI_finish();
	PG_RETURN_INT64(result);
}
