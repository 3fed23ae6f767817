/*-------------------------------------------------------------------------
 *
 * diff.c
 *	  Differences between two documents.
 *
 * One row for each changed key of a stream or partition.  Values differ if
 * their bytes do, as for the store: 1 and 1.0 are two ways to write a number,
 * and a document that was changed from one to the other has a difference.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "context.h"
#include "document.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/tuplestore.h"

/* A walk over the keys of two objects at once */
typedef struct PairWalk
{
	SsIterator	iterators[2];
	bool		present[2];		/* the walk is at a key of this side */
	bool		used[2];		/* its key was the last one answered */
	SsValue		keys[2];
	SsValue		values[2];
} PairWalk;

/* Where differences go, and the place in the documents that they are at */
typedef struct DiffState
{
	ReturnSetInfo *rsinfo;
	MemoryContext row_context;
	const SsValue *stream;		/* NULL beside the streams */
	const SsValue *context;		/* NULL beside the partitions */
} DiffState;

static const JsonbContainer empty_object = {JB_FOBJECT};

static void diff_bookmark(DiffState *state, const SsValue *old,
						  const SsValue *new);

static void
walk_init(PairWalk *walk, const JsonbContainer *old, const JsonbContainer *new)
{
	const JsonbContainer *sides[2] = {old, new};

	for (int i = 0; i < 2; i++)
	{
		ss_iterator_init(&walk->iterators[i],
						 sides[i] != NULL ? sides[i] : &empty_object);
		walk->used[i] = true;
	}
}

/*
 * The next key in the union of both objects.  Answers false at the end;
 * *old and *new are NULL where the side does not have the key.
 */
static bool
walk_next(PairWalk *walk, const SsValue **key,
		  const SsValue **old, const SsValue **new)
{
	int			difference;

	CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < 2; i++)
	{
		if (walk->used[i])
			walk->present[i] = ss_iterator_next(&walk->iterators[i],
												&walk->keys[i],
												&walk->values[i]);
	}
	if (!walk->present[0] && !walk->present[1])
		return false;

	if (!walk->present[0])
		difference = 1;
	else if (!walk->present[1])
		difference = -1;
	else
		difference = ss_key_compare(&walk->keys[0], &walk->keys[1]);
	walk->used[0] = difference <= 0;
	walk->used[1] = difference >= 0;
	*old = walk->used[0] ? &walk->values[0] : NULL;
	*new = walk->used[1] ? &walk->values[1] : NULL;
	*key = walk->used[0] ? &walk->keys[0] : &walk->keys[1];
	return true;
}

/*
 * Add the row of one difference; key is NULL if it is not inside an object.
 */
static void
add_row(DiffState *state, const SsValue *key,
		const SsValue *old, const SsValue *new)
{
	Datum		values[5];
	bool		nulls[5] = {state->stream == NULL, state->context == NULL,
	key == NULL, old == NULL, new == NULL};
	MemoryContext caller = MemoryContextSwitchTo(state->row_context);

	if (state->stream != NULL)
		values[0] = PointerGetDatum(ss_value_to_text(state->stream));
	if (state->context != NULL)
		values[1] = JsonbPGetDatum(ss_value_to_jsonb(state->context));
	if (key != NULL)
		values[2] = PointerGetDatum(ss_value_to_text(key));
	if (old != NULL)
		values[3] = JsonbPGetDatum(ss_value_to_jsonb(old));
	if (new != NULL)
		values[4] = JsonbPGetDatum(ss_value_to_jsonb(new));
	tuplestore_putvalues(state->rsinfo->setResult, state->rsinfo->setDesc,
						 values, nulls);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(state->row_context);
}

static inline bool
same(const SsValue *old, const SsValue *new)
{
	return old != NULL && new != NULL && ss_value_identical(old, new);
}

static inline bool
has_keys(const SsValue *value)
{
	return value != NULL && ss_value_is_object(value) &&
		JsonContainerSize(ss_value_container(value)) > 0;
}

static const JsonbContainer *
object_or_null(const SsValue *value)
{
	return value != NULL && ss_value_is_object(value) ?
		ss_value_container(value) : NULL;
}

/*
 * Is there nothing in this partition but its context?
 */
static bool
is_bare_partition(const SsValue *partition)
{
	SsValue		context;

	return ss_context_of(partition, &context) &&
		JsonContainerSize(ss_value_container(partition)) == 1;
}

static void
diff_partition(DiffState *state, const SsValue *context,
			   const SsValue *old, const SsValue *new)
{
	state->context = context;
	if ((old == NULL && is_bare_partition(new)) ||
		(new == NULL && is_bare_partition(old)))
		add_row(state, NULL, old, new);
	else
		diff_bookmark(state, old, new);
	state->context = NULL;
}

/*
 * The differences of the old partitions, or of those among the new ones that
 * have no old counterpart.
 */
static void
diff_side(DiffState *state, const JsonbContainer *side, bool is_old,
		  const JsonbContainer *other, SsContextIndex *other_index)
{
	SsIterator	iterator;
	SsValue		key,
				partition,
				context,
				match;
	uint32		position;

	ss_iterator_init(&iterator, side);
	while (ss_iterator_next(&iterator, &key, &partition))
	{
		CHECK_FOR_INTERRUPTS();
		ss_context_of(&partition, &context);
		if (!ss_context_index_find(other_index, &context, &position))
			diff_partition(state, &context, is_old ? &partition : NULL,
						   is_old ? NULL : &partition);
		else if (is_old)
		{
			ss_array_get(other, position, &match);
			diff_partition(state, &context, &partition, &match);
		}
	}
}

