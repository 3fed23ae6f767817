/*-------------------------------------------------------------------------
 *
 * claim.h
 *	  Who may touch a state id now: the meeting point of writers, run locks
 *	  and leases.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_CLAIM_H
#define SINGER_STATE_CLAIM_H

#include "datatype/timestamp.h"
#include "storage/lock.h"
#include "utils/uuid.h"

/*
 * Classes of our lock tags: the fourth field, which is 1 or 2 for the locks
 * of pg_advisory_lock, so that no key of theirs is ours.
 */
#define SS_LOCK_CLASS_RUN 21331 /* the run lock of a state id */
#define SS_LOCK_CLASS_QUEUE 21332	/* who waits first for it */
#define SS_LOCK_CLASS_SINCE 21333	/* since when a run lock is held */

/* How long a claim may wait, in milliseconds */
#define SS_WAIT_FOREVER (-1)

/* A row of state_lock */
typedef struct SsLease
{
	bool		exists;
	pg_uuid_t	lock_id;
	int64		token;
	TimestampTz locked_at;
	TimestampTz expires_at;
	char	   *holder;			/* for people: user, application, client */
} SsLease;

typedef struct SsClaim
{
	text	   *name;			/* namespace */
	text	   *state_id;
	LOCKTAG		tag;
	LOCKMODE	mode;			/* NoLock if nothing is to be released */
	SsLease		lease;			/* the row as it was found, expired or not */
	TransactionId blocker;		/* has written the row and not ended */
} SsClaim;

extern void ss_claim_write(SsClaim *claim, text *state_id,
						   const int64 *token, bool force);
extern void ss_claim_renewal(SsClaim *claim, text *state_id,
							 const pg_uuid_t *lock_id);
extern bool ss_claim_exclusive(SsClaim *claim, text *state_id, int timeout);
extern void ss_claim_release(SsClaim *claim);
pg_noreturn extern void ss_claim_report(SsClaim *claim);
pg_noreturn extern void ss_claim_report_locked(text *state_id);
extern void ss_claim_tag(LOCKTAG *tag, text *name, text *state_id,
						 uint16 lock_class);
extern bool ss_claim_is_own(const LOCKTAG *tag);
extern void ss_claim_wake(const LOCKTAG *queue);

#endif							/* SINGER_STATE_CLAIM_H */
