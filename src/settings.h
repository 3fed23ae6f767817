/*-------------------------------------------------------------------------
 *
 * settings.h
 *	  The settings with the prefix singer_state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_SETTINGS_H
#define SINGER_STATE_SETTINGS_H

extern char *ss_namespace;		/* never empty, at most SS_MAX_NAMESPACE bytes */
extern int	ss_lock_timeout;	/* milliseconds; -1 for ever, 0 not at all */
extern int	ss_lease_ttl;		/* seconds */
extern int	ss_history_limit;	/* versions per state; -1 all, 0 none */
extern int	ss_max_state_size;	/* bytes of one document as jsonb */
extern bool ss_notify;

extern void ss_settings_init(void);

#endif							/* SINGER_STATE_SETTINGS_H */
