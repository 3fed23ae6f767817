/*-------------------------------------------------------------------------
 *
 * run_tally.c
 *	  What the current transaction has seen of a run, not yet in its row.
 *
 * A row update for each message would cost more than the message.  So a
 * transaction counts in memory, and writes the row when it is about to commit
 * or when the run is finished.  States are not put off that long: the last
 * one of a statement is written at the statement's end, so that what follows
 * in the transaction reads it.
 *
 * There is a tally per run and subtransaction.  A rollback drops the tallies
 * of its subtransaction, and opens those again that it had written; a
 * subtransaction that commits hands its tallies to its parent.
 *
 * A run may be finished by somebody else meanwhile.  Writing the row finds
 * out, and the transaction fails: what it has seen belongs to no run.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access/xact.h"
#include "document.h"
#include "mb/pg_wchar.h"
#include "merge.h"
#include "miscadmin.h"
#include "plans.h"
#include "run_tally.h"
#include "settings.h"
#include "store.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "validate.h"

/* The transaction's tallies, newest first, each in a context of its own */
static SsTally *tallies = NULL;

/*
 * May lines of this run still be added to the tally?
 */
static bool
is_open(const SsTally *tally, const pg_uuid_t *id)
{
	return tally->subid == GetCurrentSubTransactionId() &&
		tally->written_by == InvalidSubTransactionId &&
		tally->userid == GetUserId() &&
		memcmp(&tally->run.id, id, sizeof(pg_uuid_t)) == 0;
}

static SsTally *
create_tally(const pg_uuid_t *id)
{
	MemoryContext context = AllocSetContextCreate(TopTransactionContext,
												  "singer_state run tally",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	SsTally    *tally = palloc0(sizeof(SsTally));

	tally->context = context;
	tally->subid = GetCurrentSubTransactionId();
	tally->written_by = InvalidSubTransactionId;
	tally->userid = GetUserId();
	ss_run_read(id, &tally->run);
	ss_counts_init(&tally->counts, context);
	tally->state_context = AllocSetContextCreate(context,
												 "singer_state state reached",
												 ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(old);

	tally->next = tallies;
	tallies = tally;
	return tally;
}

/*
 * The tally to which lines of a run are to be added now.  An error if the run
 * is unknown, finished, or another role's.
 */
SsTally *
ss_tally_open(const pg_uuid_t *id)
{
	for (SsTally *tally = tallies; tally != NULL; tally = tally->next)
	{
		if (!is_open(tally, id))
			continue;
		/* the session may have moved to another namespace */
		if (!ss_run_is_here(&tally->run))
			ss_run_refuse_unknown(id);
		return tally;
	}
	return create_tally(id);
}

/* What a run makes of a state that it has reached */
typedef struct Reached
{
	const SsRun *run;
	Jsonb	   *state;
} Reached;

/*
 * Put the state reached into the partial part: over what is there, or merged
 * into it.  It takes the form of what is stored, a payload or a tap state.
 */
static void
edit_reached(SsState *state, void *arg)
{
	Reached    *reached = arg;
	Jsonb	   *partial = ss_state_part(state->partial);
	Jsonb	   *model = partial;
	Jsonb	   *document = reached->state;

	if (model == NULL)
		model = ss_state_part(state->completed);
	if (model != NULL)
		document = ss_document_conform(document, model);
	if (reached->run->merges && partial != NULL)
		document = ss_deep_merge(partial, document, false);
	state->partial = (struct varlena *) document;
}

/*
 * Write the state that the statement has reached.
 */
static void
write_state(SsTally *tally)
{
	Reached		reached = {&tally->run, tally->state};
	SsWrite		write;

	ss_write_init(&write, "process_messages", tally->run.state_id);
	write.has_token = tally->run.has_token;
	write.token = tally->run.token;
	(void) ss_store_write(&write, edit_reached, &reached);

	tally->reached_state = true;
	tally->state = NULL;
}

/*
 * Take over a state that a line has brought.
 *
 * One spelled like that before it is the same.  One without bookmarks is
 * where a tap starts, not what it has reached: it must not replace a state.
 * Under "overwrite" the last one of a statement is all that matters; merging
 * needs each, since deep merge is not associative when an object and a scalar
 * meet.
 */
static void
take_state(SsTally *tally, SsSlice spelled)
{
	MemoryContext old;
	char	   *json;
	Jsonb	   *state;

	if (tally->spelled.length == spelled.length &&
		memcmp(tally->spelled.data, spelled.data, spelled.length) == 0)
		return;

	if (tally->run.merges && tally->state != NULL)
		write_state(tally);

	MemoryContextReset(tally->state_context);
	tally->state = NULL;
	old = MemoryContextSwitchTo(tally->state_context);
	json = pnstrdup(spelled.data, spelled.length);
	tally->spelled.data = json;
	tally->spelled.length = spelled.length;
	state = DatumGetJsonbP(DirectFunctionCall1(jsonb_in,
											   CStringGetDatum(json)));
	ss_document_check_kind(state);
	ss_document_validate(state);
	if (ss_document_has_bookmarks(state))
		tally->state = state;
	MemoryContextSwitchTo(old);
}

static void
add_line_context(void *arg)
{
	errcontext("message in line " UINT64_FORMAT, ((SsTally *) arg)->line);
}

/*
 * Report a line that is no message.
 */
static void
refuse_line(uint64 number, const SsLine *line)
{
	int			shown = Min(line->text.length, 80);

	shown = pg_mbcliplen(line->text.data, shown, shown);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("line " UINT64_FORMAT " is not a Singer message: %s",
					number, line->problem),
			 errdetail("Found at byte %zu of the line, which begins: %.*s",
					   line->problem_at + 1, shown, line->text.data),
			 errhint("on_error => 'skip' counts such lines and goes on.")));
}

