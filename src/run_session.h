/*-------------------------------------------------------------------------
 *
 * run_session.h
 *	  The session's current run, and the run locks that runs hold.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_RUN_SESSION_H
#define SINGER_STATE_RUN_SESSION_H

#include "storage/lock.h"
#include "utils/uuid.h"

extern const pg_uuid_t *ss_run_current(void);
extern void ss_run_set_current(const pg_uuid_t *id);
extern void ss_run_lock_begun(const LOCKTAG *tag);
extern void ss_run_lock_finished(const LOCKTAG *tag);
extern void ss_run_session_init(void);

#endif							/* SINGER_STATE_RUN_SESSION_H */
