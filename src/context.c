/*-------------------------------------------------------------------------
 *
 * context.c
 *	  Partitions of a stream, told apart by their contexts.
 *
 * Contexts are equal as jsonb is: the order of keys is nothing, 1 and 1.0 are
 * equal, 1 and "1" are not.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "common/hashfn.h"
#include "context.h"
#include "miscadmin.h"

/* A slot of a context index; it is free if the context has no data. */
typedef struct ContextSlot
{
	SsValue		context;
	uint32		hash;
	uint32		position;
} ContextSlot;

/* A hash table with open addressing, at most half full */
struct SsContextIndex
{
	uint32		mask;			/* number of slots, a power of two, minus one */
	ContextSlot *slots;
};

/*
 * The context of a partition.  False if it has none.
 */
bool
ss_context_of(const SsValue *partition, SsValue *context)
{
	return ss_value_is_object(partition) &&
		ss_object_get(ss_value_container(partition), SS_STRING("context"), context);
}

static void
report_duplicate(const SsValue *context)
{
	Jsonb	   *jsonb = ss_value_to_jsonb(context);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("state has more than one partition for a context"),
			 errdetail("The context is %s.",
					   JsonbToCString(NULL, &jsonb->root, VARSIZE(jsonb))),
			 errhint("Use check_state() to find all of them.")));
}

/*
 * Is there a number in a value?  If not, what is equal to it is identical.
 */
static bool
has_number(const SsValue *value)
{
	SsIterator	iterator;
	SsValue		key,
				child;

	if (!ss_value_is_container(value))
		return value->type == JENTRY_ISNUMERIC;
	check_stack_depth();
	ss_iterator_init(&iterator, ss_value_container(value));
	while (ss_iterator_next(&iterator, &key, &child))
	{
		if (has_number(&child))
			return true;
	}
	return false;
}

/*
 * Find the partition of a context.  Errors if there are two.
 *
 * All partitions have to be looked at, so this is what a change of a single
 * one costs besides the copy.
 */
bool
ss_context_find(const JsonbContainer *partitions, const SsValue *context,
				uint32 *position, SsValue *partition)
{
	SsIterator	iterator;
	SsValue		key,
				candidate,
				its_context;
	bool		exact = !has_number(context);
	bool		found = false;

	ss_iterator_init(&iterator, partitions);
	while (ss_iterator_next(&iterator, &key, &candidate))
	{
		if (!ss_context_of(&candidate, &its_context) ||
			!(exact ? ss_value_identical(&its_context, context) :
			  ss_value_equal(&its_context, context)))
			continue;
		if (found)
			report_duplicate(context);
		found = true;
		*position = iterator.index - 1;
		*partition = candidate;
	}
	return found;
}

/*
 * Equal values have equal hashes, however their numbers are written.
 */
static uint32
hash_context(const SsValue *value)
{
	SsIterator	iterator;
	SsValue		key,
				child;
	uint32		hash;

	if (value->type == JENTRY_ISNUMERIC)
		return DatumGetUInt32(DirectFunctionCall1(hash_numeric,
												  PointerGetDatum(value->data)));
	if (!ss_value_is_container(value))
		return hash_bytes((const unsigned char *) value->data, value->len) ^
			value->type;

	check_stack_depth();
	hash = ss_value_container(value)->header;
	ss_iterator_init(&iterator, ss_value_container(value));
	while (ss_iterator_next(&iterator, &key, &child))
	{
		hash = hash_combine(hash, hash_bytes((const unsigned char *) key.data,
											 key.len));
		hash = hash_combine(hash, hash_context(&child));
	}
	return hash;
}

/*
 * An index with room for so many contexts, each with a position.  It points
 * into the documents that the contexts lie in.
 */
SsContextIndex *
ss_context_index_create(uint32 size)
{
	SsContextIndex *index = palloc(sizeof(SsContextIndex));
	Size		slots = 16;

	while (slots < 2 * (Size) size)
		slots *= 2;
	index->mask = slots - 1;
	index->slots = palloc_extended(slots * sizeof(ContextSlot),
								   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	return index;
}

/*
 * The slot of a context: the one that has an equal one, else a free one.
 */
static ContextSlot *
find_slot(SsContextIndex *index, const SsValue *context, uint32 hash)
{
	for (uint32 i = hash & index->mask;; i = (i + 1) & index->mask)
	{
		ContextSlot *slot = &index->slots[i];

		if (slot->context.data == NULL ||
			(slot->hash == hash && ss_value_equal(&slot->context, context)))
			return slot;
	}
}

/*
 * Look up the position of a context.
 */
bool
ss_context_index_find(SsContextIndex *index, const SsValue *context,
					  uint32 *position)
{
	ContextSlot *slot = find_slot(index, context, hash_context(context));

	if (slot->context.data == NULL)
		return false;
	*position = slot->position;
	return true;
}

/*
 * Add a context with its position.  False if an equal one is there already;
 * *position is that one's then.
 */
bool
ss_context_index_add(SsContextIndex *index, const SsValue *context,
					 uint32 *position)
{
	uint32		hash = hash_context(context);
	ContextSlot *slot = find_slot(index, context, hash);

	if (slot->context.data != NULL)
	{
		*position = slot->position;
		return false;
	}
	slot->context = *context;
	slot->hash = hash;
	slot->position = *position;
	return true;
}

/*
 * Index a list of partitions, with room for more.  NULL unless each of them
 * has a context of its own.
 */
SsContextIndex *
ss_context_index_partitions(const JsonbContainer *partitions, uint32 more)
{
	SsContextIndex *index;
	SsIterator	iterator;
	SsValue		key,
				partition,
				context;

	index = ss_context_index_create(JsonContainerSize(partitions) + more);
	ss_iterator_init(&iterator, partitions);
	while (ss_iterator_next(&iterator, &key, &partition))
	{
		uint32		position = iterator.index - 1;

		CHECK_FOR_INTERRUPTS();
		if (!ss_context_of(&partition, &context) ||
			!ss_context_index_add(index, &context, &position))
			return NULL;
	}
	return index;
}
