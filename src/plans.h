/*-------------------------------------------------------------------------
 *
 * plans.h
 *	  The saved SPI plans, one per statement that the library runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_PLANS_H
#define SINGER_STATE_PLANS_H

#include "executor/spi.h"

typedef enum SsPlan
{
	SS_PLAN_STATE_READ,
	SS_PLAN_STATE_INSERT,
	SS_PLAN_STATE_UPDATE,
	SS_PLAN_STATE_UPDATE_PLACE,
	SS_PLAN_STATE_RENUMBER,
	SS_PLAN_STATE_DELETE,
	SS_PLAN_STATE_TOUCH,
	SS_PLAN_STATE_TRY_INSERT,
	SS_PLAN_STATE_LIST,
	SS_PLAN_STATE_EXPORT,
	SS_PLAN_HISTORY_INSERT,
	SS_PLAN_HISTORY_PRUNE,
	SS_PLAN_HISTORY_READ,
	SS_PLAN_HISTORY_VERSIONS,
	SS_PLAN_LEASE_WRITE,
	SS_PLAN_LEASE_RENEW,
	SS_PLAN_LEASE_RELEASE,
	SS_PLAN_LEASE_BREAK,
	SS_PLAN_RUN_READ,
	SS_PLAN_RUN_OF_SESSION,
	SS_PLAN_RUN_BURY,
	SS_PLAN_RUN_INSERT,
	SS_PLAN_RUN_HEARTBEAT,
	SS_PLAN_RUN_LOCK,
	SS_PLAN_RUN_COUNT,
	SS_PLAN_RUN_FINISH,
	SS_PLAN_COUNT
} SsPlan;

extern SPIPlanPtr ss_plan_get(SsPlan plan);
extern int	ss_plan_begin(SPIPlanPtr plan);
extern void ss_plan_end(int level);
extern uint64 ss_plan_execute(SsPlan plan, const Datum *values,
							  const char *nulls, bool read_only);
extern Jsonb *ss_plan_jsonb(MemoryContext context, HeapTuple tuple,
							TupleDesc desc, int column);

#endif							/* SINGER_STATE_PLANS_H */