/*
 * The differences of two lists of partitions, of which one may be absent.
 * False, with nothing done, if these are not well-formed lists.
 */
static bool
diff_partitions(DiffState *state, const SsValue *old, const SsValue *new)
{
	static const JsonbContainer empty_array = {JB_FARRAY};
	const SsValue *sides[2] = {old, new};
	const JsonbContainer *lists[2];
	SsContextIndex *indexes[2];

	for (int i = 0; i < 2; i++)
	{
		if (sides[i] != NULL && !ss_value_is_array(sides[i]))
			return false;
		lists[i] = sides[i] ? ss_value_container(sides[i]) : &empty_array;
		indexes[i] = ss_context_index_partitions(lists[i], 0);
		if (indexes[i] == NULL)
			return false;
	}
	if (JsonContainerSize(lists[0]) == 0 && JsonContainerSize(lists[1]) == 0)
		return false;

	diff_side(state, lists[0], true, lists[1], indexes[1]);
	diff_side(state, lists[1], false, lists[0], indexes[0]);
	return true;
}

/*
 * The differences of one stream or partition.  NULL is one that is not there.
 */
static void
diff_bookmark(DiffState *state, const SsValue *old, const SsValue *new)
{
	PairWalk	walk;
	const SsValue *key,
			   *old_value,
			   *new_value;

	if (same(old, new))
		return;
	if ((old != NULL && !ss_value_is_object(old)) ||
		(new != NULL && !ss_value_is_object(new)) ||
		(!has_keys(old) && !has_keys(new)))
	{
		add_row(state, NULL, old, new);
		return;
	}

	walk_init(&walk, object_or_null(old), object_or_null(new));
	while (walk_next(&walk, &key, &old_value, &new_value))
	{
		if (same(old_value, new_value) ||
			(state->context != NULL && ss_value_identical(key, SS_STRING("context"))))
			continue;
		if (state->context == NULL && ss_value_identical(key, SS_STRING("partitions")) &&
			diff_partitions(state, old_value, new_value))
			continue;
		add_row(state, key, old_value, new_value);
	}
}

static void
diff_streams(DiffState *state, const SsDocument *old, const SsDocument *new)
{
	PairWalk	walk;
	const SsValue *stream,
			   *old_value,
			   *new_value;

	walk_init(&walk, old->streams, new->streams);
	while (walk_next(&walk, &stream, &old_value, &new_value))
	{
		bool		reserved = ss_document_is_reserved_key(stream);

		if (old->flat && reserved)
			old_value = NULL;
		if (new->flat && reserved)
			new_value = NULL;
		if (old_value == NULL && new_value == NULL)
			continue;
		state->stream = stream;
		diff_bookmark(state, old_value, new_value);
		state->stream = NULL;
	}
}

/*
 * Does this key of a tap state hold its streams, or is it one?
 */
static bool
is_stream_key(const SsDocument *document, const SsValue *key)
{
	if (document->flat)
		return !ss_document_is_reserved_key(key);
	return document->streams != NULL && ss_value_identical(key, SS_STRING("bookmarks"));
}

/*
 * The differences beside the streams, such as currently_syncing.
 */
static void
diff_rest(DiffState *state, const SsDocument *old, const SsDocument *new)
{
	PairWalk	walk;
	const SsValue *key,
			   *old_value,
			   *new_value;

	walk_init(&walk, old->tap_state, new->tap_state);
	while (walk_next(&walk, &key, &old_value, &new_value))
	{
		if (old_value != NULL && is_stream_key(old, key))
			old_value = NULL;
		if (new_value != NULL && is_stream_key(new, key))
			new_value = NULL;
		if ((old_value != NULL || new_value != NULL) &&
			!same(old_value, new_value))
			add_row(state, key, old_value, new_value);
	}
}

/*
 * Documents of which one is no object: they differ as a whole.
 */
static void
diff_roots(DiffState *state, Jsonb *old, Jsonb *new)
{
	SsValue		old_value,
				new_value;

	if (old != NULL)
		old_value = ss_value_from_jsonb(old);
	if (new != NULL)
		new_value = ss_value_from_jsonb(new);
	if (old == NULL || new == NULL || !ss_value_identical(&old_value, &new_value))
		add_row(state, NULL, old != NULL ? &old_value : NULL,
				new != NULL ? &new_value : NULL);
}

PG_FUNCTION_INFO_V1(singer_state_diff_states);

/*
 * diff_states(a, b): an SQL NULL is a document that is not there.
 */
Datum
singer_state_diff_states(PG_FUNCTION_ARGS)
{
	Jsonb	   *old = PG_ARGISNULL(0) ? NULL : PG_GETARG_JSONB_P(0);
	Jsonb	   *new = PG_ARGISNULL(1) ? NULL : PG_GETARG_JSONB_P(1);
	SsDocument	documents[2] = {0};
	DiffState	state = {0};

	InitMaterializedSRF(fcinfo, 0);
	state.rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	state.row_context = AllocSetContextCreate(CurrentMemoryContext,
											  "singer_state difference",
											  ALLOCSET_DEFAULT_SIZES);
	if ((old != NULL && !JB_ROOT_IS_OBJECT(old)) ||
		(new != NULL && !JB_ROOT_IS_OBJECT(new)))
	{
		diff_roots(&state, old, new);
		return (Datum) 0;
	}

	if (old != NULL)
		documents[0] = ss_document_open(old);
	if (new != NULL)
		documents[1] = ss_document_open(new);
	diff_streams(&state, &documents[0], &documents[1]);
	diff_rest(&state, &documents[0], &documents[1]);
	return (Datum) 0;
}
