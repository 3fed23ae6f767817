/*-------------------------------------------------------------------------
 *
 * run_counts.h
 *	  What a run has seen: messages by type, and by stream and type.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_RUN_COUNTS_H
#define SINGER_STATE_RUN_COUNTS_H

#include "scan.h"
#include "utils/hsearch.h"

/* One stream; versions are those of ACTIVATE_VERSION messages */
typedef struct SsStreamCounts SsStreamCounts;

typedef struct SsRunCounts
{
	MemoryContext context;		/* holds the streams */
	int64		lines[SS_LINE_KINDS];
	HTAB	   *streams;		/* NULL until there is one */
	SsStreamCounts *last;		/* stream of the line before, or NULL */
} SsRunCounts;

extern void ss_counts_init(SsRunCounts *counts, MemoryContext context);
extern void ss_counts_add_line(SsRunCounts *counts, const SsLine *line);
extern void ss_counts_add(SsRunCounts *counts, const SsRunCounts *more);
extern void ss_counts_load(SsRunCounts *counts, Jsonb *messages,
						   Jsonb *streams, int64 skipped);
extern Jsonb *ss_counts_messages(const SsRunCounts *counts);
extern Jsonb *ss_counts_streams(const SsRunCounts *counts);
extern int64 ss_counts_total(const SsRunCounts *counts);
extern int64 ss_counts_states(const SsRunCounts *counts);

#define ss_counts_skipped(counts) ((counts)->lines[SS_LINE_INVALID])

#endif							/* SINGER_STATE_RUN_COUNTS_H */
