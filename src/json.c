/*-------------------------------------------------------------------------
 *
 * json.c
 *	  Reading jsonb documents in place, and changing single places in them.
 *
 * The server's own way to change a document unpacks every container and packs
 * it again.  Here whatever did not change is copied as bytes: the children of
 * a container lie one after the other, so that a run of them between two
 * changes is one memcpy and a loop over their JEntries.  Two things in the
 * format stand in the way:
 *
 * - Numerics and containers are aligned to four bytes, by padding that counts
 *   as part of the child.  A run may be copied as it is once its offset agrees
 *   with its old one modulo four; it does so after the first aligned child at
 *   the latest, and up to there children are copied one by one.
 * - Every JB_OFFSET_STRIDE'th JEntry holds an offset and not a length.
 *
 * The result is canonical: byte for byte what the server makes of the same
 * value.  So documents are equal if their bytes are, which the store relies
 * on.  (The reverse holds but for numbers: 1 and 1.0 are equal and differ.)
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "json.h"
#include "miscadmin.h"
#include "utils/numeric.h"

/* Where a container is being written. */
typedef struct Target
{
	JEntry	   *entries;
	uint32		index;			/* of the child that comes next */
	char	   *data;			/* where the children's data begins */
} Target;

/* What a JEntry, a changed child's padding and that of the run after it take */
#define CHANGE_OVERHEAD (2 * sizeof(JEntry) + 3 * (ALIGNOF_INT - 1))

/* An object of up to so many keys is searched from its beginning on. */
#define SMALL_OBJECT 8

static char *write_edit(char *end, const SsEdit *edit);

/* ---------------------------------------------------------------------------
 * Reading
 * ---------------------------------------------------------------------------
 */

/*
 * The number of JEntries of a container: an object has two for each pair.
 */
static inline uint32
entry_count(const JsonbContainer *container)
{
	uint32		count = JsonContainerSize(container);

	return JsonContainerIsObject(container) ? 2 * count : count;
}

static inline const char *
container_data(const JsonbContainer *container)
{
	return (const char *) &container->children[entry_count(container)];
}

/*
 * Fill in the child that has the given JEntry and lies at [offset, end) in
 * the data of its container, padding included.
 */
static inline void
fill_value(SsValue *value, JEntry entry, const char *data,
		   uint32 offset, uint32 end)
{
	value->type = entry & JENTRY_TYPEMASK;
	value->edit = NULL;
	if (value->type == JENTRY_ISNUMERIC || value->type == JENTRY_ISCONTAINER)
		offset = INTALIGN(offset);
	value->data = data + offset;
	value->len = end - offset;
}

static inline void
fill_child(SsValue *value, const JsonbContainer *container, uint32 index)
{
	uint32		offset = getJsonbOffset(container, index);

	fill_value(value, container->children[index], container_data(container),
			   offset, offset + getJsonbLength(container, index));
}

/*
 * The whole document as a value.
 */
SsValue
ss_value_from_jsonb(Jsonb *jsonb)
{
	SsValue		value = {0};

	if (JB_ROOT_IS_SCALAR(jsonb))
		fill_child(&value, &jsonb->root, 0);
	else
	{
		value.type = JENTRY_ISCONTAINER;
		value.data = (const char *) &jsonb->root;
		value.len = VARSIZE(jsonb) - VARHDRSZ;
	}
	return value;
}

/*
 * A JSON string.  The bytes are not copied.
 */
SsValue
ss_value_from_string(const char *string, int len)
{
	SsValue		value = {0};

	value.type = JENTRY_ISSTRING;
	value.data = string;
	value.len = len;
	return value;
}

/*
 * A text as a JSON string.  The bytes are not copied.
 */
SsValue
ss_value_from_text(const text *string)
{
	return ss_value_from_string(VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string));
}

/*
 * The bytes of a string as a text of its own.
 */
text *
ss_value_to_text(const SsValue *value)
{
	return cstring_to_text_with_len(value->data, value->len);
}

