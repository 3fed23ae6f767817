/*-------------------------------------------------------------------------
 *
 * plans.c
 *	  The saved SPI plans, one per statement that the library runs.
 *
 * Statements are prepared once a session, on first use, and qualify every
 * name, operators included, so that search_path decides nothing.  They run as
 * the caller, whose privileges and row security hold; the plan cache takes
 * care of a changed role.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "catalog/pg_type.h"
#include "nodes/pg_list.h"
#include "plans.h"
#include "utils/guc.h"
#include "utils/plancache.h"

#define KEY_MATCHES \
	" WHERE namespace OPERATOR(pg_catalog.=) $1" \
	" AND state_id OPERATOR(pg_catalog.=) $2"

#define RUN_MATCHES " WHERE run_id OPERATOR(pg_catalog.=) $1"
#define RUNNING " AND status OPERATOR(pg_catalog.=) 'running'"

#define MAX_ARGS 9

typedef struct PlanSource
{
	const char *statement;
	int			nargs;
	Oid			argtypes[MAX_ARGS];
} PlanSource;

static const PlanSource sources[SS_PLAN_COUNT] = {
	[SS_PLAN_STATE_READ] = {
		/* all columns in their order, as a row of the table has them */
		"SELECT namespace, state_id, partial_state, completed_state, version,"
		" updated_at FROM singer_state.state" KEY_MATCHES,
		2, {TEXTOID, TEXTOID}
	},
	[SS_PLAN_STATE_INSERT] = {
		"INSERT INTO singer_state.state"
		" (namespace, state_id, completed_state, partial_state)"
		" VALUES ($1, $2, $3, $4)"
		" ON CONFLICT (namespace, state_id) DO NOTHING"
		" RETURNING version",
		4, {TEXTOID, TEXTOID, JSONBOID, JSONBOID}
	},

	/*
	 * The version alone would do, were it not for a state that is deleted and
	 * created again with no history kept: its version starts again.
	 */
	[SS_PLAN_STATE_UPDATE] = {
		"UPDATE singer_state.state"
		" SET completed_state = $3, partial_state = $4" KEY_MATCHES
		" AND version OPERATOR(pg_catalog.=) $5"
		" AND updated_at OPERATOR(pg_catalog.=) $6"
		" RETURNING version",
		6, {TEXTOID, TEXTOID, JSONBOID, JSONBOID, INT8OID, TIMESTAMPTZOID}
	},
	[SS_PLAN_STATE_RENUMBER] = {
		"UPDATE singer_state.state SET version = $3" KEY_MATCHES,
		3, {TEXTOID, TEXTOID, INT8OID}
	},

	/*
	 * The same for a row whose place is known, which spares the index.  The
	 * place is not given away while the caller has a snapshot that sees the
	 * row.
	 */
	[SS_PLAN_STATE_UPDATE_PLACE] = {
		"UPDATE singer_state.state"
		" SET completed_state = $2, partial_state = $3"
		" WHERE ctid OPERATOR(pg_catalog.=) $1"
		" AND version OPERATOR(pg_catalog.=) $4"
		" AND updated_at OPERATOR(pg_catalog.=) $5"
		" RETURNING version",
		5, {TIDOID, JSONBOID, JSONBOID, INT8OID, TIMESTAMPTZOID}
	},
	[SS_PLAN_STATE_DELETE] = {
		"DELETE FROM singer_state.state" KEY_MATCHES
		" RETURNING completed_state, partial_state",
		2, {TEXTOID, TEXTOID}
	},
	[SS_PLAN_STATE_TOUCH] = {
		"SELECT FROM singer_state.state" KEY_MATCHES " FOR UPDATE",
		2, {TEXTOID, TEXTOID}
	},
	[SS_PLAN_STATE_TRY_INSERT] = {
		"INSERT INTO singer_state.state (namespace, state_id) VALUES ($1, $2)"
		" ON CONFLICT (namespace, state_id) DO NOTHING",
		2, {TEXTOID, TEXTOID}
	},
	[SS_PLAN_STATE_LIST] = {
		"SELECT state_id FROM singer_state.state"
		" WHERE namespace OPERATOR(pg_catalog.=) $1"
		" AND state_id OPERATOR(pg_catalog.>=) $2"
		" ORDER BY namespace, state_id",
		2, {TEXTOID, TEXTOID}
	},
	[SS_PLAN_STATE_EXPORT] = {
		"SELECT state_id, completed_state, partial_state"
		" FROM singer_state.state"
		" WHERE namespace OPERATOR(pg_catalog.=) $1"
		" AND state_id OPERATOR(pg_catalog.>=) $2"
		" ORDER BY namespace, state_id",
		2, {TEXTOID, TEXTOID}
	},
	[SS_PLAN_HISTORY_INSERT] = {
		"INSERT INTO singer_state.state_history"
		" (namespace, state_id, partial_state, completed_state, version,"
		" updated_at, operation, changed_by, application_name, changed_at,"
		" transaction_id)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9,"
		" pg_catalog.clock_timestamp(), pg_catalog.pg_current_xact_id())",
		9, {TEXTOID, TEXTOID, JSONBOID, JSONBOID, INT8OID, TIMESTAMPTZOID,
		TEXTOID, TEXTOID, TEXTOID}
	},
	[SS_PLAN_HISTORY_PRUNE] = {
		"DELETE FROM singer_state.state_history" KEY_MATCHES
		" AND version OPERATOR(pg_catalog.<=) $3",
		3, {TEXTOID, TEXTOID, INT8OID}
	},
	[SS_PLAN_HISTORY_READ] = {
		"SELECT completed_state, partial_state"
		" FROM singer_state.state_history" KEY_MATCHES
		" AND version OPERATOR(pg_catalog.=) $3",
		3, {TEXTOID, TEXTOID, INT8OID}
	},
	[SS_PLAN_HISTORY_VERSIONS] = {
		"SELECT pg_catalog.string_agg(v.version::pg_catalog.text, ', '"
		" ORDER BY v.version)"
		" FROM (SELECT version FROM singer_state.state_history" KEY_MATCHES
		" UNION ALL SELECT version FROM singer_state.state" KEY_MATCHES ") v",
		2, {TEXTOID, TEXTOID}
	},
	[SS_PLAN_LEASE_WRITE] = {
		"INSERT INTO singer_state.state_lock"
		" (namespace, state_id, lock_id, token, locked_at, expires_at,"
		" holder_user, application_name, client_addr)"
		" VALUES ($1, $2, pg_catalog.gen_random_uuid(),"
		" pg_catalog.nextval('singer_state.state_lock_token'),"
		" pg_catalog.clock_timestamp(), $3, $4, $5, pg_catalog.inet_client_addr())"
		" ON CONFLICT (namespace, state_id) DO UPDATE"
		" SET lock_id = excluded.lock_id, token = excluded.token,"
		" locked_at = excluded.locked_at, expires_at = excluded.expires_at,"
		" holder_user = excluded.holder_user,"
		" application_name = excluded.application_name,"
		" client_addr = excluded.client_addr"
		" RETURNING lock_id, token, expires_at",
		5, {TEXTOID, TEXTOID, TIMESTAMPTZOID, TEXTOID, TEXTOID}
	},
	[SS_PLAN_LEASE_RENEW] = {
		"UPDATE singer_state.state_lock SET expires_at = $4" KEY_MATCHES
		" AND lock_id OPERATOR(pg_catalog.=) $3",
		4, {TEXTOID, TEXTOID, UUIDOID, TIMESTAMPTZOID}
	},
	[SS_PLAN_LEASE_RELEASE] = {
		"DELETE FROM singer_state.state_lock" KEY_MATCHES
		" AND lock_id OPERATOR(pg_catalog.=) $3",
		3, {TEXTOID, TEXTOID, UUIDOID}
	},
	[SS_PLAN_LEASE_BREAK] = {
		"DELETE FROM singer_state.state_lock" KEY_MATCHES,
		2, {TEXTOID, TEXTOID}
	},
	[SS_PLAN_RUN_READ] = {
		"SELECT namespace, state_id, strategy, token, started_by, status"
		" FROM singer_state.run" RUN_MATCHES,
		1, {UUIDOID}
	},
	[SS_PLAN_RUN_OF_SESSION] = {
		"SELECT run_id FROM singer_state.run" KEY_MATCHES RUNNING
		" AND locked AND pid OPERATOR(pg_catalog.=) $3"
		" AND backend_start OPERATOR(pg_catalog.=) $4",
		4, {TEXTOID, TEXTOID, INT4OID, TIMESTAMPTZOID}
	},
	[SS_PLAN_RUN_BURY] = {
		"UPDATE singer_state.run SET status = 'failed',"
		" finished_at = pg_catalog.clock_timestamp(),"
		" error = 'the session ended before the run was finished'"
		KEY_MATCHES RUNNING " AND locked",
		2, {TEXTOID, TEXTOID}
	},
	[SS_PLAN_RUN_INSERT] = {
		"INSERT INTO singer_state.run (namespace, state_id, strategy, locked,"
		" token, started_by, pid, backend_start, application_name,"
		" client_addr) VALUES ($1, $2, $3, $4, $5, current_user, $6, $7,"
		" pg_catalog.current_setting('application_name'),"
		" pg_catalog.inet_client_addr()) RETURNING run_id",
		7, {TEXTOID, TEXTOID, TEXTOID, BOOLOID, INT8OID, INT4OID,
		TIMESTAMPTZOID}
	},
	[SS_PLAN_RUN_HEARTBEAT] = {
		"UPDATE singer_state.run"
		" SET heartbeat_at = pg_catalog.clock_timestamp()"
		RUN_MATCHES RUNNING " RETURNING heartbeat_at",
		1, {UUIDOID}
	},
	[SS_PLAN_RUN_LOCK] = {
		"SELECT message_counts, stream_counts, lines_skipped, reached_state,"
		" locked, pid, backend_start"
		" FROM singer_state.run" RUN_MATCHES RUNNING " FOR UPDATE",
		1, {UUIDOID}
	},
	[SS_PLAN_RUN_COUNT] = {
		"UPDATE singer_state.run SET messages_processed = $2,"
		" states_processed = $3, lines_skipped = $4, message_counts = $5,"
		" stream_counts = $6, reached_state = reached_state OR $7,"
		" heartbeat_at = pg_catalog.clock_timestamp()" RUN_MATCHES,
		7, {UUIDOID, INT8OID, INT8OID, INT8OID, JSONBOID, JSONBOID, BOOLOID}
	},
	[SS_PLAN_RUN_FINISH] = {
		"UPDATE singer_state.run SET status = $2, error = $3,"
		" final_state = $4, resumable = $5,"
		" finished_at = pg_catalog.clock_timestamp()" RUN_MATCHES RUNNING
		" RETURNING run_id, error, state_id, status, messages_processed,"
		" states_processed, lines_skipped, message_counts, stream_counts,"
		" ARRAY(SELECT s.k FROM pg_catalog.jsonb_object_keys(stream_counts) s(k)"
		" ORDER BY s.k COLLATE pg_catalog.\"C\"),"
		" finished_at OPERATOR(pg_catalog.-) started_at,"
		" final_state, resumable",
		5, {UUIDOID, TEXTOID, TEXTOID, JSONBOID, BOOLOID}
	},
};

