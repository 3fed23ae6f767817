/*-------------------------------------------------------------------------
 *
 * row_probe.c
 *	  A look at a row that sees what other transactions have not committed.
 *
 * Whoever takes a run lock or a lease must know of a write to the state that
 * is still under way, since its effect is yet to appear; whoever writes must
 * know of a lease that is being taken.  No SQL statement shows that, so this
 * is the one place that reads a table below SPI: an index lookup with a dirty
 * snapshot, the way a unique index looks for conflicts.  It answers who is
 * under way, never what somebody may not see: the tables' contents leave here
 * only for leases, which are nobody's secret.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "executor/tuptable.h"
#include "row_probe.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * The OID of one of our tables.
 */
Oid
ss_row_table(const char *name)
{
	Oid			table = get_relname_relid(name,
										  get_namespace_oid(SS_SCHEMA, false));

	if (!OidIsValid(table))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"%s.%s\" does not exist", SS_SCHEMA, name)));
	return table;
}

static void
init_key(ScanKey key, AttrNumber attno, text *value)
{
	ScanKeyEntryInitialize(key, 0, attno, BTEqualStrategyNumber, InvalidOid,
						   C_COLLATION_OID, F_TEXTEQ, PointerGetDatum(value));
}

/*
 * Look up the rows whose primary key is, or begins with, (name, state_id), the
 * highest key first.  Calls "reader" with each row's newest version that is
 * committed or ours; answers a transaction that has inserted, updated or
 * deleted one and has not ended, or InvalidTransactionId.
 */
TransactionId
ss_row_probe(Oid table, text *name, text *state_id,
			 SsRowReader reader, void *arg)
{
	Relation	heap = table_open(table, AccessShareLock);
	Relation	index = index_open(RelationGetPrimaryKeyIndex(heap, false),
								   AccessShareLock);
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	TransactionId pending = InvalidTransactionId;
	bool		more = true;
	SnapshotData dirty;
	ScanKeyData keys[2];
	IndexScanDesc scan;

	init_key(&keys[0], 1, name);
	init_key(&keys[1], 2, state_id);

	InitDirtySnapshot(dirty);
	scan = index_beginscan(heap, index, &dirty, NULL, 2, 0);
	index_rescan(scan, keys, 2, NULL, 0);
	while (more && index_getnext_slot(scan, BackwardScanDirection, slot))
	{
		/* the lookup reports each row's transaction in the snapshot */
		if (TransactionIdIsValid(dirty.xmin))
			pending = dirty.xmin;
		else if (TransactionIdIsValid(dirty.xmax))
			pending = dirty.xmax;
		else if (reader != NULL)
		{
			bool		should_free;
			HeapTuple	tuple = ExecFetchSlotHeapTuple(slot, false, &should_free);

			more = reader(tuple, RelationGetDescr(heap), arg);
			if (should_free)
				heap_freetuple(tuple);
		}
	}
	index_endscan(scan);

	ExecDropSingleTupleTableSlot(slot);
	index_close(index, NoLock);
	table_close(heap, NoLock);
	return pending;
}