/*
 * A new container that an edit makes.
 */
SsValue
ss_value_from_edit(SsEdit *edit)
{
	SsValue		value = {0};

	value.type = JENTRY_ISCONTAINER;
	value.edit = edit;
	return value;
}

SsValue
ss_value_null(void)
{
	SsValue		value = {0};

	value.type = JENTRY_ISNULL;
	value.data = "";
	return value;
}

SsValue
ss_value_empty_object(void)
{
	static const uint32 empty = JB_FOBJECT;
	SsValue		value = {0};

	value.type = JENTRY_ISCONTAINER;
	value.data = (const char *) &empty;
	value.len = sizeof(empty);
	return value;
}

/*
 * Are the two the same bytes?  So they are if nothing but a number may be
 * equal and written otherwise.
 */
bool
ss_value_identical(const SsValue *a, const SsValue *b)
{
	return a->type == b->type && a->len == b->len &&
		memcmp(a->data, b->data, a->len) == 0;
}

/*
 * Are the two equal as jsonb?
 */
bool
ss_value_equal(const SsValue *a, const SsValue *b)
{
	SsIterator	left,
				right;
	SsValue		left_key,
				right_key,
				left_value,
				right_value;

	if (ss_value_identical(a, b))
		return true;
	if (a->type != b->type)
		return false;
	if (a->type == JENTRY_ISNUMERIC)
		return DatumGetBool(DirectFunctionCall2(numeric_eq,
												PointerGetDatum(a->data),
												PointerGetDatum(b->data)));
	if (!ss_value_is_container(a) ||
		ss_value_container(a)->header != ss_value_container(b)->header)
		return false;

	check_stack_depth();
	ss_iterator_init(&left, ss_value_container(a));
	ss_iterator_init(&right, ss_value_container(b));
	while (ss_iterator_next(&left, &left_key, &left_value) &&
		   ss_iterator_next(&right, &right_key, &right_value))
	{
		if (!ss_value_identical(&left_key, &right_key) ||
			!ss_value_equal(&left_value, &right_value))
			return false;
	}
	return true;
}

/*
 * Would Python take it for true?  The Singer SDK skips what is not.
 */
bool
ss_value_is_truthy(const SsValue *value)
{
	switch (value->type)
	{
		case JENTRY_ISSTRING:
			return value->len > 0;
		case JENTRY_ISNUMERIC:
			return DatumGetBool(DirectFunctionCall2(numeric_ne,
													PointerGetDatum(value->data),
													DirectFunctionCall1(int4_numeric,
																		Int32GetDatum(0))));
		case JENTRY_ISCONTAINER:
			return JsonContainerSize(ss_value_container(value)) > 0;
		default:
			return value->type == JENTRY_ISBOOL_TRUE;
	}
}

/*
 * Order of the keys of an object: the shorter first, then by bytes.
 */
int
ss_key_compare(const SsValue *a, const SsValue *b)
{
	if (a->len != b->len)
		return a->len > b->len ? 1 : -1;
	return memcmp(a->data, b->data, a->len);
}

static inline int
compare_child_key(const JsonbContainer *object, uint32 index,
				  const SsValue *key)
{
	uint32		len = getJsonbLength(object, index);

	if (len != key->len)
		return len > key->len ? 1 : -1;
	return memcmp(container_data(object) + getJsonbOffset(object, index),
				  key->data, len);
}

/*
 * Find a key of an object, from *position on.  True, with its value, if it is
 * there; *position is where it is, or where it would have to be inserted.
 *
 * The key at *position itself is tried first, since that is where the key is
 * when one object is searched for the keys of another in their order.
 */
