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
ss_document_is_reserved_key(const char *key, int len)
{
	static const char *const reserved[] = {
		"activate_versions", "bookmarks", "currently_syncing", "singer_state"
	};

	for (int i = 0; i < lengthof(reserved); i++)
	{
		if (strlen(reserved[i]) == len && memcmp(reserved[i], key, len) == 0)
			return true;
	}
	return false;
}

/*
 * The form of a document, judged by the keys at its top.
 */
SsForm
ss_document_form(const JsonbContainer *document)
{
	SsIterator	iterator;
	SsValue		key,
				value;

	if (!JsonContainerIsObject(document))
		return SS_FORM_OTHER;
	if (JsonContainerSize(document) == 0)
		return SS_FORM_EMPTY;
	if (ss_object_get_literal(document, "singer_state", &value))
		return ss_value_is_object(&value) || ss_value_is_null(&value) ?
			SS_FORM_PAYLOAD : SS_FORM_OTHER;
	if (ss_object_get_literal(document, "bookmarks", &value))
		return SS_FORM_TAP_STATE;

	ss_iterator_init(&iterator, document);
	while (ss_iterator_next(&iterator, &key, &value))
	{
		if (!ss_document_is_reserved_key(key.data, key.len))
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

	result.form = ss_document_form(&document->root);
	if (result.form != SS_FORM_PAYLOAD)
		result.tap_state = JB_ROOT_IS_OBJECT(document) ? &document->root : NULL;
	else if (ss_object_get_literal(&document->root, "singer_state", &value) &&
			 ss_value_is_object(&value))
		result.tap_state = ss_value_container(&value);

	if (result.tap_state == NULL)
		return result;
	result.flat = ss_document_form(result.tap_state) == SS_FORM_FLAT;
	if (result.flat)
		result.streams = result.tap_state;
	else if (ss_object_get_literal(result.tap_state, "bookmarks", &value) &&
			 ss_value_is_object(&value))
		result.streams = ss_value_container(&value);
	return result;
}

/*
 * Look up a stream.  False if it is not there.
 */
bool
ss_document_stream(const SsDocument *document, const char *stream, int len,
				   SsValue *value)
{
	return document->streams != NULL &&
		!(document->flat && ss_document_is_reserved_key(stream, len)) &&
		ss_object_get(document->streams, stream, len, value);
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
			!ss_document_is_reserved_key(stream->data, stream->len))
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
	SsValue		key = ss_value_from_string("singer_state", 12);
	SsValue		value = ss_value_from_jsonb(tap_state);

	ss_edit_change(edit, 0, true, &key, &value);
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
	uint32		position = 0;

	if (!ss_object_get_literal(&payload->root, "singer_state", &inner) ||
		!ss_value_is_object(&inner))
		return payload;

	edit = ss_edit_create(ss_value_container(&inner), JB_FOBJECT);
	ss_iterator_init(&iterator, &payload->root);
	while (ss_iterator_next(&iterator, &key, &value))
	{
		SsValue		present;

		if (value.data != inner.data &&
			!ss_object_find(edit->base, &position, key.data, key.len, &present))
			ss_edit_change(edit, position, true, &key, &value);
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
	SsForm		form = ss_document_form(&document->root);
	SsForm		wanted = ss_document_form(&model->root);

	if (form == SS_FORM_TAP_STATE && wanted == SS_FORM_PAYLOAD)
		return wrap(document);
	if (form == SS_FORM_PAYLOAD && wanted == SS_FORM_TAP_STATE)
		return unwrap(document);
	return document;
}
