/*-------------------------------------------------------------------------
 *
 * run.c
 *	  Runs: from begin_run to finish_run.
 *
 * A run is a row of the table "run".  One that was begun with a lock holds
 * the run lock of its state id until it is finished, so whoever gets the lock
 * knows that every other such run of the state id is dead, and may say so in
 * its row.
 *
 * What a run reaches is the partial part of its state.  A run that succeeds
 * makes it the completed part, over what was completed before or merged into
 * it, by its strategy; one that fails leaves it.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access.h"
#include "args.h"
#include "catalog/pg_class.h"
#include "claim.h"
#include "document.h"
#include "miscadmin.h"
#include "plans.h"
#include "progress.h"
#include "row_probe.h"
#include "run.h"
#include "run_lock.h"
#include "run_session.h"
#include "run_tally.h"
#include "settings.h"
#include "state_id.h"
#include "store.h"
#include "utils/acl.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(singer_state_begin_run);
PG_FUNCTION_INFO_V1(singer_state_current_run);
PG_FUNCTION_INFO_V1(singer_state_heartbeat);
PG_FUNCTION_INFO_V1(singer_state_finish_run);

/* What a state does to the one that the run has reached before */
static const char *const strategy_names[] = {"overwrite", "merge", NULL};

/*
 * A run id for people.
 */
static char *
run_name(const pg_uuid_t *id)
{
	return DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(id)));
}

void
ss_run_refuse_unknown(const pg_uuid_t *id)
{
	ereport(ERROR,
			(errcode(ERRCODE_NO_DATA),
			 errmsg("run %s does not exist", run_name(id))));
}

void
ss_run_refuse_finished(const pg_uuid_t *id)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("run %s is finished", run_name(id)),
			 errdetail("finish_run was called, or a later run of the same state has taken over.")));
}

pg_uuid_t *
ss_run_id_arg(FunctionCallInfo fcinfo, int argno)
{
	ss_require_arg(fcinfo, argno, "run_id");
	return PG_GETARG_UUID_P(argno);
}

static char *
text_column(HeapTuple tuple, TupleDesc desc, int column)
{
	return SPI_getvalue(tuple, desc, column);
}

/*
 * A run belongs to the role that has begun it, and to administrators: those
 * who may delete runs.
 */
static void
check_owner(const pg_uuid_t *id, const char *owner)
{
	if (strcmp(owner, GetUserNameFromId(GetUserId(), false)) == 0 ||
		pg_class_aclcheck(ss_row_table("run"), GetUserId(),
						  ACL_DELETE) == ACLCHECK_OK)
		return;

	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for run %s", run_name(id)),
			 errdetail("It was begun by role \"%s\".", owner)));
}

static text *
copy_text_column(MemoryContext context, HeapTuple tuple, TupleDesc desc,
				 int column)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	text	   *result = cstring_to_text(text_column(tuple, desc, column));

	MemoryContextSwitchTo(old);
	return result;
}

/*
 * Does a run belong to the session's namespace?
 */
bool
ss_run_is_here(const SsRun *run)
{
	size_t		length = VARSIZE_ANY_EXHDR(run->name);

	return strlen(ss_namespace) == length &&
		memcmp(ss_namespace, VARDATA_ANY(run->name), length) == 0;
}

/*
 * Read a run that goes on, and that the caller may write to.  The result
 * belongs to the current memory context.
 */
void
ss_run_read(const pg_uuid_t *id, SsRun *run)
{
	MemoryContext context = CurrentMemoryContext;
	Datum		values[1];
	HeapTuple	tuple;
	TupleDesc	desc;
	bool		isnull;

	SPI_connect();
	values[0] = UUIDPGetDatum(id);
	if (ss_plan_execute(SS_PLAN_RUN_READ, values, NULL, false) == 0)
		ss_run_refuse_unknown(id);
	tuple = SPI_tuptable->vals[0];
	desc = SPI_tuptable->tupdesc;

	if (strcmp(text_column(tuple, desc, 1), ss_namespace) != 0)
		ss_run_refuse_unknown(id);
	check_owner(id, text_column(tuple, desc, 5));
	if (strcmp(text_column(tuple, desc, 6), "running") != 0)
		ss_run_refuse_finished(id);

	run->id = *id;
	run->name = copy_text_column(context, tuple, desc, 1);
	run->state_id = copy_text_column(context, tuple, desc, 2);
	run->merges = (strcmp(text_column(tuple, desc, 3), "merge") == 0);
	run->token = DatumGetInt64(SPI_getbinval(tuple, desc, 4, &isnull));
	run->has_token = !isnull;
	SPI_finish();
}

/*
 * Refuse a second run of a state in a session, to which its run lock is no
 * obstacle.
 */