/*
 * Count a line, and take over the state that it brings, if it does.  "skip"
 * goes on after a line that is no message; a state that cannot be stored is
 * an error always.
 */
void
ss_tally_add_line(SsTally *tally, const SsLine *line, bool skip)
{
	tally->line++;
	if (line->kind == SS_LINE_INVALID && !skip)
		refuse_line(tally->line, line);
	if (line->kind == SS_LINE_STATE || line->kind == SS_LINE_BARE_STATE)
	{
		ErrorContextCallback callback;

		callback.callback = add_line_context;
		callback.arg = tally;
		callback.previous = error_context_stack;
		error_context_stack = &callback;
		take_state(tally, line->state);
		error_context_stack = callback.previous;
	}
	ss_counts_add_line(&tally->counts, line);
}

/*
 * End a statement that has added lines.
 */
void
ss_tally_end_statement(SsTally *tally)
{
	if (tally->state != NULL)
		write_state(tally);
	MemoryContextReset(tally->state_context);
	memset(&tally->spelled, 0, sizeof(SsSlice));
	tally->line = 0;
}

/*
 * Add a tally to the run's row.  Needs an SPI connection.
 */
static void
add_to_row(SsTally *tally)
{
	SsRunCounts counts;
	Datum		values[7];
	HeapTuple	tuple;
	TupleDesc	desc;
	bool		isnull;

	values[0] = UUIDPGetDatum(&tally->run.id);
	if (ss_plan_execute(SS_PLAN_RUN_LOCK, values, NULL, false) == 0)
		ss_run_refuse_finished(&tally->run.id);

	tuple = SPI_tuptable->vals[0];
	desc = SPI_tuptable->tupdesc;
	ss_counts_init(&counts, CurrentMemoryContext);
	ss_counts_load(&counts,
				   ss_plan_jsonb(CurrentMemoryContext, tuple, desc, 1),
				   ss_plan_jsonb(CurrentMemoryContext, tuple, desc, 2),
				   DatumGetInt64(SPI_getbinval(tuple, desc, 3, &isnull)));
	ss_counts_add(&counts, &tally->counts);

	values[1] = Int64GetDatum(ss_counts_total(&counts));
	values[2] = Int64GetDatum(ss_counts_states(&counts));
	values[3] = Int64GetDatum(ss_counts_skipped(&counts));
	values[4] = JsonbPGetDatum(ss_counts_messages(&counts));
	values[5] = JsonbPGetDatum(ss_counts_streams(&counts));
	values[6] = BoolGetDatum(tally->reached_state);
	(void) ss_plan_execute(SS_PLAN_RUN_COUNT, values, NULL, false);
}

