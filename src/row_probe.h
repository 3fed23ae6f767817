/*-------------------------------------------------------------------------
 *
 * row_probe.h
 *	  Lookups by primary key below SPI.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_ROW_PROBE_H
#define SINGER_STATE_ROW_PROBE_H

#include "access/htup.h"
#include "access/tupdesc.h"

/*
 * Called with a row while its table is open; answers whether to look at more
 * of them.
 */
typedef bool (*SsRowReader) (HeapTuple tuple, TupleDesc desc, void *arg);

extern Oid	ss_row_table(const char *name);
extern TransactionId ss_row_probe(Oid table, text *name, text *state_id,
								  SsRowReader reader, void *arg);
extern bool ss_row_read(Oid table, text *name, text *state_id,
						SsRowReader reader, void *arg);

#endif							/* SINGER_STATE_ROW_PROBE_H */
