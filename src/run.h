/*-------------------------------------------------------------------------
 *
 * run.h
 *	  Runs: from begin_run to finish_run.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_RUN_H
#define SINGER_STATE_RUN_H

#include "utils/uuid.h"

/* What the messages of a run need to know of its row */
typedef struct SsRun
{
	pg_uuid_t	id;
	text	   *name;			/* namespace */
	text	   *state_id;
	bool		merges;			/* strategy "merge", not "overwrite" */
	bool		has_token;		/* of a lease, which its writes pass */
	int64		token;
} SsRun;

extern pg_uuid_t *ss_run_id_arg(FunctionCallInfo fcinfo, int argno);
extern bool ss_run_is_here(const SsRun *run);
extern void ss_run_read(const pg_uuid_t *id, SsRun *run);
pg_noreturn extern void ss_run_refuse_unknown(const pg_uuid_t *id);
pg_noreturn extern void ss_run_refuse_finished(const pg_uuid_t *id);

#endif							/* SINGER_STATE_RUN_H */
