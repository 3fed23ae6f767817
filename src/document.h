/*-------------------------------------------------------------------------
 *
 * document.h
 *	  The forms that a state document has.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_DOCUMENT_H
#define SINGER_STATE_DOCUMENT_H

#include "utils/jsonb.h"

typedef enum SsForm
{
	SS_FORM_OTHER,				/* not an object, or singer_state is none */
	SS_FORM_EMPTY,				/* {} */
	SS_FORM_PAYLOAD,			/* {"singer_state": {...}}, or null there */
	SS_FORM_TAP_STATE,			/* {"bookmarks": ...} */
	SS_FORM_FLAT				/* {"users": {...}} */
} SsForm;

extern SsForm ss_document_form(const JsonbContainer *document);
extern bool ss_document_is_reserved_key(const char *key, int len);
extern Jsonb *ss_document_conform(Jsonb *document, Jsonb *model);

#endif							/* SINGER_STATE_DOCUMENT_H */
