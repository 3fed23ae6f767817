/*-------------------------------------------------------------------------
 *
 * state_calls.c
 *	  The SQL functions that read or change one stored state.
 *
 * Each takes its arguments, says what the parts of the state are to become,
 * and leaves the rest to store.c.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "args.h"
#include "claim.h"
#include "document.h"
#include "merge.h"
#include "miscadmin.h"
#include "plans.h"
#include "state_id.h"
#include "store.h"
#include "validate.h"

PG_FUNCTION_INFO_V1(singer_state_get);
PG_FUNCTION_INFO_V1(singer_state_set);
PG_FUNCTION_INFO_V1(singer_state_merge);
PG_FUNCTION_INFO_V1(singer_state_update);
PG_FUNCTION_INFO_V1(singer_state_promote);
PG_FUNCTION_INFO_V1(singer_state_clear);
PG_FUNCTION_INFO_V1(singer_state_copy);
PG_FUNCTION_INFO_V1(singer_state_move);
PG_FUNCTION_INFO_V1(singer_state_merge_from);

/* The parts that set and update were given; NULL stands for the empty object */
typedef struct Parts
{
	Jsonb	   *completed;
	Jsonb	   *partial;
} Parts;

/* What merge and update merge into the partial part */
typedef struct Patch
{
	Jsonb	   *document;
	bool		conform;		/* take the form of what is stored */
	bool		by_context;
} Patch;

/*
 * A document that may be left out: SQL NULL and {} are the same.
 */
static Jsonb *
optional_document_arg(FunctionCallInfo fcinfo, int argno, const char *name,
					  bool validate)
{
	if (PG_ARGISNULL(argno))
		return NULL;
	return ss_document_normalize(ss_document_arg(fcinfo, argno, name, validate));
}

static void
edit_set(SsState *state, void *arg)
{
	Parts	   *parts = arg;

	state->completed = (struct varlena *) parts->completed;
	state->partial = (struct varlena *) parts->partial;
}

static void
edit_merge(SsState *state, void *arg)
{
	Patch	   *patch = arg;
	Jsonb	   *base = ss_state_part(state->partial);
	Jsonb	   *document = patch->document;
	Jsonb	   *merged;

	if (patch->conform && (state->partial != NULL || state->completed != NULL))
		document = ss_document_conform(document, base != NULL ? base :
									   ss_state_part(state->completed));
	if (base == NULL)
		merged = ss_document_normalize(document);
	else
		merged = ss_document_normalize(ss_deep_merge(base, document,
													 patch->by_context));
	if (merged != base)
		state->partial = (struct varlena *) merged;
}

/*
 * get(state_id): the effective state; SQL NULL when there is no such state.
 */
Datum
singer_state_get(PG_FUNCTION_ARGS)
{
	text	   *state_id = ss_state_id_arg(fcinfo, 0);
	MemoryContext context = CurrentMemoryContext;
	MemoryContext spi_context;
	SsState		state;
	Jsonb	   *result = NULL;

	SPI_connect();
	ss_state_read(state_id, true, &state);
	if (state.exists)
	{
		spi_context = MemoryContextSwitchTo(context);
		result = ss_state_effective_copy(&state);
		MemoryContextSwitchTo(spi_context);
	}
	SPI_finish();

	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(result);
}

/*
 * set(state_id, completed_state, partial_state, if_version, token, validate,
 * allow_empty): replaces both parts; answers the version.
 */
Datum
singer_state_set(PG_FUNCTION_ARGS)
{
	bool		validate = ss_flag_arg(fcinfo, 5, "validate");
	SsWrite		write;
	Parts		parts;

	ss_write_init(&write, "set", ss_state_id_arg(fcinfo, 0));
	ss_write_condition(&write, fcinfo, 3, 4);
	write.allow_empty = ss_flag_arg(fcinfo, 6, "allow_empty");
	parts.completed = ss_document_normalize(ss_document_arg(fcinfo, 1,
															"completed_state",
															validate));
	parts.partial = optional_document_arg(fcinfo, 2, "partial_state", validate);

	PG_RETURN_INT64(ss_store_write(&write, edit_set, &parts));
}

/*
 * merge(state_id, partial_state, if_version, token, validate, by_context):
 * deep-merges into the partial part; answers the version.
 *
 * A document that was validated takes the form of what is stored, payload or
 * tap state: merged as it is, it would leave a mixture in which readers see
 * one half only.
 */
