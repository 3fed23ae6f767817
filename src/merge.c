/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  Deep merge of two documents.
 *
 * The rule is Meltano's: objects merge by key, anything else replaces what
 * was there, arrays as a whole, null too; an empty object clears nothing, be
 * it an object that it meets or not.  Where Meltano fails, when an object
 * with keys meets something else, it replaces that.  So merging is total, and
 * merging the same patch again changes nothing.
 *
 * Merging by context takes the lists of partitions apart: those with equal
 * contexts merge, the others are appended.  It needs lists in which each
 * element has a context of its own; a list that is not like that is replaced
 * like any array.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "context.h"
#include "json.h"
#include "merge.h"
#include "miscadmin.h"

static void merge_object(SsEdit *edit, const JsonbContainer *patch,
						 bool by_context);
static void merge_value(SsEdit *edit, uint32 position, const SsValue *key,
						const SsValue *old, const SsValue *new,
						bool by_context);

static inline bool
is_empty_object(const SsValue *value)
{
	return ss_value_is_object(value) &&
		JsonContainerSize(ss_value_container(value)) == 0;
}

/*
 * For each element of a list of partitions, the one of the patch with an equal
 * context; those of the patch that have no counterpart follow.  NULL if a
 * list is not well-formed.
 */
static SsValue *
match_partitions(const JsonbContainer *base, const JsonbContainer *patch,
				 uint32 *count)
{
	SsContextIndex *index = ss_context_index_partitions(base,
														JsonContainerSize(patch));
	SsValue    *matches;
	SsIterator	iterator;
	SsValue		key,
				partition,
				context;

	*count = JsonContainerSize(base);
	if (index == NULL)
		return NULL;

	matches = palloc_extended((Size) (*count + JsonContainerSize(patch)) *
							  sizeof(SsValue),
							  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	ss_iterator_init(&iterator, patch);
	while (ss_iterator_next(&iterator, &key, &partition))
	{
		uint32		position = *count;

		CHECK_FOR_INTERRUPTS();
		if (!ss_context_of(&partition, &context))
			return NULL;
		if (ss_context_index_add(index, &context, &position))
			(*count)++;
		if (matches[position].data != NULL)
			return NULL;
		matches[position] = partition;
	}
	return matches;
}

/*
 * Record in edit what merging a list of partitions into its base changes.
 * False if a list is not well-formed.
 */
static bool
merge_partitions(SsEdit *edit, const JsonbContainer *patch)
{
	uint32		count;
	SsValue    *matches = match_partitions(edit->base, patch, &count);
	SsIterator	iterator;
	SsValue		key,
				old;

	if (matches == NULL)
		return false;

	ss_iterator_init(&iterator, edit->base);
	for (uint32 i = 0; i < count; i++)
	{
		if (!ss_iterator_next(&iterator, &key, &old))
			ss_edit_change(edit, iterator.count, true, NULL, &matches[i]);
		else if (matches[i].data != NULL)
			merge_value(edit, i, NULL, &old, &matches[i], true);
	}
	return true;
}

static bool
is_partitions_key(const SsValue *key)
{
	return key != NULL && ss_value_identical(key, SS_STRING("partitions"));
}

/*
 * Merge a value of the patch with the one that the base has in its place.
 */
static void
merge_value(SsEdit *edit, uint32 position, const SsValue *key,
			const SsValue *old, const SsValue *new, bool by_context)
{
	SsEdit	   *child = NULL;
	SsValue		merged;

	if (ss_value_identical(old, new) || is_empty_object(new))
		return;

	if (ss_value_is_object(old) && ss_value_is_object(new))
	{
		child = ss_edit_create(ss_value_container(old), JB_FOBJECT);
		merge_object(child, ss_value_container(new), by_context);
	}
	else if (by_context && is_partitions_key(key) &&
			 ss_value_is_array(old) && ss_value_is_array(new))
	{
		child = ss_edit_create(ss_value_container(old), JB_FARRAY);
		if (!merge_partitions(child, ss_value_container(new)))
			child = NULL;
	}

	if (child == NULL)
		ss_edit_change(edit, position, false, key, new);
	else if (child->nchanges > 0)
	{
		merged = ss_value_from_edit(child);
		ss_edit_change(edit, position, false, key, &merged);
	}
}

/*
 * Record in edit what merging an object into its base changes.
 */
static void
merge_object(SsEdit *edit, const JsonbContainer *patch, bool by_context)
{
	SsIterator	iterator;
	SsValue		key,
				new,
				old;
	uint32		position = 0;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	ss_iterator_init(&iterator, patch);
	while (ss_iterator_next(&iterator, &key, &new))
	{
		if (ss_object_find(edit->base, &position, &key, &old))
			merge_value(edit, position++, &key, &old, &new, by_context);
		else
			ss_edit_change(edit, position, true, &key, &new);
	}
}

/*
 * Deep-merge patch into base.  Answers base itself, not a copy, if the patch
 * changes nothing, and may answer patch itself if it replaces all.
 */
Jsonb *
ss_deep_merge(Jsonb *base, Jsonb *patch, bool by_context)
{
	SsValue		old = ss_value_from_jsonb(base);
	SsValue		new = ss_value_from_jsonb(patch);
	SsEdit	   *edit;

	if (ss_value_identical(&old, &new) || is_empty_object(&new))
		return base;
	if (!ss_value_is_object(&old) || !ss_value_is_object(&new))
		return patch;

	edit = ss_edit_create(&base->root, JB_FOBJECT);
	merge_object(edit, &patch->root, by_context);
	return ss_edit_finish(edit, base);
}

PG_FUNCTION_INFO_V1(singer_state_deep_merge);

Datum
singer_state_deep_merge(PG_FUNCTION_ARGS)
{
	Jsonb	   *base = PG_GETARG_JSONB_P(0);
	Jsonb	   *patch = PG_GETARG_JSONB_P(1);
	bool		by_context = PG_NARGS() > 2 && PG_GETARG_BOOL(2);

	PG_RETURN_JSONB_P(ss_deep_merge(base, patch, by_context));
}
