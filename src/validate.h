/*-------------------------------------------------------------------------
 *
 * validate.h
 *	  What may be stored as a state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_VALIDATE_H
#define SINGER_STATE_VALIDATE_H

extern void ss_document_check_kind(Jsonb *document);
extern void ss_document_validate(Jsonb *document);
extern void ss_document_check_size(Datum document);
extern Jsonb *ss_document_normalize(Jsonb *document);
extern Jsonb *ss_document_empty(void);
extern bool ss_document_has_bookmarks(Jsonb *document);

#endif							/* SINGER_STATE_VALIDATE_H */
