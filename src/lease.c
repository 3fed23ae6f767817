/*-------------------------------------------------------------------------
 *
 * lease.c
 *	  Leases: run locks that live in a table, for clients that do not own a
 *	  session.
 *
 * A lease is a row of state_lock.  It is ours as long as the row has our
 * lock_id; its token, from a sequence, is higher than that of every lease
 * before it, so that a writer with an older one is fenced out (claim.c).
 *
 * Releasing or renewing a lease takes effect at commit, and that is when the
 * first in the queue is woken.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access.h"
#include "access/htup_details.h"
#include "access/xact.h"
#include "args.h"
#include "claim.h"
#include "funcapi.h"
#include "lease.h"
#include "lock_holder.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "plans.h"
#include "run_lock.h"
#include "settings.h"
#include "state_id.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(singer_state_acquire_lease);
PG_FUNCTION_INFO_V1(singer_state_renew_lease);
PG_FUNCTION_INFO_V1(singer_state_release_lease);
PG_FUNCTION_INFO_V1(singer_state_break_lock);

/* Queues to wake at commit: LOCKTAGs in TopTransactionContext */
static List *queues_to_wake = NIL;

/*
 * Refuse what needs a lease that is no longer the caller's.
 */
void
ss_lease_refuse(text *state_id, const char *action)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot %s: the lease on state \"%s\" is lost",
					action, text_to_cstring(state_id)),
			 errdetail("It was released, or it expired and somebody else took it."),
			 errhint("Stop this run: another one may be under way.")));
}

static void
wake_at_end(XactEvent event, void *arg)
{
	ListCell   *cell;

	/* of a prepared transaction they wait for the end, once they look again */
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
	{
		foreach(cell, queues_to_wake)
			ss_claim_wake((LOCKTAG *) lfirst(cell));
	}
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
		event == XACT_EVENT_PREPARE)
		queues_to_wake = NIL;
}

/*
 * Have the end of a transaction wake those who wait for its leases.  Called
 * once, by _PG_init.
 */
void
ss_lease_init(void)
{
	RegisterXactCallback(wake_at_end, NULL);
}

/*
 * Wake the first who waits for a state id when this transaction commits.  A
 * subtransaction that is rolled back leaves a wake-up for nothing.
 */
static void
wake_at_commit(text *name, text *state_id)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	LOCKTAG    *queue = palloc(sizeof(LOCKTAG));

	ss_claim_tag(queue, name, state_id, SS_LOCK_CLASS_QUEUE);
	queues_to_wake = lappend(queues_to_wake, queue);
	MemoryContextSwitchTo(old);
}

/*
 * When a lease that is taken or renewed now ends; ttl NULL is the setting.
 */
static TimestampTz
expiry(FunctionCallInfo fcinfo, int argno)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz end;

	if (PG_ARGISNULL(argno))
		return now + ss_lease_ttl * USECS_PER_SEC;

	end = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
												  TimestampTzGetDatum(now),
												  PG_GETARG_DATUM(argno)));
	if (end <= now)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ttl of a lease must be positive")));
	return end;
}

/*
 * Run a statement about the lease of a state id; answers whether there was a
 * row.
 */
static bool
lease_statement(SsPlan plan, text *state_id, Datum lock_id, Datum expires_at)
{
	Datum		values[4];
	bool		found;

	values[0] = PointerGetDatum(ss_namespace_current());
	values[1] = PointerGetDatum(state_id);
	values[2] = lock_id;
	values[3] = expires_at;

	SPI_connect();
	found = ss_plan_execute(plan, values, NULL, false) > 0;
	SPI_finish();
	return found;
}

/*
 * Delete the expired lease that a run lock is taken after, so that its holder
 * can neither renew it nor write with its token.
 */
void
ss_lease_end(text *state_id)
{
	(void) lease_statement(SS_PLAN_LEASE_BREAK, state_id, (Datum) 0, (Datum) 0);
}

/*
 * Write the row of a lease that was claimed; the result is the row that
 * acquire_lease answers.
 */
