/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Every difference between the PostgreSQL versions that we support.
 *
 * The code is written for the newest server; this file gives its names to
 * the older ones.  PG_VERSION_NUM appears nowhere else.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_COMPAT_H
#define SINGER_STATE_COMPAT_H

#if PG_VERSION_NUM < 130000 || PG_VERSION_NUM >= 190000
#error "singer_state supports PostgreSQL 13 to 18"
#endif

#include "utils/guc.h"

#if PG_VERSION_NUM < 150000
#define MarkGUCPrefixReserved(prefix) EmitWarningsOnPlaceholders(prefix)
#endif

/*
 * Before 15.1 a set-returning function that materializes its result had to set
 * up the tuplestore by itself.  Only the plain case is needed.
 */
#include "funcapi.h"
#ifndef MAT_SRF_BLESS
#include "miscadmin.h"
#include "utils/tuplestore.h"

static inline void
InitMaterializedSRF(FunctionCallInfo fcinfo, bits32 flags)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext old_context;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo) ||
		(rsinfo->allowedModes & SFRM_Materialize) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));

	old_context = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	if (get_call_result_type(fcinfo, NULL, &rsinfo->setDesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setResult =
		tuplestore_begin_heap((rsinfo->allowedModes & SFRM_Materialize_Random) != 0,
							  false, work_mem);
	MemoryContextSwitchTo(old_context);
}
#endif

#endif							/* SINGER_STATE_COMPAT_H */