static void
refuse_second_run(text *state_id)
{
	Datum		values[4];
	bool		isnull;

	SPI_connect();
	values[0] = PointerGetDatum(ss_namespace_current());
	values[1] = PointerGetDatum(state_id);
	values[2] = Int32GetDatum(MyProcPid);
	values[3] = TimestampTzGetDatum(MyStartTimestamp);
	if (ss_plan_execute(SS_PLAN_RUN_OF_SESSION, values, NULL, false) > 0)
	{
		Datum		id = SPI_getbinval(SPI_tuptable->vals[0],
									   SPI_tuptable->tupdesc, 1, &isnull);

		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("state \"%s\" is locked", text_to_cstring(state_id)),
				 errdetail("This session's run %s goes on.",
						   run_name(DatumGetUUIDP(id))),
				 errhint("Call finish_run first.")));
	}
	SPI_finish();
}

static LOCKTAG
run_lock_tag(text *state_id)
{
	LOCKTAG		tag;

	ss_claim_tag(&tag, ss_namespace_current(), state_id, SS_LOCK_CLASS_RUN);
	return tag;
}

/*
 * Take the run lock for a run that begins.
 */
static void
lock_state(text *state_id)
{
	LOCKTAG		tag = run_lock_tag(state_id);

	if (ss_run_lock_held(state_id))
		refuse_second_run(state_id);
	if (!ss_run_lock_acquire(state_id, ss_lock_timeout))
		ss_claim_report_locked(state_id);
	ss_run_lock_begun(&tag);
}

/*
 * Refuse a run without a lock while somebody else has the state: its first
 * state would be refused anyway, after all the work.
 */
static void
check_unlocked(text *state_id, const int64 *token)
{
	SsClaim		claim;

	ss_claim_write(&claim, state_id, token, false);
	ss_claim_release(&claim);
}

/*
 * Insert the row of a run; with a lock, say in those of dead runs that they
 * are dead.  Answers the run's id.
 */
static pg_uuid_t *
insert_run(text *state_id, const char *strategy, bool locked, const int64 *token)
{
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));
	Datum		values[7];
	char		nulls[] = "       ";
	bool		isnull;

	SPI_connect();
	values[0] = PointerGetDatum(ss_namespace_current());
	values[1] = PointerGetDatum(state_id);
	if (locked)
		(void) ss_plan_execute(SS_PLAN_RUN_BURY, values, NULL, false);

	values[2] = CStringGetTextDatum(strategy);
	values[3] = BoolGetDatum(locked);
	values[4] = token != NULL ? Int64GetDatum(*token) : (Datum) 0;
	values[5] = Int32GetDatum(MyProcPid);
	values[6] = TimestampTzGetDatum(MyStartTimestamp);
	nulls[4] = token != NULL ? ' ' : 'n';
	if (ss_plan_execute(SS_PLAN_RUN_INSERT, values, nulls, false) != 1)
		elog(ERROR, "run was not inserted");
	*id = *DatumGetUUIDP(SPI_getbinval(SPI_tuptable->vals[0],
									   SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	return id;
}

/*
 * begin_run(state_id, strategy, lock, token): starts a run and makes it the
 * session's current one; answers its id.
 */
Datum
singer_state_begin_run(PG_FUNCTION_ARGS)
{
	text	   *state_id = ss_state_id_arg(fcinfo, 0);
	const char *strategy = strategy_names[ss_choice_arg(fcinfo, 1, "strategy",
														strategy_names)];
	bool		lock = ss_flag_arg(fcinfo, 2, "lock");
	int64		token = PG_ARGISNULL(3) ? 0 : PG_GETARG_INT64(3);
	const int64 *token_arg = PG_ARGISNULL(3) ? NULL : &token;
	pg_uuid_t  *id;

	PreventCommandIfReadOnly("begin_run()");
	if (lock && token_arg != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a run has a run lock or the token of a lease, not both"),
				 errhint("Pass lock => false to run under the lease.")));

	ss_access_require_write(state_id);
	if (lock)
		lock_state(state_id);
	else
		check_unlocked(state_id, token_arg);

	id = insert_run(state_id, strategy, lock, token_arg);
	ss_run_set_current(id);
	PG_RETURN_UUID_P(id);
}

/*
 * current_run(): the session's current run, or NULL.
 */
Datum
singer_state_current_run(PG_FUNCTION_ARGS)
{
	const pg_uuid_t *current = ss_run_current();
	pg_uuid_t  *id;

	if (current == NULL)
		PG_RETURN_NULL();
	id = palloc(sizeof(pg_uuid_t));
	*id = *current;
	PG_RETURN_UUID_P(id);
}

/*
 * heartbeat(run_id): says that a run is alive; answers when.
 */
Datum
singer_state_heartbeat(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *id = ss_run_id_arg(fcinfo, 0);
	SsRun		run;
	Datum		values[1];
	Datum		now;
	bool		isnull;

	PreventCommandIfReadOnly("heartbeat()");
	ss_run_read(id, &run);

	SPI_connect();
	values[0] = UUIDPGetDatum(id);
	if (ss_plan_execute(SS_PLAN_RUN_HEARTBEAT, values, NULL, false) == 0)
		ss_run_refuse_finished(id);
	now = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
						&isnull);
	SPI_finish();
	PG_RETURN_DATUM(now);
}

