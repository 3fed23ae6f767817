/*-------------------------------------------------------------------------
 *
 * merge.h
 *	  Deep merge of two documents.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_MERGE_H
#define SINGER_STATE_MERGE_H

#include "utils/jsonb.h"

extern Jsonb *ss_deep_merge(Jsonb *base, Jsonb *patch, bool by_context);

#endif							/* SINGER_STATE_MERGE_H */
