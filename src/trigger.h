/*-------------------------------------------------------------------------
 *
 * trigger.h
 *	  What the writing functions tell the row trigger of the state table.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_TRIGGER_H
#define SINGER_STATE_TRIGGER_H

#include "plans.h"

extern uint64 ss_trigger_write(const char *operation, SsPlan plan,
							   const Datum *values, const char *nulls);
extern int64 ss_trigger_version(int64 answered);
extern bool ss_document_datum_equal(Datum a, bool a_null,
									Datum b, bool b_null);

#endif							/* SINGER_STATE_TRIGGER_H */
