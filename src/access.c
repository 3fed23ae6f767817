/*-------------------------------------------------------------------------
 *
 * access.c
 *	  Privileges: who may lock a state, and the levels that are granted.
 *
 * Statements check the caller's privileges by themselves.  Locks are not
 * statements: whoever cannot write a state must not be able to lock out those
 * who can.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access.h"
#include "access/xact.h"
#include "args.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "plans.h"
#include "row_probe.h"
#include "state_id.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/rls.h"

PG_FUNCTION_INFO_V1(singer_state_grant_access);
PG_FUNCTION_INFO_V1(singer_state_revoke_access);

/* Each level has what the levels before it have */
typedef enum AccessLevel
{
	ACCESS_READER,
	ACCESS_WRITER,
	ACCESS_ADMIN
} AccessLevel;

/* A GRANT command, with the lowest level that it is for */
typedef struct Grant
{
	AccessLevel level;
	const char *command;		/* %s is the role */
} Grant;

static const char *const level_names[] = {"reader", "writer", "admin", NULL};

/*
 * Does the error being handled say that somebody else has a row?  Row security
 * has let us come that far then.
 */
static bool
row_is_taken(MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	ErrorData  *error = CopyErrorData();
	bool		result = (error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE);

	FreeErrorData(error);
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * Would row security let the caller write the state?  There is no function
 * that answers it, so a row is written, in a subtransaction that is rolled
 * back whatever happens.  It waits for nobody: whoever asks for a lock has
 * said how long that may take.
 */
static void
try_write(text *state_id)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	Datum		values[2];
	volatile bool allowed = false;

	values[0] = PointerGetDatum(ss_namespace_current());
	values[1] = PointerGetDatum(state_id);

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		(void) set_config_option("lock_timeout", "1", PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0,
								 false);
		SPI_connect();
		allowed = ss_plan_execute(SS_PLAN_STATE_TOUCH, values, NULL, false) > 0 ||
			ss_plan_execute(SS_PLAN_STATE_TRY_INSERT, values, NULL, false) > 0;
		SPI_finish();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		allowed = row_is_taken(context);
		MemoryContextSwitchTo(context);
		RollbackAndReleaseCurrentSubTransaction();
		CurrentResourceOwner = owner;
		if (!allowed)
			PG_RE_THROW();
		FlushErrorState();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;

	if (!allowed)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to lock state \"%s\"",
						text_to_cstring(state_id)),
				 errdetail("Row security does not let this role write it.")));
}

/*
 * Refuse to lock a state that the caller could not write.
 */