Datum
singer_state_merge(PG_FUNCTION_ARGS)
{
	SsWrite		write;
	Patch		patch;

	ss_write_init(&write, "merge", ss_state_id_arg(fcinfo, 0));
	ss_write_condition(&write, fcinfo, 2, 3);
	patch.conform = ss_flag_arg(fcinfo, 4, "validate");
	patch.by_context = ss_flag_arg(fcinfo, 5, "by_context");
	patch.document = ss_document_arg(fcinfo, 1, "partial_state",
									 patch.conform);
	write.allow_empty = true;	/* merging takes nothing away */

	PG_RETURN_INT64(ss_store_write(&write, edit_merge, &patch));
}

/*
 * update(state_id, partial_state, completed_state, if_version, token,
 * validate, allow_empty): Meltano's rule.  A completed state that is not
 * empty replaces both parts, otherwise the partial one is merged.
 */
Datum
singer_state_update(PG_FUNCTION_ARGS)
{
	bool		validate = ss_flag_arg(fcinfo, 5, "validate");
	SsWrite		write;
	Parts		parts;
	Patch		patch;

	ss_write_init(&write, "update", ss_state_id_arg(fcinfo, 0));
	ss_write_condition(&write, fcinfo, 3, 4);
	write.allow_empty = ss_flag_arg(fcinfo, 6, "allow_empty");
	if (PG_ARGISNULL(1) && PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("partial_state and completed_state must not both be null")));
	parts.partial = optional_document_arg(fcinfo, 1, "partial_state", validate);
	parts.completed = optional_document_arg(fcinfo, 2, "completed_state",
											validate);
	if (parts.completed != NULL)
		PG_RETURN_INT64(ss_store_write(&write, edit_set, &parts));

	patch.document = parts.partial ? parts.partial : ss_document_empty();
	patch.conform = validate;
	patch.by_context = false;
	write.allow_empty = true;
	PG_RETURN_INT64(ss_store_write(&write, edit_merge, &patch));
}

/*
 * promote(state_id, if_version, token): the effective state becomes the
 * completed one; answers the version.
 */
Datum
singer_state_promote(PG_FUNCTION_ARGS)
{
	SsWrite		write;

	ss_write_init(&write, "promote", ss_state_id_arg(fcinfo, 0));
	ss_write_condition(&write, fcinfo, 1, 2);
	write.must_exist = true;
	PG_RETURN_INT64(ss_store_write(&write, ss_store_edit_promote, NULL));
}

/*
 * clear(state_id, token, force): deletes the state; true if there was one.
 */
Datum
singer_state_clear(PG_FUNCTION_ARGS)
{
	bool		force = ss_flag_arg(fcinfo, 2, "force");
	SsWrite		write;
	SsClaim		claim;
	SsState		deleted;
	bool		found;

	PreventCommandIfReadOnly("clear()");
	ss_write_init(&write, force ? "clear (forced)" : "clear",
				  ss_state_id_arg(fcinfo, 0));
	ss_write_condition(&write, fcinfo, -1, 1);

	ss_claim_write(&claim, write.state_id,
				   write.has_token ? &write.token : NULL, force);
	SPI_connect();
	found = ss_state_delete(write.operation, write.state_id, &deleted);
	SPI_finish();
	ss_claim_release(&claim);
	PG_RETURN_BOOL(found);
}

/*
 * Give the target the source's parts, folded into a completed state on
 * demand.  Needs an SPI connection, to which the source belongs.
 */
static int64
write_target(SsWrite *write, const SsState *source, bool fold)
{
	Parts		parts;

	write->allow_empty = true;	/* whoever says overwrite means it */
	parts.completed = (Jsonb *) (fold ? (void *) ss_state_effective(source) :
								 (void *) source->completed);
	parts.partial = fold ? NULL : (Jsonb *) source->partial;
	return ss_store_write_claimed(write, edit_set, &parts);
}

/*
 * The version of a state that is copied or moved onto itself, where nothing
 * happens.
 */
static int64
own_version(text *state_id)
{
	SsState		state;

	SPI_connect();
	ss_state_read(state_id, false, &state);
	SPI_finish();
	if (!state.exists)
		ss_state_missing(state_id);
	return state.version;
}

/*
 * Copy a state.  Needs an SPI connection.
 */
static int64
copy_state(SsWrite *write, text *source_id, bool fold)
{
	SsClaim		claim;
	SsState		source;
	int64		version;

	ss_claim_write(&claim, write->state_id, NULL, false);
	ss_state_read(source_id, false, &source);
	if (!source.exists)
		ss_state_missing(source_id);
	version = write_target(write, &source, fold);
	ss_claim_release(&claim);
	return version;
}