bool
ss_object_find(const JsonbContainer *object, uint32 *position,
			   const SsValue *key, SsValue *value)
{
	uint32		count = JsonContainerSize(object);
	uint32		low = *position;
	uint32		high = count;
	uint32		middle = low;

	while (low < high)
	{
		int			difference = compare_child_key(object, middle, key);

		if (difference == 0)
		{
			*position = middle;
			fill_child(value, object, count + middle);
			return true;
		}
		if (difference < 0)
			low = middle + 1;
		else
			high = middle;
		middle = low + (high - low) / 2;
	}

	*position = low;
	return false;
}

/*
 * Look up a key in an object of few keys, where one pass over the JEntries
 * from their beginning is faster than a search that finds each offset anew.
 */
static bool
get_from_small(const JsonbContainer *object, const SsValue *key, SsValue *value)
{
	uint32		count = JsonContainerSize(object);
	const char *data = container_data(object);
	uint32		offset = 0;
	uint32		found = count;

	for (uint32 i = 0; i < count; i++)
	{
		uint32		start = offset;

		JBE_ADVANCE_OFFSET(offset, object->children[i]);
		if (offset - start == key->len &&
			memcmp(data + start, key->data, key->len) == 0)
			found = i;
	}
	if (found == count)
		return false;

	for (uint32 i = count; i < count + found; i++)
		JBE_ADVANCE_OFFSET(offset, object->children[i]);
	fill_value(value, object->children[count + found], data, offset,
			   offset + getJsonbLength(object, count + found));
	return true;
}

/*
 * Look up a key.  False if it is not there, or if this is no object.
 */
bool
ss_object_get(const JsonbContainer *object, const SsValue *key,
			  SsValue *value)
{
	uint32		position = 0;

	if (!JsonContainerIsObject(object))
		return false;
	if (JsonContainerSize(object) <= SMALL_OBJECT)
		return get_from_small(object, key, value);
	return ss_object_find(object, &position, key, value);
}

/*
 * The element of an array.  False if it is not there, or if this is no array.
 */
bool
ss_array_get(const JsonbContainer *array, uint32 index, SsValue *value)
{
	if (!JsonContainerIsArray(array) || index >= JsonContainerSize(array))
		return false;
	fill_child(value, array, index);
	return true;
}

void
ss_iterator_init(SsIterator *iterator, const JsonbContainer *container)
{
	iterator->container = container;
	iterator->data = container_data(container);
	iterator->index = 0;
	iterator->count = JsonContainerSize(container);
	iterator->key_offset = 0;
	iterator->value_offset = JsonContainerIsObject(container) ?
		getJsonbOffset(container, iterator->count) : 0;
}

/*
 * The next child.  The elements of an array come with empty keys.
 */
bool
ss_iterator_next(SsIterator *iterator, SsValue *key, SsValue *value)
{
	const JsonbContainer *container = iterator->container;
	uint32		index = iterator->index;
	uint32		start;

	if (index >= iterator->count)
		return false;

	start = iterator->key_offset;
	if (JsonContainerIsObject(container))
	{
		JBE_ADVANCE_OFFSET(iterator->key_offset, container->children[index]);
		index += iterator->count;
	}
	fill_value(key, JENTRY_ISSTRING, iterator->data,
			   start, iterator->key_offset);

	start = iterator->value_offset;
	JBE_ADVANCE_OFFSET(iterator->value_offset, container->children[index]);
	fill_value(value, container->children[index], iterator->data,
			   start, iterator->value_offset);

	iterator->index++;
	return true;
}

/* ---------------------------------------------------------------------------
 * Recording changes
 * ---------------------------------------------------------------------------
 */

/*
 * An edit of a container, or of a new one of the given kind (JB_FOBJECT or
 * JB_FARRAY) if base is NULL.
 */
SsEdit *
ss_edit_create(const JsonbContainer *base, uint32 kind)
{
	SsEdit	   *edit = palloc0(sizeof(SsEdit));

	edit->base = base;
	edit->kind = kind;
	return edit;
}

/*
 * Make room for a change at an index of the list.
 */
