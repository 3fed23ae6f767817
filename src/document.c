/*-------------------------------------------------------------------------
 *
 * document.c
 *	  The forms that a state document has: detect, unwrap, rewrap.
 *
 * A payload is Meltano's wrapping of a tap state: the key singer_state makes
 * it one.  A tap state has the key bookmarks, or no key but those that stand
 * beside it.  Any other object is flat: its keys are the streams.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "document.h"
#include "json.h"

/*
 * Does this key stand beside the bookmarks in a tap state?
 */
bool
ss_document_is_reserved_key(const SsValue *key)
{
	return ss_value_identical(key, SS_STRING("bookmarks")) ||
		ss_value_identical(key, SS_STRING("currently_syncing")) ||
		ss_value_identical(key, SS_STRING("activate_versions")) ||
		ss_value_identical(key, SS_STRING("singer_state"));
}

/*
 * The form of a document, judged by the keys at its top.
 */
static SsForm
form_of(const JsonbContainer *document)
{
	SsIterator	iterator;
	SsValue		key,
				value;

	if (!JsonContainerIsObject(document))
		return SS_FORM_OTHER;
	if (JsonContainerSize(document) == 0)
		return SS_FORM_EMPTY;
	if (ss_object_get(document, SS_STRING("singer_state"), &value))
		return ss_value_is_object(&value) || ss_value_is_null(&value) ?
			SS_FORM_PAYLOAD : SS_FORM_OTHER;
	if (ss_object_get(document, SS_STRING("bookmarks"), &value))
		return SS_FORM_TAP_STATE;

	ss_iterator_init(&iterator, document);
	while (ss_iterator_next(&iterator, &key, &value))
	{
		if (!ss_document_is_reserved_key(&key))
			return SS_FORM_FLAT;
	}
	return SS_FORM_TAP_STATE;
}

/*
 * Take a document apart.  Works on any document.
 */
SsDocument
ss_document_open(const Jsonb *document)
{
	SsDocument	result = {0};
	SsValue		value;

	result.form = form_of(&document->root);
	if (result.form != SS_FORM_PAYLOAD)
		result.tap_state = JB_ROOT_IS_OBJECT(document) ? &document->root : NULL;
	else if (ss_object_get(&document->root, SS_STRING("singer_state"), &value) &&
			 ss_value_is_object(&value))
		result.tap_state = ss_value_container(&value);

	if (result.tap_state == NULL)
		return result;
	result.flat = form_of(result.tap_state) == SS_FORM_FLAT;
	if (result.flat)
		result.streams = result.tap_state;
	else if (ss_object_get(result.tap_state, SS_STRING("bookmarks"), &value) &&
			 ss_value_is_object(&value))
		result.streams = ss_value_container(&value);
	return result;
}

/*
 * Look up a stream.  False if it is not there.
 */
bool
ss_document_stream(const SsDocument *document, const SsValue *stream,
				   SsValue *value)
{
	return document->streams != NULL &&
		!(document->flat && ss_document_is_reserved_key(stream)) &&
		ss_object_get(document->streams, stream, value);
}

/*
 * The next stream of an iterator over document->streams.
 */
bool
ss_document_next_stream(const SsDocument *document, SsIterator *iterator,
						SsValue *stream, SsValue *value)
{
	while (ss_iterator_next(iterator, stream, value))
	{
		if (!document->flat ||
			!ss_document_is_reserved_key(stream))
			return true;
	}
	return false;
}

/*
 * Wrap a tap state into a payload.
 */
static Jsonb *
wrap(Jsonb *tap_state)
{
	SsEdit	   *edit = ss_edit_create(NULL, JB_FOBJECT);
	SsValue		value = ss_value_from_jsonb(tap_state);

	ss_edit_set(edit, SS_STRING("singer_state"), &value);
	return ss_edit_finish(edit, NULL);
}

/*
 * Take a tap state out of its payload.  What a payload has beside it moves
 * beside the bookmarks, where the tap state does not have the key itself.
 */
static Jsonb *
unwrap(Jsonb *payload)
{
	SsIterator	iterator;
	SsValue		key,
				value,
				inner;
	SsEdit	   *edit;

	if (!ss_object_get(&payload->root, SS_STRING("singer_state"), &inner) ||
		!ss_value_is_object(&inner))
		return payload;

	edit = ss_edit_create(ss_value_container(&inner), JB_FOBJECT);
	ss_iterator_init(&iterator, &payload->root);
	while (ss_iterator_next(&iterator, &key, &value))
	{
		SsValue		present;

		if (value.data != inner.data &&
			!ss_object_get(edit->base, &key, &present))
			ss_edit_set(edit, &key, &value);
	}
	return edit->nchanges == 0 ?
		ss_value_to_jsonb(&inner) : ss_edit_finish(edit, payload);
}

/*
 * Give a payload or tap state the form of a model, as far as both are one of
 * the two: else, and if the forms agree, answers document itself.
 */
Jsonb *
ss_document_conform(Jsonb *document, Jsonb *model)
{
	SsForm		form = form_of(&document->root);
	SsForm		wanted = form_of(&model->root);

	if (form == SS_FORM_TAP_STATE && wanted == SS_FORM_PAYLOAD)
		return wrap(document);
	if (form == SS_FORM_PAYLOAD && wanted == SS_FORM_TAP_STATE)
		return unwrap(document);
	return document;
}