/*
 * Delete the source of a move.  Needs an SPI connection, to which the result
 * belongs.
 */
static void
take_source(const SsWrite *write, text *source_id, SsState *source)
{
	SsClaim		claim;

	ss_claim_write(&claim, source_id, NULL, false);
	if (!ss_state_delete(write->operation, source_id, source))
		ss_state_missing(source_id);
	ss_claim_release(&claim);
}

/*
 * Give the target of a move what the source has, and lock its row also if it
 * has that already.  Needs an SPI connection, to which the source belongs.
 */
static int64
give_target(SsWrite *write, const SsState *source, bool fold)
{
	SsClaim		claim;
	Datum		values[2];
	int64		version;

	values[0] = PointerGetDatum(ss_namespace_current());
	values[1] = PointerGetDatum(write->state_id);

	ss_claim_write(&claim, write->state_id, NULL, false);
	(void) ss_plan_execute(SS_PLAN_STATE_TOUCH, values, NULL, false);
	version = write_target(write, source, fold);
	ss_claim_release(&claim);
	return version;
}

/*
 * Move a state.  Needs an SPI connection.
 *
 * As in a bulk call, state ids are taken in byte order, and each is claimed
 * only while its row is written: whoever held one claim while it waited for
 * the other's row could be what the writer of that row waits for.  A target
 * that comes first gets its row before the source is locked, and once more if
 * the source has changed until then.
 */
static int64
move_state(SsWrite *write, text *source_id, bool fold)
{
	SsState		source;
	SsState		seen;
	int64		version = 0;

	if (ss_state_id_compare(&write->state_id, &source_id) < 0)
	{
		ss_state_read(source_id, false, &seen);
		if (!seen.exists)
			ss_state_missing(source_id);
		version = give_target(write, &seen, fold);
		write->must_not_exist = false;
	}

	take_source(write, source_id, &source);
	if (version != 0 && ss_state_same_parts(&seen, &source))
		return version;
	return give_target(write, &source, fold);
}

/*
 * copy() and move() differ by what becomes of the source.
 */
static Datum
transfer(FunctionCallInfo fcinfo, const char *operation, bool keep_source)
{
	text	   *source_id = ss_state_id_arg(fcinfo, 0);
	text	   *target_id = ss_state_id_arg(fcinfo, 1);
	bool		fold = ss_flag_arg(fcinfo, 3, "fold");
	SsWrite		write;
	int64		version;

	PreventCommandIfReadOnly(psprintf("%s()", operation));
	ss_write_init(&write, operation, target_id);
	write.must_not_exist = !ss_flag_arg(fcinfo, 2, "overwrite");
	if (ss_state_id_compare(&source_id, &target_id) == 0)
		return Int64GetDatum(own_version(source_id));

	SPI_connect();
	version = keep_source ? copy_state(&write, source_id, fold) :
		move_state(&write, source_id, fold);
	SPI_finish();
	return Int64GetDatum(version);
}

/*
 * copy(source, target, overwrite, fold): both parts; answers the version of
 * the target.
 */
Datum
singer_state_copy(PG_FUNCTION_ARGS)
{
	return transfer(fcinfo, "copy", true);
}

/*
 * move(source, target, overwrite, fold): a copy that takes the source away,
 * in one step.
 */
Datum
singer_state_move(PG_FUNCTION_ARGS)
{
	return transfer(fcinfo, "move", false);
}

/*
 * merge_from(source, target): the effective state of one, merged as partial
 * into the other; answers the version of the target.
 */
Datum
singer_state_merge_from(PG_FUNCTION_ARGS)
{
	text	   *source_id = ss_state_id_arg(fcinfo, 0);
	SsWrite		write;
	SsClaim		claim;
	SsState		source;
	Patch		patch;
	int64		version;

	PreventCommandIfReadOnly("merge_from()");
	ss_write_init(&write, "merge_from", ss_state_id_arg(fcinfo, 1));
	write.allow_empty = true;
	ss_claim_write(&claim, write.state_id, NULL, false);
	SPI_connect();
	ss_state_read(source_id, false, &source);
	if (!source.exists)
		ss_state_missing(source_id);
	patch.document = ss_state_effective(&source);
	if (patch.document == NULL)
		patch.document = ss_document_empty();
	patch.conform = true;
	patch.by_context = false;
	version = ss_store_write_claimed(&write, edit_merge, &patch);
	SPI_finish();
	ss_claim_release(&claim);
	PG_RETURN_INT64(version);
}
