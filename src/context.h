/*-------------------------------------------------------------------------
 *
 * context.h
 *	  Partitions of a stream, told apart by their contexts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_CONTEXT_H
#define SINGER_STATE_CONTEXT_H

#include "json.h"

typedef struct SsContextIndex SsContextIndex;

extern bool ss_context_of(const SsValue *partition, SsValue *context);
extern bool ss_context_find(const JsonbContainer *partitions,
							const SsValue *context,
							uint32 *position, SsValue *partition);
extern SsContextIndex *ss_context_index_create(uint32 size);
extern bool ss_context_index_find(SsContextIndex *index,
								  const SsValue *context, uint32 *position);
extern bool ss_context_index_add(SsContextIndex *index,
								 const SsValue *context, uint32 *position);
extern SsContextIndex *ss_context_index_partitions(const JsonbContainer *partitions,
												   uint32 more);

#endif							/* SINGER_STATE_CONTEXT_H */
