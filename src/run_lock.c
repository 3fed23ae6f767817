/*-------------------------------------------------------------------------
 *
 * run_lock.c
 *	  Run locks: heavyweight locks that end with their session.
 *
 * A run lock is first taken until the end of the transaction, as claim.c
 * does, and then once more for the session, which needs no wait and no shared
 * memory.  So an error or a cancelled wait on the way leaves nothing held.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access.h"
#include "args.h"
#include "claim.h"
#include "lease.h"
#include "miscadmin.h"
#include "run_lock.h"
#include "run_session.h"
#include "settings.h"
#include "state_id.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(singer_state_acquire_lock);
PG_FUNCTION_INFO_V1(singer_state_try_acquire_lock);
PG_FUNCTION_INFO_V1(singer_state_release_lock);
PG_FUNCTION_INFO_V1(singer_state_release_all_locks);
PG_FUNCTION_INFO_V1(singer_state_holds_lock);

/*
 * The companions of our run locks (see lock_holder.c), to know which one to
 * release.  A hint only: the lock table says what is held.
 */
typedef struct Companion
{
	uint64		key;			/* of the run lock */
	LOCKTAG		run;
	LOCKTAG		since;
} Companion;

static HTAB *companions = NULL;

static uint64
tag_key(const LOCKTAG *tag)
{
	return ((uint64) tag->locktag_field2 << 32) | tag->locktag_field3;
}

static Companion *
remember(const LOCKTAG *run)
{
	Companion  *companion;
	uint64		key = tag_key(run);

	if (companions == NULL)
	{
		HASHCTL		control;

		memset(&control, 0, sizeof(control));
		control.keysize = sizeof(uint64);
		control.entrysize = sizeof(Companion);
		companions = hash_create("singer_state run locks", 16, &control,
								 HASH_ELEM | HASH_BLOBS);
	}

	companion = hash_search(companions, &key, HASH_ENTER, NULL);
	companion->run = *run;
	SET_LOCKTAG_ADVISORY(companion->since, run->locktag_field1,
						 run->locktag_field2,
						 (uint32) timestamptz_to_time_t(GetCurrentTimestamp()),
						 SS_LOCK_CLASS_SINCE);
	return companion;
}

/*
 * Get the run lock, once more if this session has it already.  Answers false
 * if the timeout is 0 and somebody else has it.
 */
bool
ss_run_lock_acquire(text *state_id, int timeout)
{
	SsClaim		claim;
	Companion  *companion;
	LOCKTAG		tag;

	ss_claim_tag(&tag, ss_namespace_current(), state_id, SS_LOCK_CLASS_RUN);
	if (ss_claim_is_own(&tag))
	{
		(void) LockAcquire(&tag, ExclusiveLock, true, false);
		return true;
	}

	if (!ss_claim_exclusive(&claim, state_id, timeout))
		return false;
	if (claim.lease.exists)
		ss_lease_end(state_id);

	companion = remember(&claim.tag);
	(void) LockAcquire(&companion->since, AccessShareLock, true, false);
	(void) LockAcquire(&claim.tag, ExclusiveLock, true, false);
	ss_claim_release(&claim);

	/* rolled back, the lease is there again, and must not meet a lock */
	if (claim.lease.exists)
		ss_run_lock_begun(&claim.tag);
	return true;
}

static void
release_companion(const LOCKTAG *run)
{
	uint64		key = tag_key(run);
	Companion  *companion;

	if (companions == NULL)
		return;
	companion = hash_search(companions, &key, HASH_FIND, NULL);
	if (companion == NULL)
		return;

	if (LockHeldByMe(&companion->since, AccessShareLock, false))
		LockRelease(&companion->since, AccessShareLock, true);
	(void) hash_search(companions, &key, HASH_REMOVE, NULL);
}

/*
 * Let go of the run lock with this tag once.  Reads no catalogs and does not
 * fail, so it may be called while a transaction ends.  Answers false if this
 * session does not hold it.
 */
bool
ss_run_lock_release_tag(const LOCKTAG *tag)
{
	if (!ss_claim_is_own(tag))
		return false;

	LockRelease(tag, ExclusiveLock, true);
	if (!ss_claim_is_own(tag))
		release_companion(tag);
	return true;
}

/*
 * Let go of the run lock once.  Answers false if this session does not hold
 * it.
 */
static bool
release_by_id(text *state_id)
{
	LOCKTAG		tag;

	ss_claim_tag(&tag, ss_namespace_current(), state_id, SS_LOCK_CLASS_RUN);
	return ss_run_lock_release_tag(&tag);
}

/*
 * Does this session hold the run lock?
 */
bool
ss_run_lock_held(text *state_id)
{
	LOCKTAG		tag;

	ss_claim_tag(&tag, ss_namespace_current(), state_id, SS_LOCK_CLASS_RUN);
	return ss_claim_is_own(&tag);
}

/*
 * acquire_lock(state_id, timeout): waits for the run lock.
 */
Datum
singer_state_acquire_lock(PG_FUNCTION_ARGS)
{
	text	   *state_id = ss_state_id_arg(fcinfo, 0);
	int			timeout = ss_timeout_arg(fcinfo, 1, ss_lock_timeout);

	PreventCommandDuringRecovery("acquire_lock()");
	ss_access_require_write(state_id);
	if (!ss_run_lock_acquire(state_id, timeout))
		ss_claim_report_locked(state_id);
	PG_RETURN_VOID();
}

/*
 * try_acquire_lock(state_id): the run lock at once, or false.
 */
Datum
singer_state_try_acquire_lock(PG_FUNCTION_ARGS)
{
	text	   *state_id = ss_state_id_arg(fcinfo, 0);

	PreventCommandDuringRecovery("try_acquire_lock()");
	ss_access_require_write(state_id);
	PG_RETURN_BOOL(ss_run_lock_acquire(state_id, 0));
}

/*
 * release_lock(state_id): lets go once; false and a WARNING if this session
 * does not hold it.
 */
Datum
singer_state_release_lock(PG_FUNCTION_ARGS)
{
	text	   *state_id = ss_state_id_arg(fcinfo, 0);
	bool		released = release_by_id(state_id);

	if (!released)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("this session does not hold the run lock of state \"%s\"",
						text_to_cstring(state_id))));
	PG_RETURN_BOOL(released);
}

/*
 * release_all_locks(): lets go of every run lock of this session, however
 * often it took it; answers how many there were.
 */
Datum
singer_state_release_all_locks(PG_FUNCTION_ARGS)
{
	HASH_SEQ_STATUS scan;
	Companion  *companion;
	int			count = 0;

	if (companions == NULL)
		PG_RETURN_INT32(0);

	hash_seq_init(&scan, companions);
	while ((companion = hash_seq_search(&scan)) != NULL)
	{
		LOCKTAG		run = companion->run;

		if (!ss_claim_is_own(&run))
		{
			/* DISCARD ALL or pg_advisory_unlock_all was here before us */
			release_companion(&run);
			continue;
		}
		while (ss_run_lock_release_tag(&run))
			;
		count++;
	}
	PG_RETURN_INT32(count);
}

/*
 * holds_lock(state_id): does this session hold the run lock?
 */
Datum
singer_state_holds_lock(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(ss_run_lock_held(ss_state_id_arg(fcinfo, 0)));
}
