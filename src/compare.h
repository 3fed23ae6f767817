/*-------------------------------------------------------------------------
 *
 * compare.h
 *	  Order of replication values, and the timestamps among them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_COMPARE_H
#define SINGER_STATE_COMPARE_H

#include "datatype/timestamp.h"
#include "json.h"

extern int	ss_replication_compare(const SsValue *a, const SsValue *b,
								   bool is_timestamp);
extern TimestampTz ss_timestamp_from_value(const SsValue *value);

#endif							/* SINGER_STATE_COMPARE_H */
