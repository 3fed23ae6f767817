/*-------------------------------------------------------------------------
 *
 * args.h
 *	  Arguments of SQL functions: fetched, checked, never NULL by surprise.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_ARGS_H
#define SINGER_STATE_ARGS_H

#include "json.h"

extern void ss_require_arg(FunctionCallInfo fcinfo, int argno,
						   const char *name);
extern text *ss_state_id_arg(FunctionCallInfo fcinfo, int argno);
extern Jsonb *ss_document_arg(FunctionCallInfo fcinfo, int argno,
							  const char *name, bool validate);
extern Jsonb *ss_jsonb_arg(FunctionCallInfo fcinfo, int argno,
						   const char *name);
extern SsValue ss_value_arg(FunctionCallInfo fcinfo, int argno,
							const char *name);
extern SsValue ss_string_arg(FunctionCallInfo fcinfo, int argno,
							 const char *name);
extern const SsValue *ss_context_arg(FunctionCallInfo fcinfo, int argno);
extern bool ss_flag_arg(FunctionCallInfo fcinfo, int argno, const char *name);
extern int	ss_choice_arg(FunctionCallInfo fcinfo, int argno, const char *name,
						  const char *const *choices);
extern int	ss_timeout_arg(FunctionCallInfo fcinfo, int argno, int standard);

#endif							/* SINGER_STATE_ARGS_H */
