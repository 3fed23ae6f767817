/*-------------------------------------------------------------------------
 *
 * document.h
 *	  The forms that a state document has.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_DOCUMENT_H
#define SINGER_STATE_DOCUMENT_H

#include "json.h"

typedef enum SsForm
{
	SS_FORM_OTHER,				/* not an object, or singer_state is none */
	SS_FORM_EMPTY,				/* {} */
	SS_FORM_PAYLOAD,			/* {"singer_state": {...}}, or null there */
	SS_FORM_TAP_STATE,			/* {"bookmarks": ...} */
	SS_FORM_FLAT				/* {"users": {...}} */
} SsForm;

/* A document taken apart, without copying. */
typedef struct SsDocument
{
	SsForm		form;
	bool		flat;			/* the tap state is flat */
	const JsonbContainer *tap_state;	/* NULL if there is none */
	const JsonbContainer *streams;	/* object of the streams, NULL if none; if
									 * flat, there are reserved keys too */
} SsDocument;

extern bool ss_document_is_reserved_key(const SsValue *key);
extern SsDocument ss_document_open(const Jsonb *document);
extern bool ss_document_stream(const SsDocument *document,
							   const SsValue *stream, SsValue *value);
extern bool ss_document_next_stream(const SsDocument *document,
									SsIterator *iterator,
									SsValue *stream, SsValue *value);
extern Jsonb *ss_document_conform(Jsonb *document, Jsonb *model);

#endif							/* SINGER_STATE_DOCUMENT_H */
