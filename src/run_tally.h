/*-------------------------------------------------------------------------
 *
 * run_tally.h
 *	  What the current transaction has seen of a run, not yet in its row.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_RUN_TALLY_H
#define SINGER_STATE_RUN_TALLY_H

#include "run.h"
#include "run_counts.h"

typedef struct SsTally
{
	struct SsTally *next;		/* older */
	MemoryContext context;		/* holds the tally and what it points to */
	SubTransactionId subid;		/* in which it was seen */
	SubTransactionId written_by;	/* in which it was written, if it was */
	Oid			userid;
	SsRun		run;
	SsRunCounts counts;
	bool		reached_state;

	/* the statement that is under way */
	uint64		line;			/* lines it has brought so far */
	MemoryContext state_context;	/* holds the two below */
	Jsonb	   *state;			/* reached last, not written yet, or NULL */
	SsSlice		spelled;		/* that state as its line had it */
} SsTally;

extern SsTally *ss_tally_open(const pg_uuid_t *id);
extern void ss_tally_add_line(SsTally *tally, const SsLine *line, bool skip);
extern void ss_tally_end_statement(SsTally *tally);
extern void ss_tally_write(const pg_uuid_t *id);
extern void ss_tally_init(void);

#endif							/* SINGER_STATE_RUN_TALLY_H */
