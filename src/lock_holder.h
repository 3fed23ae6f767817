/*-------------------------------------------------------------------------
 *
 * lock_holder.h
 *	  Descriptions of those who hold a run lock or a lease, for people.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_LOCK_HOLDER_H
#define SINGER_STATE_LOCK_HOLDER_H

#include "access/htup.h"
#include "access/tupdesc.h"
#include "claim.h"

extern char *ss_lock_holder_describe(const LOCKTAG *tag);
extern int	ss_lock_holder_pid(const LOCKTAG *tag);
extern void ss_lease_read(HeapTuple tuple, TupleDesc desc, SsLease *lease);

#endif							/* SINGER_STATE_LOCK_HOLDER_H */