/*
 * Write a tally, as the user who has brought its lines: at commit somebody
 * else may be the current user.
 */
static void
write_tally(SsTally *tally)
{
	Oid			userid;
	int			context;

	GetUserIdAndSecContext(&userid, &context);
	SetUserIdAndSecContext(tally->userid,
						   context | SECURITY_LOCAL_USERID_CHANGE);
	if (tally->state != NULL)
		write_state(tally);
	SPI_connect();
	add_to_row(tally);
	SPI_finish();
	SetUserIdAndSecContext(userid, context);
	tally->written_by = GetCurrentSubTransactionId();
}

/*
 * Write what the transaction has seen of a run to its row.
 */
void
ss_tally_write(const pg_uuid_t *id)
{
	for (SsTally *tally = tallies; tally != NULL; tally = tally->next)
	{
		if (tally->written_by == InvalidSubTransactionId &&
			memcmp(&tally->run.id, id, sizeof(pg_uuid_t)) == 0)
			write_tally(tally);
	}
}

static void
write_all(void)
{
	for (SsTally *tally = tallies; tally != NULL; tally = tally->next)
	{
		if (tally->written_by != InvalidSubTransactionId)
			continue;
		PushActiveSnapshot(GetTransactionSnapshot());
		write_tally(tally);
		PopActiveSnapshot();
	}
}

static void
on_transaction_event(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			write_all();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			tallies = NULL;		/* their contexts go with the transaction */
			break;
		default:
			break;
	}
}

static void
drop_tally(SsTally **link)
{
	SsTally    *tally = *link;

	*link = tally->next;
	MemoryContextDelete(tally->context);
}

static void
abort_subtransaction(SubTransactionId subid)
{
	SsTally   **link = &tallies;

	while (*link != NULL)
	{
		SsTally    *tally = *link;

		if (tally->subid == subid)
		{
			drop_tally(link);
			continue;
		}
		if (tally->written_by == subid)
			tally->written_by = InvalidSubTransactionId;
		link = &tally->next;
	}
}

/*
 * The parent's tally to which that of a committing subtransaction may be
 * added, or NULL.
 */
static SsTally *
find_parent(const SsTally *tally, SubTransactionId parent)
{
	if (tally->written_by != InvalidSubTransactionId || tally->state != NULL)
		return NULL;
	for (SsTally *other = tally->next; other != NULL; other = other->next)
	{
		if (other->subid == parent && other->userid == tally->userid &&
			other->written_by == InvalidSubTransactionId &&
			memcmp(&other->run.id, &tally->run.id, sizeof(pg_uuid_t)) == 0)
			return other;
	}
	return NULL;
}

static void
commit_subtransaction(SubTransactionId subid, SubTransactionId parent)
{
	SsTally   **link = &tallies;

	while (*link != NULL)
	{
		SsTally    *tally = *link;
		SsTally    *older;

		if (tally->written_by == subid)
			tally->written_by = parent;
		if (tally->subid == subid)
		{
			tally->subid = parent;
			older = find_parent(tally, parent);
			if (older != NULL)
			{
				ss_counts_add(&older->counts, &tally->counts);
				older->reached_state |= tally->reached_state;
			}
			if (older != NULL || tally->written_by == parent)
			{
				drop_tally(link);
				continue;
			}
		}
		link = &tally->next;
	}
}

static void
on_subtransaction_event(SubXactEvent event, SubTransactionId subid,
						SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		abort_subtransaction(subid);
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		commit_subtransaction(subid, parent);
}

/*
 * Called once, by _PG_init.
 */
void
ss_tally_init(void)
{
	RegisterXactCallback(on_transaction_event, NULL);
	RegisterSubXactCallback(on_subtransaction_event, NULL);
}