static SsChange *
open_change(SsEdit *edit, int index)
{
	SsChange   *change;

	if (edit->nchanges == edit->maxchanges)
	{
		edit->maxchanges = edit->maxchanges == 0 ? 4 : 2 * edit->maxchanges;
		if (edit->changes == NULL)
			edit->changes = palloc(edit->maxchanges * sizeof(SsChange));
		else
			edit->changes = repalloc_huge(edit->changes,
										  edit->maxchanges * sizeof(SsChange));
	}

	change = &edit->changes[index];
	memmove(change + 1, change, (edit->nchanges - index) * sizeof(SsChange));
	edit->nchanges++;
	memset(change, 0, sizeof(SsChange));
	return change;
}

/*
 * Record a change after all the others: callers who walk over the children
 * in their order need no search.
 */
void
ss_edit_change(SsEdit *edit, uint32 position, bool inserted,
			   const SsValue *key, const SsValue *value)
{
	SsChange   *change = open_change(edit, edit->nchanges);

	change->position = position;
	change->inserted = inserted;
	if (key != NULL)
		change->key = *key;
	change->value = *value;
}

/*
 * Find the change of a key.  NULL if there is none; *index is its place in the
 * list, or where it has to go.
 */
static SsChange *
find_change(const SsEdit *edit, const SsValue *key, int *index)
{
	for (*index = edit->nchanges; *index > 0; (*index)--)
	{
		SsChange   *change = &edit->changes[*index - 1];
		int			difference = ss_key_compare(&change->key, key);

		if (difference == 0)
		{
			(*index)--;
			return change;
		}
		if (difference < 0)
			break;
	}
	return NULL;
}

/*
 * Look up a key, as the edit leaves it.
 */
bool
ss_edit_get(const SsEdit *edit, const SsValue *key, SsValue *value)
{
	int			index;
	SsChange   *change = find_change(edit, key, &index);

	if (change == NULL)
		return edit->base != NULL && ss_object_get(edit->base, key, value);
	*value = change->value;
	return !change->removed;
}

/*
 * Set a key.  Setting what is there already is no change.
 */
void
ss_edit_set(SsEdit *edit, const SsValue *key, const SsValue *value)
{
	int			index;
	uint32		position = 0;
	bool		found;
	SsValue		old;
	SsChange   *change = find_change(edit, key, &index);

	if (change == NULL)
	{
		found = edit->base != NULL &&
			ss_object_find(edit->base, &position, key, &old);
		if (found && value->edit == NULL && ss_value_identical(&old, value))
			return;
		change = open_change(edit, index);
		change->position = position;
		change->inserted = !found;
		change->key = *key;
	}
	change->removed = false;
	change->value = *value;
}

/*
 * Remove a key, if it is there.
 */
void
ss_edit_remove(SsEdit *edit, const SsValue *key)
{
	int			index;
	uint32		position = 0;
	SsValue		old;
	SsChange   *change = find_change(edit, key, &index);

	if (change != NULL && change->inserted)
	{
		edit->nchanges--;
		memmove(change, change + 1, (edit->nchanges - index) * sizeof(SsChange));
		return;
	}
	if (change == NULL)
	{
		if (edit->base == NULL ||
			!ss_object_find(edit->base, &position, key, &old))
			return;
		change = open_change(edit, index);
		change->position = position;
		change->key = *key;
	}
	change->removed = true;
	change->value = ss_value_null();
}

/*
 * Put a new, empty container of a kind under a key.
 */
SsEdit *
ss_edit_renew(SsEdit *edit, const SsValue *key, uint32 kind)
{
	SsValue		value = ss_value_from_edit(ss_edit_create(NULL, kind));

	ss_edit_set(edit, key, &value);
	return value.edit;
}

/*
 * Open the container of a kind that is under a key for changes.  If there is
 * none, or JSON null, makes one; if something else is there, answers NULL.
 */
