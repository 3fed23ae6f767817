/*-------------------------------------------------------------------------
 *
 * args.h
 *	  Arguments of SQL functions: fetched, checked, never NULL by surprise.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_ARGS_H
#define SINGER_STATE_ARGS_H

extern void ss_require_arg(FunctionCallInfo fcinfo, int argno,
						   const char *name);
extern text *ss_state_id_arg(FunctionCallInfo fcinfo, int argno);
extern Jsonb *ss_document_arg(FunctionCallInfo fcinfo, int argno,
							  const char *name, bool validate);
extern bool ss_flag_arg(FunctionCallInfo fcinfo, int argno, const char *name);
extern int	ss_choice_arg(FunctionCallInfo fcinfo, int argno, const char *name,
						  const char *const *choices);
extern int	ss_timeout_arg(FunctionCallInfo fcinfo, int argno, int standard);

#endif							/* SINGER_STATE_ARGS_H */
