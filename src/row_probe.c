/*-------------------------------------------------------------------------
 *
 * row_probe.c
 *	  Lookups by primary key below SPI.
 *
 * Whoever takes a run lock or a lease must know of a write to the state that
 * is still under way, since its effect is yet to appear; whoever writes must
 * know of a lease that is being taken.  No SQL statement shows that: it takes
 * an index lookup with a dirty snapshot, the way a unique index looks for
 * conflicts.  It answers who is under way, never what somebody may not see:
 * the tables' contents leave it only for leases, which are nobody's secret.
 *
 * The same lookup with the caller's snapshot reads a state, at a third of what
 * it costs to start the executor for one row.  It knows one privilege, SELECT
 * on the table; whatever else SQL may have to say is left to SQL.
 *
 * This is the one place that reads a table below SPI.
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
#include "miscadmin.h"
#include "row_probe.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

typedef struct Lookup
{
	Relation	index;
	TupleTableSlot *slot;
	IndexScanDesc scan;
} Lookup;

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
 * Begin to look up the rows whose primary key is or begins with (name,
 * state_id), which must outlive the lookup.
 */
static void
begin_lookup(Lookup *lookup, Relation heap, Oid index, Snapshot snapshot,
			 text *name, text *state_id)
{
	ScanKeyData keys[2];

	init_key(&keys[0], 1, name);
	init_key(&keys[1], 2, state_id);
	lookup->index = index_open(index, AccessShareLock);
	lookup->slot = table_slot_create(heap, NULL);
	lookup->scan = index_beginscan(heap, lookup->index, snapshot, NULL, 2, 0);
	index_rescan(lookup->scan, keys, 2, NULL, 0);
}

static bool
next_row(Lookup *lookup)
{
	return index_getnext_slot(lookup->scan, BackwardScanDirection, lookup->slot);
}

/*
 * Answers whether the reader wants more.
 */
static bool
call_reader(Lookup *lookup, Relation heap, SsRowReader reader, void *arg)
{
	bool		should_free;
	HeapTuple	tuple = ExecFetchSlotHeapTuple(lookup->slot, false, &should_free);
	bool		more = reader(tuple, RelationGetDescr(heap), arg);

	if (should_free)
		heap_freetuple(tuple);
	return more;
}

static void
end_lookup(Lookup *lookup)
{
	index_endscan(lookup->scan);
	ExecDropSingleTupleTableSlot(lookup->slot);
	index_close(lookup->index, NoLock);
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
	TransactionId pending = InvalidTransactionId;
	bool		more = true;
	SnapshotData dirty;
	Lookup		lookup;

	/* most often there is no lease, and no history if none is kept */
	if (RelationGetNumberOfBlocks(heap) == 0)
	{
		table_close(heap, NoLock);
		return InvalidTransactionId;
	}

	InitDirtySnapshot(dirty);
	begin_lookup(&lookup, heap, RelationGetPrimaryKeyIndex(heap, false), &dirty,
				 name, state_id);
	while (more && next_row(&lookup))
	{
		CHECK_FOR_INTERRUPTS();
		/* the lookup reports each row's transaction in the snapshot */
		if (TransactionIdIsValid(dirty.xmin))
			pending = dirty.xmin;
		else if (TransactionIdIsValid(dirty.xmax))
			pending = dirty.xmax;
		else if (reader != NULL)
			more = call_reader(&lookup, heap, reader, arg);
	}
	end_lookup(&lookup);

	table_close(heap, NoLock);
	return pending;
}

/*
 * May a row be read without SQL?  Not if row security has a say, nor if it
 * takes more than the table's own SELECT privilege to know whether the caller
 * may see it, nor if the table is not as we have made it.
 */
static bool
may_read(Relation heap, Oid index)
{
	return !heap->rd_rel->relrowsecurity && !heap->rd_rel->relhassubclass &&
		OidIsValid(index) &&
		pg_class_aclcheck(RelationGetRelid(heap), GetUserId(),
						  ACL_SELECT) == ACLCHECK_OK;
}

/*
 * Read the row with the primary key (name, state_id) as a SELECT of the caller
 * would, under the active snapshot: calls "reader" with it if it is there.
 * Answers false, without a look at the row, if that is up to SQL.
 */
bool
ss_row_read(Oid table, text *name, text *state_id,
			SsRowReader reader, void *arg)
{
	Relation	heap = table_open(table, AccessShareLock);
	Oid			index = RelationGetPrimaryKeyIndex(heap, false);
	bool		result = may_read(heap, index);
	Lookup		lookup;

	if (result)
	{
		begin_lookup(&lookup, heap, index, GetActiveSnapshot(), name, state_id);
		if (next_row(&lookup))
			(void) call_reader(&lookup, heap, reader, arg);
		end_lookup(&lookup);
	}

	table_close(heap, NoLock);
	return result;
}
