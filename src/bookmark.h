/*-------------------------------------------------------------------------
 *
 * bookmark.h
 *	  Bookmarks of streams and partitions: find, set, clear.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_BOOKMARK_H
#define SINGER_STATE_BOOKMARK_H

#include "document.h"

/* A state that is being changed */
typedef struct SsStateEdit
{
	Jsonb	   *state;
	SsEdit	   *root;			/* of the document */
	SsEdit	   *tap_state;		/* root, or what is in the payload */
	bool		flat;
} SsStateEdit;

/*
 * The functions on whole documents answer state itself if nothing changes.
 * A context that is NULL, JSON null or {} means the stream itself.
 */
extern Jsonb *ss_bookmark_set(Jsonb *state, const SsValue *stream,
							  const SsValue *key, const SsValue *value,
							  const SsValue *context);
extern Jsonb *ss_stream_remove(Jsonb *state, const SsValue *stream);
extern bool ss_bookmark_find(const Jsonb *state, const SsValue *stream,
							 const SsValue *context, SsValue *bookmark);

extern SsStateEdit ss_state_edit(Jsonb *state);
extern SsEdit *ss_state_edit_streams(SsStateEdit *edit);
extern SsEdit *ss_state_edit_bookmark(SsStateEdit *edit, const SsValue *stream,
									  const SsValue *context);
extern Jsonb *ss_state_edit_finish(SsStateEdit *edit);

#endif							/* SINGER_STATE_BOOKMARK_H */
