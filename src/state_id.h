/*-------------------------------------------------------------------------
 *
 * state_id.h
 *	  State ids and namespaces: checks, lock keys and shell patterns.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_STATE_ID_H
#define SINGER_STATE_STATE_ID_H

extern void ss_namespace_check(text *name);
extern text *ss_namespace_current(void);
extern void ss_state_id_check(text *state_id);
extern int	ss_state_id_compare(const void *a, const void *b);
extern uint64 ss_state_id_lock_key(text *name, text *state_id);

/* A shell pattern, decoded once and matched many times */
typedef struct SsGlob SsGlob;

extern SsGlob *ss_glob_compile(text *pattern);
extern bool ss_glob_match(const SsGlob *glob, text *string);
extern text *ss_glob_prefix(const SsGlob *glob);
extern bool ss_glob_covers(const SsGlob *glob, text *string);

#endif							/* SINGER_STATE_STATE_ID_H */
