/*-------------------------------------------------------------------------
 *
 * validate.c
 *	  What may be stored as a state.
 *
 * The mistakes that are refused are those that the issue trackers of Meltano
 * and its taps report: each looks like a state, is stored without complaint,
 * and makes the next run start from the beginning.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access/detoast.h"
#include "json.h"
#include "settings.h"
#include "validate.h"

static const char *
kind_name(Jsonb *document)
{
	JsonbValue	scalar;

	if (JB_ROOT_IS_OBJECT(document))
		return "an object";
	if (!JB_ROOT_IS_SCALAR(document))
		return "an array";

	JsonbExtractScalar(&document->root, &scalar);
	switch (scalar.type)
	{
		case jbvNull:
			return "JSON null";
		case jbvString:
			return "a string";
		case jbvNumeric:
			return "a number";
		default:
			return "a boolean";
	}
}

/*
 * Does a JSON string hold an object or an array as text?  A look at its first
 * character is enough for a hint.
 */
static bool
holds_json(const JsonbValue *value)
{
	const char *bytes = value->val.string.val;
	int			length = value->val.string.len;

	if (value->type != jbvString)
		return false;
	while (length > 0 && (*bytes == ' ' || *bytes == '\t' ||
						  *bytes == '\n' || *bytes == '\r'))
	{
		bytes++;
		length--;
	}
	return length > 0 && (*bytes == '{' || *bytes == '[');
}

static void
refuse_string_of_json(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%s is a JSON string that holds JSON", what),
			 errhint("Pass the document itself; in SQL, (value #>> '{}')::jsonb parses such a string.")));
}

/*
 * Refuse what no part of a state can be, validated or not: anything but an
 * object or an array.
 */
void
ss_document_check_kind(Jsonb *document)
{
	JsonbValue	scalar;

	if (!JB_ROOT_IS_SCALAR(document))
		return;

	JsonbExtractScalar(&document->root, &scalar);
	if (holds_json(&scalar))
		refuse_string_of_json("the state");
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("a state must be a JSON object, not %s",
					kind_name(document))));
}

static JsonbValue *
lookup(JsonbContainer *container, const char *key, JsonbValue *value)
{
	if (!JsonContainerIsObject(container))
		return NULL;
	return getKeyJsonValueFromContainer(container, key, strlen(key), value);
}

/*
 * Refuse {"type": "STATE", "value": ...}.
 */
static void
refuse_state_message(JsonbContainer *container)
{
	JsonbValue	type;
	JsonbValue	value;

	if (lookup(container, "value", &value) == NULL ||
		lookup(container, "type", &type) == NULL ||
		type.type != jbvString || type.val.string.len != 5 ||
		memcmp(type.val.string.val, "STATE", 5) != 0)
		return;

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("the document is a STATE message, not a state"),
			 errhint("Pass its \"value\".")));
}

/*
 * Refuse a payload whose "singer_state" cannot be a tap state.
 */
static void
check_payload(JsonbValue *wrapped)
{
	JsonbValue	inner;

	if (holds_json(wrapped))
		refuse_string_of_json("\"singer_state\"");

	if (wrapped->type != jbvBinary ||
		!JsonContainerIsObject(wrapped->val.binary.data))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"singer_state\" must be a JSON object"),
				 wrapped->type == jbvNull ?
				 errdetail("It is null: the next run would start from the beginning.") : 0,
				 errhint("To empty a state on purpose, call clear, or pass {} with allow_empty => true.")));

	if (lookup(wrapped->val.binary.data, "singer_state", &inner) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"singer_state\" is wrapped twice"),
				 errhint("Pass the value of the outer \"singer_state\".")));

	refuse_state_message(wrapped->val.binary.data);
}

/*
 * Refuse a document that is no good state.
 */
void
ss_document_validate(Jsonb *document)
{
	JsonbValue	wrapped;

	if (!JB_ROOT_IS_OBJECT(document))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a state must be a JSON object, not %s",
						kind_name(document)),
				 errhint("validate => false stores an array as it is.")));

	refuse_state_message(&document->root);
	if (lookup(&document->root, "singer_state", &wrapped) != NULL)
		check_payload(&wrapped);
}

/*
 * Refuse a document over the limit, before it is written.  The size is that
 * of the jsonb before compression, so nothing has to be detoasted.
 */
void
ss_document_check_size(Datum document)
{
	Size		size = toast_raw_datum_size(document);

	if (size > (Size) ss_max_state_size)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("state is larger than \"singer_state.max_state_size\""),
				 errdetail("It takes %zu bytes as jsonb; the limit is %d.",
						   size, ss_max_state_size)));
}

/*
 * The document as it is kept: NULL stands for the empty object.
 */
Jsonb *
ss_document_normalize(Jsonb *document)
{
	if (document != NULL && JB_ROOT_IS_OBJECT(document) &&
		JB_ROOT_COUNT(document) == 0)
		return NULL;
	return document;
}

/*
 * An empty object.
 */
Jsonb *
ss_document_empty(void)
{
	SsValue		empty = ss_value_empty_object();

	return ss_value_to_jsonb(&empty);
}

/*
 * Is there anything in the document that a next run could start from?  NULL
 * stands for the empty object.
 *
 * In a payload and a tap state that is a member of "bookmarks"; what is
 * neither counts whole.
 */
bool
ss_document_has_bookmarks(Jsonb *document)
{
	JsonbContainer *container;
	JsonbValue	wrapped;
	JsonbValue	bookmarks;

	if (document == NULL)
		return false;

	container = &document->root;
	if (lookup(container, "singer_state", &wrapped) != NULL &&
		wrapped.type == jbvBinary)
		container = wrapped.val.binary.data;
	if (lookup(container, "bookmarks", &bookmarks) == NULL)
		return JsonContainerSize(container) > 0;
	if (bookmarks.type == jbvBinary)
		return JsonContainerSize(bookmarks.val.binary.data) > 0;
	return bookmarks.type != jbvNull;
}
