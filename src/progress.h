/*-------------------------------------------------------------------------
 *
 * progress.h
 *	  The progress of a sync in a state: replication values and markers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_PROGRESS_H
#define SINGER_STATE_PROGRESS_H

#include "bookmark.h"

/* How a replication value is to be taken in. */
typedef struct SsIncrement
{
	bool		is_sorted;		/* else the value goes to progress markers */
	bool		check_sorted;	/* else a smaller value replaces a greater */
	bool		is_timestamp;	/* values compare as instants */
} SsIncrement;

/* These answer state itself if nothing changes. */
extern Jsonb *ss_state_increment(Jsonb *state, const SsValue *stream,
								 const SsValue *replication_key,
								 const SsValue *value, const SsValue *context,
								 const SsIncrement *how);
extern Jsonb *ss_state_finalize(Jsonb *state, const SsValue *stream,
								const SsValue *context, bool is_timestamp);
extern bool ss_state_is_resumable(const Jsonb *state);

#endif							/* SINGER_STATE_PROGRESS_H */