static SPIPlanPtr plans[SS_PLAN_COUNT];

/*
 * The plan of a statement, prepared now if need be.  Needs an SPI connection.
 *
 * A plan that DDL has invalidated is made anew rather than replanned, since
 * the columns of its result may have changed too.
 */
SPIPlanPtr
ss_plan_get(SsPlan plan)
{
	const PlanSource *source = &sources[plan];
	SPIPlanPtr	made;

	if (plans[plan] != NULL)
	{
		if (SPI_plan_is_valid(plans[plan]))
			return plans[plan];
		SPI_freeplan(plans[plan]);
		plans[plan] = NULL;
	}

	made = SPI_prepare_cursor(source->statement, source->nargs,
							  (Oid *) source->argtypes,
							  CURSOR_OPT_GENERIC_PLAN);
	if (made == NULL)
		elog(ERROR, "SPI_prepare failed for \"%s\": %s", source->statement,
			 SPI_result_code_string(SPI_result));
	if (SPI_keepplan(made) != 0)
		elog(ERROR, "SPI_keepplan failed for \"%s\"", source->statement);

	plans[plan] = made;
	return made;
}

/*
 * Is the plan going to be planned when it is next executed?
 */
static bool
needs_planning(SPIPlanPtr plan)
{
	CachedPlanSource *source = linitial(SPI_plan_get_plan_sources(plan));

	return !source->is_valid || source->gplan == NULL || !source->gplan->is_valid;
}

