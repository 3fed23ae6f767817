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

#include "access/genam.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/sinvaladt.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/tuplestore.h"

/* 14 renamed the default roles */
#if PG_VERSION_NUM < 140000
#define ROLE_PG_READ_SERVER_FILES DEFAULT_ROLE_READ_SERVER_FILES
#define ROLE_PG_WRITE_SERVER_FILES DEFAULT_ROLE_WRITE_SERVER_FILES
#endif

#if PG_VERSION_NUM < 150000
#define MarkGUCPrefixReserved(prefix) EmitWarningsOnPlaceholders(prefix)
#endif

/* 16 renamed the lookup of backend status entries by position */
#if PG_VERSION_NUM < 160000
#define pgstat_get_local_beentry_by_index(idx) pgstat_fetch_stat_local_beentry(idx)
#endif

/* 17 lets the caller of LockHeldByMe accept a stronger lock */
#if PG_VERSION_NUM < 170000
#define LockHeldByMe(tag, mode, orstronger) LockHeldByMe(tag, mode)
#endif

/* 18 added arguments */
#if PG_VERSION_NUM < 180000
#define RelationGetPrimaryKeyIndex(relation, deferrable_ok) \
	RelationGetPrimaryKeyIndex(relation)
#define index_beginscan(heap, index, snapshot, instrument, nkeys, norderbys) \
	index_beginscan(heap, index, snapshot, nkeys, norderbys)
#endif

/*
 * Before 15.1 a set-returning function that materializes its result had to set
 * up the tuplestore by itself.
 */
#ifndef MAT_SRF_BLESS
#define MAT_SRF_USE_EXPECTED_DESC 0x01

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
	if (flags & MAT_SRF_USE_EXPECTED_DESC)
		rsinfo->setDesc = CreateTupleDescCopy(rsinfo->expectedDesc);
	else if (get_call_result_type(fcinfo, NULL, &rsinfo->setDesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setResult =
		tuplestore_begin_heap((rsinfo->allowedModes & SFRM_Materialize_Random) != 0,
							  false, work_mem);
	MemoryContextSwitchTo(old_context);
}
#endif

/*
 * The process of a virtual transaction, or NULL if it is gone.
 */
static inline PGPROC *
ss_vxid_proc(VirtualTransactionId vxid)
{
#if PG_VERSION_NUM >= 170000
	return ProcNumberGetProc(vxid.procNumber);
#else
	return BackendIdGetProc(vxid.backendId);
#endif
}

/* Before a declaration; the older servers have it after one, too. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

#endif							/* SINGER_STATE_COMPAT_H */
