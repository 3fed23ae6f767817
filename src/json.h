/*-------------------------------------------------------------------------
 *
 * json.h
 *	  Reading jsonb documents in place, and changing single places in them.
 *
 * A value is read without unpacking: it stays a pointer into its document.
 * A change is recorded in an edit, a sparse list of what differs from a
 * container; finishing the edit copies what did not change as it is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_JSON_H
#define SINGER_STATE_JSON_H

#include "utils/jsonb.h"

/*
 * A value as it lies in a document: type bits and data of its JEntry, without
 * padding.  Numerics and containers are aligned.  If edit is set, the value
 * is a container that is yet to be written; data is not to be read then, and
 * len is 0 if the edit's base is the child that it replaces, else the length
 * of its base.
 */
typedef struct SsValue
{
	JEntry		type;			/* JENTRY_ISSTRING and so on */
	uint32		len;
	const char *data;
	struct SsEdit *edit;
} SsValue;

/* A walk over the children of a container. */
typedef struct SsIterator
{
	const JsonbContainer *container;
	const char *data;			/* where the children's data begins */
	uint32		index;			/* of the child that comes next */
	uint32		count;
	uint32		key_offset;
	uint32		value_offset;
} SsIterator;

/*
 * One difference from a container, at the child with the index position (or
 * before it, if inserted).
 */
typedef struct SsChange
{
	uint32		position;
	bool		inserted;		/* adds a child, rather than replace one */
	bool		removed;		/* takes the child away */
	SsValue		key;			/* of an object's child */
	SsValue		value;
} SsChange;

/*
 * What differs from the container base, in the order of the children.  An
 * edit without a base makes a new container.
 */
typedef struct SsEdit
{
	const JsonbContainer *base;
	uint32		kind;			/* JB_FOBJECT or JB_FARRAY */
	int			nchanges;
	int			maxchanges;
	SsChange   *changes;
} SsEdit;

#define ss_value_is_container(value) ((value)->type == JENTRY_ISCONTAINER)
#define ss_value_container(value) ((JsonbContainer *) (value)->data)
#define ss_value_is_object(value) \
	(ss_value_is_container(value) && \
	 JsonContainerIsObject(ss_value_container(value)))
#define ss_value_is_array(value) \
	(ss_value_is_container(value) && \
	 JsonContainerIsArray(ss_value_container(value)))
#define ss_value_is_string(value) ((value)->type == JENTRY_ISSTRING)
#define ss_value_is_null(value) ((value)->type == JENTRY_ISNULL)

/* A string literal as a key or value */
#define SS_STRING(literal) \
	(&(const SsValue) {JENTRY_ISSTRING, sizeof(literal) - 1, "" literal, NULL})

/* reading */
extern SsValue ss_value_from_jsonb(Jsonb *jsonb);
extern SsValue ss_value_from_string(const char *string, int len);
extern SsValue ss_value_from_text(const text *string);
extern SsValue ss_value_from_edit(SsEdit *edit);
extern text *ss_value_to_text(const SsValue *value);
extern SsValue ss_value_null(void);
extern SsValue ss_value_empty_object(void);
extern Jsonb *ss_value_to_jsonb(const SsValue *value);
extern bool ss_value_identical(const SsValue *a, const SsValue *b);
extern bool ss_value_equal(const SsValue *a, const SsValue *b);
extern bool ss_value_is_truthy(const SsValue *value);
extern int	ss_key_compare(const SsValue *a, const SsValue *b);
extern bool ss_object_find(const JsonbContainer *object, uint32 *position,
						   const SsValue *key, SsValue *value);
extern bool ss_object_get(const JsonbContainer *object,
						  const SsValue *key, SsValue *value);
extern bool ss_array_get(const JsonbContainer *array, uint32 index,
						 SsValue *value);
extern void ss_iterator_init(SsIterator *iterator,
							 const JsonbContainer *container);
extern bool ss_iterator_next(SsIterator *iterator,
							 SsValue *key, SsValue *value);

/* changing */
extern SsEdit *ss_edit_create(const JsonbContainer *base, uint32 kind);
extern void ss_edit_change(SsEdit *edit, uint32 position, bool inserted,
						   const SsValue *key, const SsValue *value);
extern bool ss_edit_get(const SsEdit *edit, const SsValue *key,
						SsValue *value);
extern void ss_edit_set(SsEdit *edit, const SsValue *key,
						const SsValue *value);
extern void ss_edit_remove(SsEdit *edit, const SsValue *key);
extern SsEdit *ss_edit_open(SsEdit *edit, const SsValue *key, uint32 kind);
extern SsEdit *ss_edit_renew(SsEdit *edit, const SsValue *key, uint32 kind);
extern SsEdit *ss_edit_append(SsEdit *edit);
extern Jsonb *ss_edit_finish(SsEdit *edit, Jsonb *document);

#endif							/* SINGER_STATE_JSON_H */