/*
 * Get a plan ready to be executed or opened as a cursor; the answer is for
 * ss_plan_end.
 *
 * A table that was small when the session began may not stay so, and a plan
 * that read all of it then would be kept.  So while a statement is planned,
 * scans of whole tables are out of favour, and so are bitmap scans, which
 * never mark the index entries of dead rows as dead.
 */
int
ss_plan_begin(SPIPlanPtr plan)
{
	int			level;

	if (!needs_planning(plan))
		return 0;

	level = NewGUCNestLevel();
	(void) set_config_option("enable_seqscan", "off", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("enable_bitmapscan", "off", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return level;
}

/*
 * Undo ss_plan_begin.  An error on the way does it too.
 */
void
ss_plan_end(int level)
{
	if (level != 0)
		AtEOXact_GUC(true, level);
}

/*
 * Run a statement to its end; answers SPI_processed.  "read_only" takes the
 * caller's snapshot, otherwise the statement takes a new one.
 */
uint64
ss_plan_execute(SsPlan plan, const Datum *values, const char *nulls,
				bool read_only)
{
	SPIPlanPtr	prepared = ss_plan_get(plan);
	int			level = ss_plan_begin(prepared);
	int			rc = SPI_execute_plan(prepared, unconstify(Datum *, values),
									  nulls, read_only, 0);

	ss_plan_end(level);
	if (rc < 0)
		elog(ERROR, "SPI_execute_plan failed for \"%s\": %s",
			 sources[plan].statement, SPI_result_code_string(rc));
	return SPI_processed;
}

/*
 * A jsonb column of a result, detoasted into the given context; NULL for SQL
 * NULL.
 */
Jsonb *
ss_plan_jsonb(MemoryContext context, HeapTuple tuple, TupleDesc desc,
			  int column)
{
	bool		isnull;
	Datum		value = SPI_getbinval(tuple, desc, column, &isnull);
	MemoryContext old;
	Jsonb	   *result;

	if (isnull)
		return NULL;

	old = MemoryContextSwitchTo(context);
	result = DatumGetJsonbPCopy(value);
	MemoryContextSwitchTo(old);
	return result;
}