SsEdit *
ss_edit_open(SsEdit *edit, const SsValue *key, uint32 kind)
{
	SsValue		value;
	SsValue		opened;
	int			index;

	if (!ss_edit_get(edit, key, &value) || ss_value_is_null(&value))
		return ss_edit_renew(edit, key, kind);
	if (value.edit != NULL)
		return value.edit->kind == kind ? value.edit : NULL;
	if (!ss_value_is_container(&value) ||
		(ss_value_container(&value)->header & ~JB_CMASK) != kind)
		return NULL;

	opened = ss_value_from_edit(ss_edit_create(ss_value_container(&value), kind));
	if (find_change(edit, key, &index) != NULL)
		opened.len = value.len;
	ss_edit_set(edit, key, &opened);
	return opened.edit;
}

/*
 * Append a new object to an array.
 */
SsEdit *
ss_edit_append(SsEdit *edit)
{
	SsValue		value = ss_value_from_edit(ss_edit_create(NULL, JB_FOBJECT));

	ss_edit_change(edit, edit->base ? JsonContainerSize(edit->base) : 0, true,
				   NULL, &value);
	return value.edit;
}

/*
 * Does writing this edit give anything but its base?
 */
static bool
is_change(const SsEdit *edit)
{
	check_stack_depth();
	if (edit->base == NULL)
		return true;
	for (int i = 0; i < edit->nchanges; i++)
	{
		const SsChange *change = &edit->changes[i];

		if (change->inserted || change->removed ||
			change->value.edit == NULL || is_change(change->value.edit))
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------------------
 * Writing
 * ---------------------------------------------------------------------------
 */

/*
 * An upper bound of what writing an edit takes beyond the bytes of its base.
 */
static Size
edit_growth(const SsEdit *edit)
{
	Size		growth = sizeof(JsonbContainer) + CHANGE_OVERHEAD;

	check_stack_depth();
	for (int i = 0; i < edit->nchanges; i++)
	{
		const SsChange *change = &edit->changes[i];

		growth += change->key.len + change->value.len + CHANGE_OVERHEAD;
		if (change->value.edit != NULL)
			growth += edit_growth(change->value.edit);
	}
	return growth;
}

static inline char *
pad_to_int(char *end)
{
	while ((uintptr_t) end % ALIGNOF_INT != 0)
		*end++ = '\0';
	return end;
}

/*
 * Set the JEntry of the child whose data ends at end and has the given length,
 * padding included.
 */
static inline void
finish_child(Target *target, JEntry type, const char *end, uint32 len)
{
	Size		offset = end - target->data;

	if (offset > JENTRY_OFFLENMASK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("total size of a jsonb array or object exceeds the maximum of %u bytes",
						JENTRY_OFFLENMASK)));

	if (target->index % JB_OFFSET_STRIDE == 0)
		target->entries[target->index] = type | offset | JENTRY_HAS_OFF;
	else
		target->entries[target->index] = type | len;
	target->index++;
}

static char *
write_value(char *end, Target *target, const SsValue *value)
{
	const char *start = end;

	if (value->edit != NULL)
		end = write_edit(pad_to_int(end), value->edit);
	else
	{
		if (value->type == JENTRY_ISNUMERIC ||
			value->type == JENTRY_ISCONTAINER)
			end = pad_to_int(end);
		memcpy(end, value->data, value->len);
		end += value->len;
	}

	finish_child(target, value->type, end, end - start);
	return end;
}

/*
 * Copy the children whose JEntries are [from, to) in a container.
 */
static char *
write_run(char *end, Target *target, const JsonbContainer *source,
		  uint32 from, uint32 to)
{
	const char *data = container_data(source);
	uint32		offset = getJsonbOffset(source, from);
	uint32		run_end;
	char	   *run;

	/* one by one until old and new offset agree modulo the alignment */
	while (from < to &&
		   (offset ^ (uint32) (end - target->data)) % ALIGNOF_INT != 0)
	{
		SsValue		value;
		uint32		start = offset;

		JBE_ADVANCE_OFFSET(offset, source->children[from]);
		fill_value(&value, source->children[from], data, start, offset);
		end = write_value(end, target, &value);
		from++;
	}
	if (from >= to)
		return end;

	/* and the rest at once */
	run = end - offset;
	run_end = getJsonbOffset(source, to);
	memcpy(end, data + offset, run_end - offset);
	for (; from < to; from++)
	{
		JEntry		entry = source->children[from];
		uint32		start = offset;

		JBE_ADVANCE_OFFSET(offset, entry);
		finish_child(target, entry & JENTRY_TYPEMASK, run + offset,
					 offset - start);
	}
	return run + run_end;
}

/*
 * Write the keys or the values of an edit: the unchanged children, which
 * have their JEntries from "first" on, and in between what changed.
 */
static char *
write_children(char *end, Target *target, const SsEdit *edit, uint32 first,
			   bool keys)
{
	uint32		position = 0;

	for (int i = 0; i < edit->nchanges; i++)
	{
		const SsChange *change = &edit->changes[i];

		/* a replaced child keeps its key, and so is part of the run of keys */
		if (keys && !change->inserted && !change->removed)
			continue;
		if (change->position > position)
			end = write_run(end, target, edit->base,
							first + position, first + change->position);
		if (!change->removed)
			end = write_value(end, target,
							  keys ? &change->key : &change->value);
		position = change->position + (change->inserted ? 0 : 1);
	}

	if (edit->base != NULL && position < JsonContainerSize(edit->base))
		end = write_run(end, target, edit->base, first + position,
						first + JsonContainerSize(edit->base));
	return end;
}

/*
 * Write the container that an edit gives, to an aligned place; answers where
 * it ends.
 */
static char *
write_edit(char *end, const SsEdit *edit)
{
	JsonbContainer *container = (JsonbContainer *) end;
	uint32		base_count = edit->base ? JsonContainerSize(edit->base) : 0;
	uint32		count = base_count;
	Target		target;

	check_stack_depth();
	for (int i = 0; i < edit->nchanges; i++)
		count += edit->changes[i].inserted - edit->changes[i].removed;

	container->header = count | edit->kind;
	target.entries = container->children;
	target.index = 0;
	target.data = (char *) &container->children[count];
	if (edit->kind != JB_FOBJECT)
		return write_children(target.data, &target, edit, 0, false);

	target.data += count * sizeof(JEntry);
	end = write_children(target.data, &target, edit, 0, true);
	return write_children(end, &target, edit, base_count, false);
}

/*
 * The document that an edit of its root gives; document itself if nothing
 * changed.  The base of the edit must lie in document (or be NULL), and that
 * of each nested edit in its parent's.
 */
Jsonb *
ss_edit_finish(SsEdit *edit, Jsonb *document)
{
	Jsonb	   *result;
	char	   *end;

	if (document != NULL && !is_change(edit))
		return document;

	result = palloc(VARHDRSZ + edit_growth(edit) +
					(document == NULL ? 0 : VARSIZE(document)));
	end = write_edit((char *) &result->root, edit);
	SET_VARSIZE(result, end - (char *) result);
	return result;
}

/*
 * A document of its own from a value.  The value must not be an edit.
 */
Jsonb *
ss_value_to_jsonb(const SsValue *value)
{
	Jsonb	   *result = palloc(VARHDRSZ + 2 * sizeof(uint32) + value->len);
	char	   *end = (char *) &result->root;
	Target		target;

	if (ss_value_is_container(value))
	{
		memcpy(end, value->data, value->len);
		end += value->len;
	}
	else
	{
		result->root.header = 1 | JB_FARRAY | JB_FSCALAR;
		target.entries = result->root.children;
		target.index = 0;
		target.data = (char *) &result->root.children[1];
		end = write_value(target.data, &target, value);
	}
	SET_VARSIZE(result, end - (char *) result);
	return result;
}