/*
 * What "overwrite" makes of a state when a run has succeeded that has reached
 * one: the state that it has reached, alone.
 */
static void
edit_complete(SsState *state, void *arg)
{
	Jsonb	   *partial = ss_state_part(state->partial);
	Jsonb	   *completed = ss_state_part(state->completed);

	if (partial == NULL)
		return;
	if (completed != NULL)
		partial = ss_document_conform(partial, completed);
	state->completed = (struct varlena *) partial;
	state->partial = NULL;
}

/*
 * Complete the state of a run that has succeeded, if there is a state.  Needs
 * an SPI connection.
 */
static void
complete_state(const SsRun *run, bool reached_state)
{
	SsState		state;
	SsWrite		write;

	ss_state_read(run->state_id, false, &state);
	if (!state.exists)
		return;

	ss_write_init(&write, "finish_run", run->state_id);
	write.has_token = run->has_token;
	write.token = run->token;
	(void) ss_store_write(&write, reached_state && !run->merges ?
						  edit_complete : ss_store_edit_promote, NULL);
}

/*
 * Lock the row of a run that is about to be finished.  Answers whether it has
 * reached a state; *ours tells whether this session took its run lock.  Needs
 * an SPI connection.
 */
static bool
lock_run(const pg_uuid_t *id, bool *ours)
{
	Datum		values[1];
	HeapTuple	tuple;
	TupleDesc	desc;
	bool		isnull;
	bool		locked;
	int			pid;
	TimestampTz start;

	values[0] = UUIDPGetDatum(id);
	if (ss_plan_execute(SS_PLAN_RUN_LOCK, values, NULL, false) == 0)
		ss_run_refuse_finished(id);

	tuple = SPI_tuptable->vals[0];
	desc = SPI_tuptable->tupdesc;
	locked = DatumGetBool(SPI_getbinval(tuple, desc, 5, &isnull));
	pid = DatumGetInt32(SPI_getbinval(tuple, desc, 6, &isnull));
	start = DatumGetTimestampTz(SPI_getbinval(tuple, desc, 7, &isnull));
	*ours = locked && pid == MyProcPid && start == MyStartTimestamp;
	return DatumGetBool(SPI_getbinval(tuple, desc, 4, &isnull));
}

/*
 * Write the end of a run into its row.  Answers the summary, a row in the
 * caller's memory.  Needs an SPI connection.
 */
static Datum
write_end(const SsRun *run, bool success, text *error)
{
	Datum		values[5];
	char		nulls[] = "     ";
	SsState		state;
	Jsonb	   *final_state;

	ss_state_read(run->state_id, false, &state);
	final_state = ss_state_effective(&state);

	values[0] = UUIDPGetDatum(&run->id);
	values[1] = CStringGetTextDatum(success ? "success" : "failed");
	values[2] = PointerGetDatum(error);
	values[3] = PointerGetDatum(final_state);
	nulls[2] = error != NULL ? ' ' : 'n';
	values[4] = BoolGetDatum(final_state != NULL &&
							 ss_state_is_resumable(final_state));
	nulls[3] = nulls[4] = final_state != NULL ? ' ' : 'n';
	if (ss_plan_execute(SS_PLAN_RUN_FINISH, values, nulls, false) == 0)
		ss_run_refuse_finished(&run->id);
	return HeapTupleHeaderGetDatum(SPI_returntuple(SPI_tuptable->vals[0],
												   SPI_tuptable->tupdesc));
}

/*
 * Let go, at commit, of what the session keeps for a run.
 */
static void
leave_run(const SsRun *run, bool took_lock)
{
	const pg_uuid_t *current = ss_run_current();

	if (current != NULL && memcmp(current, &run->id, sizeof(pg_uuid_t)) == 0)
		ss_run_set_current(NULL);
	if (took_lock && ss_run_lock_held(run->state_id))
	{
		LOCKTAG		tag = run_lock_tag(run->state_id);

		ss_run_lock_finished(&tag);
	}
}

/*
 * finish_run(run_id, success, error): ends a run; answers its summary.
 */
Datum
singer_state_finish_run(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *id = ss_run_id_arg(fcinfo, 0);
	bool		success = ss_flag_arg(fcinfo, 1, "success");
	text	   *error = PG_ARGISNULL(2) ? NULL : PG_GETARG_TEXT_PP(2);
	SsRun		run;
	bool		reached_state;
	bool		took_lock;
	Datum		summary;

	PreventCommandIfReadOnly("finish_run()");
	if (success && error != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a run that succeeds has no error"),
				 errhint("Pass success => false.")));

	ss_run_read(id, &run);
	ss_tally_write(id);

	SPI_connect();
	reached_state = lock_run(id, &took_lock);
	if (success)
		complete_state(&run, reached_state);
	summary = write_end(&run, success, error);
	SPI_finish();

	leave_run(&run, took_lock);
	PG_RETURN_DATUM(summary);
}