static Datum
write_lease(SsClaim *claim, TimestampTz expires_at, TupleDesc desc)
{
	Datum		values[5];
	Datum		result[3];
	bool		result_nulls[3];
	Datum		row;

	values[0] = PointerGetDatum(claim->name);
	values[1] = PointerGetDatum(claim->state_id);
	values[2] = TimestampTzGetDatum(expires_at);
	values[3] = CStringGetTextDatum(GetUserNameFromId(GetUserId(), false));
	values[4] = CStringGetTextDatum(application_name ? application_name : "");

	SPI_connect();
	if (ss_plan_execute(SS_PLAN_LEASE_WRITE, values, NULL, false) != 1)
		elog(ERROR, "lease was not written");
	for (int i = 0; i < 3; i++)
		result[i] = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc,
								  i + 1, &result_nulls[i]);
	row = PointerGetDatum(SPI_returntuple(heap_form_tuple(desc, result, result_nulls),
										  desc));
	SPI_finish();
	return row;
}

/*
 * acquire_lease(state_id, ttl, timeout): (lock_id, token, expires_at).
 */
Datum
singer_state_acquire_lease(PG_FUNCTION_ARGS)
{
	text	   *state_id = ss_state_id_arg(fcinfo, 0);
	int			timeout = ss_timeout_arg(fcinfo, 2, ss_lock_timeout);
	SsClaim		claim;
	TupleDesc	desc;
	Datum		result;

	PreventCommandIfReadOnly("acquire_lease()");
	ss_access_require_write(state_id);
	(void) expiry(fcinfo, 1);	/* a bad ttl is no reason to wait */
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	if (ss_run_lock_held(state_id))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("state \"%s\" is locked", text_to_cstring(state_id)),
				 errdetail("This session holds its run lock.")));
	if (!ss_claim_exclusive(&claim, state_id, timeout))
		ss_claim_report(&claim);
	result = write_lease(&claim, expiry(fcinfo, 1), BlessTupleDesc(desc));
	ss_claim_release(&claim);
	PG_RETURN_DATUM(result);
}

/*
 * renew_lease(state_id, lock_id, ttl): the new expiry.
 */
Datum
singer_state_renew_lease(PG_FUNCTION_ARGS)
{
	text	   *state_id = ss_state_id_arg(fcinfo, 0);
	TimestampTz expires_at;
	SsClaim		claim;

	ss_require_arg(fcinfo, 1, "lock_id");
	PreventCommandIfReadOnly("renew_lease()");
	(void) expiry(fcinfo, 2);	/* a bad ttl is no reason to wait */
	ss_claim_renewal(&claim, state_id, PG_GETARG_UUID_P(1));
	expires_at = expiry(fcinfo, 2);
	if (!lease_statement(SS_PLAN_LEASE_RENEW, state_id, PG_GETARG_DATUM(1),
						 TimestampTzGetDatum(expires_at)))
		ss_lease_refuse(state_id, "renew");
	ss_claim_release(&claim);
	wake_at_commit(ss_namespace_current(), state_id);	/* it may end sooner */
	PG_RETURN_TIMESTAMPTZ(expires_at);
}

/*
 * release_lease(state_id, lock_id): true.
 */
Datum
singer_state_release_lease(PG_FUNCTION_ARGS)
{
	text	   *state_id = ss_state_id_arg(fcinfo, 0);

	ss_require_arg(fcinfo, 1, "lock_id");
	PreventCommandIfReadOnly("release_lease()");
	if (!lease_statement(SS_PLAN_LEASE_RELEASE, state_id, PG_GETARG_DATUM(1),
						 (Datum) 0))
		ss_lease_refuse(state_id, "release");
	wake_at_commit(ss_namespace_current(), state_id);
	PG_RETURN_BOOL(true);
}

/*
 * break_lock(state_id): ends a lease, or says which process holds the run
 * lock.
 */
Datum
singer_state_break_lock(PG_FUNCTION_ARGS)
{
	text	   *state_id = ss_state_id_arg(fcinfo, 0);
	text	   *name = ss_namespace_current();
	LOCKTAG		tag;
	int			pid;

	PreventCommandIfReadOnly("break_lock()");
	ss_claim_tag(&tag, name, state_id, SS_LOCK_CLASS_RUN);
	pid = ss_lock_holder_pid(&tag);
	if (pid != 0)
		PG_RETURN_TEXT_P(cstring_to_text(psprintf("run lock: %s To end it: SELECT pg_terminate_backend(%d);",
												  ss_lock_holder_describe(&tag),
												  pid)));

	if (lease_statement(SS_PLAN_LEASE_BREAK, state_id, (Datum) 0, (Datum) 0))
	{
		wake_at_commit(name, state_id);
		PG_RETURN_TEXT_P(cstring_to_text("lease ended"));
	}
	PG_RETURN_TEXT_P(cstring_to_text(ss_run_lock_held(state_id) ?
									 "run lock: held by this session" :
									 "not locked"));
}
