/*-------------------------------------------------------------------------
 *
 * run_lock.h
 *	  Run locks: heavyweight locks that end with their session.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_RUN_LOCK_H
#define SINGER_STATE_RUN_LOCK_H

#include "storage/lock.h"

extern bool ss_run_lock_acquire(text *state_id, int timeout);
extern bool ss_run_lock_release_tag(const LOCKTAG *tag);
extern bool ss_run_lock_held(text *state_id);

#endif							/* SINGER_STATE_RUN_LOCK_H */