void
ss_access_require_write(text *state_id)
{
	Oid			table = ss_row_table("state");

	if (pg_class_aclcheck(table, GetUserId(), ACL_INSERT) != ACLCHECK_OK ||
		pg_class_aclcheck(table, GetUserId(), ACL_UPDATE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, "state");

	if (check_enable_rls(table, InvalidOid, false) == RLS_ENABLED)
		try_write(state_id);
}

static char *
role_arg(FunctionCallInfo fcinfo, int argno)
{
	ss_require_arg(fcinfo, argno, "role");
	return GetUserNameFromId(PG_GETARG_OID(argno), false);
}

/*
 * Functions that are for administrators only.  Of the others, those that only
 * read are for readers, the rest for writers; the pure ones are PUBLIC's.
 */
#define ADMIN_FUNCTIONS "'{break_lock,grant_access,revoke_access}'::pg_catalog.name[]"

/* Is the function f for the level $1? */
#define FUNCTION_FILTER \
	" FROM pg_catalog.pg_proc f" \
	" WHERE f.pronamespace OPERATOR(pg_catalog.=) 'singer_state'::pg_catalog.regnamespace" \
	" AND f.prorettype OPERATOR(pg_catalog.<>) 'pg_catalog.trigger'::pg_catalog.regtype" \
	" AND f.proname OPERATOR(pg_catalog.<>) ALL (" ADMIN_FUNCTIONS ")" \
	" AND (f.provolatile OPERATOR(pg_catalog.=) 's'" \
	" OR f.provolatile OPERATOR(pg_catalog.=) $1)"

/* Privileges on all but the functions, which follow from the catalog */
static const Grant grants[] = {
	{ACCESS_READER, "GRANT USAGE ON SCHEMA singer_state TO %s"},
	{ACCESS_READER, "GRANT SELECT ON ALL TABLES IN SCHEMA singer_state TO %s"},
	{ACCESS_WRITER, "GRANT INSERT, UPDATE, DELETE ON singer_state.state, singer_state.state_lock TO %s"},
	{ACCESS_WRITER, "GRANT INSERT, UPDATE ON singer_state.run TO %s"},
	{ACCESS_WRITER, "GRANT INSERT ON singer_state.messages TO %s"},
	{ACCESS_WRITER, "GRANT USAGE ON SEQUENCE singer_state.state_lock_token TO %s"},
	{ACCESS_ADMIN, "GRANT USAGE ON SCHEMA singer_state TO %s WITH GRANT OPTION"},
	{ACCESS_ADMIN, "GRANT SELECT ON ALL TABLES IN SCHEMA singer_state TO %s WITH GRANT OPTION"},
	{ACCESS_ADMIN, "GRANT INSERT, UPDATE, DELETE ON singer_state.state, singer_state.state_lock TO %s WITH GRANT OPTION"},
	{ACCESS_ADMIN, "GRANT INSERT, UPDATE, DELETE ON singer_state.run TO %s WITH GRANT OPTION"},
	{ACCESS_ADMIN, "GRANT INSERT ON singer_state.messages TO %s WITH GRANT OPTION"},
	{ACCESS_ADMIN, "GRANT DELETE ON singer_state.state_history TO %s WITH GRANT OPTION"},
	{ACCESS_ADMIN, "GRANT ALL ON ALL SEQUENCES IN SCHEMA singer_state TO %s WITH GRANT OPTION"},
	{ACCESS_ADMIN, "GRANT ALL ON ALL FUNCTIONS IN SCHEMA singer_state TO %s WITH GRANT OPTION"},
};

static const char *const revokes[] =
{
	"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA singer_state FROM %s",
	"REVOKE ALL ON ALL SEQUENCES IN SCHEMA singer_state FROM %s",
	"REVOKE ALL ON ALL TABLES IN SCHEMA singer_state FROM %s",
	"REVOKE ALL ON SCHEMA singer_state FROM %s",
};

static void
run_command(const char *command)
{
	int			rc = SPI_execute(command, false, 0);

	if (rc < 0)
		elog(ERROR, "SPI_execute failed for \"%s\": %s", command,
			 SPI_result_code_string(rc));
}

/*
 * Grant EXECUTE on the functions of a level, by their volatility.
 */
static void
grant_functions(AccessLevel level, const char *role)
{
	Oid			argtypes[1] = {CHAROID};
	Datum		values[1] = {CharGetDatum(level == ACCESS_READER ? 's' : 'v')};
	int			rc;

	rc = SPI_execute_with_args("SELECT pg_catalog.string_agg(f.oid::pg_catalog.regprocedure::pg_catalog.text, ', ')"
							   FUNCTION_FILTER,
							   1, argtypes, values, NULL, false, 0);
	if (rc != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "could not list functions: %s", SPI_result_code_string(rc));
	run_command(psprintf("GRANT EXECUTE ON FUNCTION %s TO %s",
						 SPI_getvalue(SPI_tuptable->vals[0],
									  SPI_tuptable->tupdesc, 1), role));
}

/*
 * grant_access(role, level): hands out what the level needs.
 */
Datum
singer_state_grant_access(PG_FUNCTION_ARGS)
{
	const char *role = quote_identifier(role_arg(fcinfo, 0));
	AccessLevel level = ss_choice_arg(fcinfo, 1, "level", level_names);

	SPI_connect();
	for (int i = 0; i < lengthof(grants); i++)
	{
		if (grants[i].level <= level)
			run_command(psprintf(grants[i].command, role));
	}
	grant_functions(level, role);
	SPI_finish();
	PG_RETURN_VOID();
}

/*
 * revoke_access(role): takes back what grant_access gave.
 */
Datum
singer_state_revoke_access(PG_FUNCTION_ARGS)
{
	const char *role = quote_identifier(role_arg(fcinfo, 0));

	SPI_connect();
	for (int i = 0; i < lengthof(revokes); i++)
		run_command(psprintf(revokes[i], role));
	SPI_finish();
	PG_RETURN_VOID();
}
