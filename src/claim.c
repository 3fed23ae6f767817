/*-------------------------------------------------------------------------
 *
 * claim.c
 *	  Who may touch a state id now: the meeting point of writers, run locks
 *	  and leases.
 *
 * Each state id has two heavyweight locks.  The first is the run lock:
 *
 *	  - the session that holds a run lock has it in ExclusiveLock, until it
 *		releases it or ends;
 *	  - a writer has it in RowExclusiveLock while its statement runs, and not
 *		longer, so that writers do not wait for each other here and a
 *		transaction may write any number of states;
 *	  - whoever takes a lease has it in ExclusiveLock while it writes the row
 *		of state_lock.
 *
 * A write that is not committed holds no lock, but its row tells: whoever
 * takes the run lock or a lease looks for it (row_probe.c) and waits for its
 * transaction, having let go of the lock, so that the writer may go on.  In
 * the same way a writer sees a lease that is not committed yet.
 *
 * The second lock is the queue.  Whoever has to wait takes it first, in
 * ExclusiveLock; so the waiters stand in line, and the first of them waits
 * for the run lock, for a transaction, or, on its latch, for a lease to end.
 * Whoever ends a lease sets the latch of the queue's holder.
 *
 * All waits are the server's own: they are fair, they see interrupts, the
 * deadlock detector sees them (but for the wait for a lease, which has an end
 * by itself), and nothing polls.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "claim.h"
#include "lease.h"
#include "lock_holder.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "row_probe.h"
#include "settings.h"
#include "state_id.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

typedef enum Obstacle
{
	OBSTACLE_NONE,
	OBSTACLE_TRANSACTION,		/* has written the row and not ended */
	OBSTACLE_LEASE				/* of somebody else, not expired */
} Obstacle;

typedef struct Request
{
	SsClaim    *claim;
	LOCKMODE	mode;
	const int64 *token;			/* of the caller's lease, or NULL */
	const pg_uuid_t *lock_id;	/* of the lease to renew, or NULL */
	TimestampTz deadline;		/* DT_NOEND waits for ever */
} Request;

/* A wait of the server's, to be run under a lock_timeout of ours */
typedef void (*BlockingWait) (Request *request, const LOCKTAG *tag);

/*
 * The tag of one of the locks of a state id.
 */
void
ss_claim_tag(LOCKTAG *tag, text *name, text *state_id, uint16 lock_class)
{
	uint64		key = ss_state_id_lock_key(name, state_id);

	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, (uint32) (key >> 32),
						 (uint32) key, lock_class);
}

/*
 * Does this session hold the run lock of this tag?
 */
bool
ss_claim_is_own(const LOCKTAG *tag)
{
	return LockHeldByMe(tag, ExclusiveLock, false);
}

static bool
try_lock(const LOCKTAG *tag, LOCKMODE mode)
{
	return LockAcquire(tag, mode, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

static bool
read_lease(HeapTuple tuple, TupleDesc desc, void *arg)
{
	ss_lease_read(tuple, desc, (SsLease *) arg);
	return true;
}

/*
 * Read the lease; answers a transaction that is writing it.
 */
static TransactionId
probe_lease(SsClaim *claim)
{
	memset(&claim->lease, 0, sizeof(SsLease));
	return ss_row_probe(ss_row_table("state_lock"), claim->name,
						claim->state_id, read_lease, &claim->lease);
}

/*
 * Does the request come from the holder of the lease?  An error if it says so
 * and is not.
 */
static bool
is_leaseholder(const Request *request)
{
	const SsLease *lease = &request->claim->lease;

	if (request->token != NULL &&
		(!lease->exists || lease->token != *request->token))
		ss_lease_refuse(request->claim->state_id, "write");
	if (request->lock_id != NULL &&
		(!lease->exists ||
		 memcmp(&lease->lock_id, request->lock_id, sizeof(pg_uuid_t)) != 0))
		ss_lease_refuse(request->claim->state_id, "renew");
	return request->token != NULL || request->lock_id != NULL;
}

/*
 * What keeps us from having the state id, now that we have its lock?
 */
static Obstacle
find_obstacle(Request *request)
{
	SsClaim    *claim = request->claim;

	claim->blocker = probe_lease(claim);
	if (!TransactionIdIsValid(claim->blocker) &&
		request->mode == ExclusiveLock)
		claim->blocker = ss_row_probe(ss_row_table("state"), claim->name,
									  claim->state_id, NULL, NULL);
	if (TransactionIdIsValid(claim->blocker))
		return OBSTACLE_TRANSACTION;

	if (is_leaseholder(request))
		return OBSTACLE_NONE;
	if (claim->lease.exists &&
		claim->lease.expires_at > GetCurrentTimestamp())
		return OBSTACLE_LEASE;
	return OBSTACLE_NONE;
}

static long
remaining(const Request *request, TimestampTz until)
{
	TimestampTz end = Min(until, request->deadline);
	TimestampTz now = GetCurrentTimestamp();

	if (end == DT_NOEND)
		return INT_MAX;
	if (end <= now)
		return 0;
	return (long) Min((end - now + 999) / 1000, INT_MAX);
}

/*
 * Wait for a lock within the request's time.
 *
 * The server's lock_timeout does the timing, set for this wait alone: the
 * nest level restores it, on an error too.  Its error is replaced by ours,
 * which names the holder.
 */
static void
wait_within(Request *request, BlockingWait wait, const LOCKTAG *tag)
{
	MemoryContext context = CurrentMemoryContext;
	long		milliseconds = remaining(request, DT_NOEND);
	char		value[16];
	int			level;

	if (milliseconds == 0)
		ss_claim_report(request->claim);

	/* a server that is told 0 waits for ever */
	snprintf(value, sizeof(value), "%ld",
			 request->deadline == DT_NOEND ? 0 : milliseconds);
	level = NewGUCNestLevel();
	(void) set_config_option("lock_timeout", value, PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	PG_TRY();
	{
		wait(request, tag);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
			PG_RE_THROW();
		FlushErrorState();
		ss_claim_report(request->claim);
	}
	PG_END_TRY();
	AtEOXact_GUC(true, level);
}

static void
block_on_queue(Request *request, const LOCKTAG *tag)
{
	(void) LockAcquire(tag, ExclusiveLock, false, false);
}

static void
block_on_lock(Request *request, const LOCKTAG *tag)
{
	(void) LockAcquire(tag, request->mode, false, false);
}

static void
block_on_transaction(Request *request, const LOCKTAG *tag)
{
	XactLockTableWait(request->claim->blocker, NULL, NULL, XLTW_None);
}

/*
 * Wait for a lease to end, to expire, or for our time to be over.
 */
static void
wait_for_lease(Request *request)
{
	long		milliseconds = remaining(request,
										 request->claim->lease.expires_at);

	if (milliseconds > 0)
	{
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 milliseconds, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	else if (request->deadline <= GetCurrentTimestamp())
		ss_claim_report(request->claim);
}

static bool
read_writer(HeapTuple tuple, TupleDesc desc, void *arg)
{
	if (TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data)))
		*(bool *) arg = true;
	return true;
}

/*
 * Has our transaction written the state?
 */
static bool
has_written(SsClaim *claim)
{
	bool		result = false;

	(void) ss_row_probe(ss_row_table("state"), claim->name, claim->state_id,
						read_writer, &result);
	return result;
}

/*
 * Wait until the state id is ours.
 *
 * A writer stands in line only for a lease.  For the lock itself it waits in
 * the lock's own queue, where the deadlock detector may move it ahead: it may
 * have written the state before, and be what those before it wait for.  Nor
 * does whoever has written it, and wants to have it now, wait behind those who
 * wait for that write.
 */
static void
claim_in_line(Request *request, const LOCKTAG *queue)
{
	const LOCKTAG *tag = &request->claim->tag;
	bool		in_line = (request->mode == ExclusiveLock &&
						   !has_written(request->claim));

	if (in_line)
		wait_within(request, block_on_queue, queue);
	for (;;)
	{
		Obstacle	obstacle;

		wait_within(request, block_on_lock, tag);
		obstacle = find_obstacle(request);
		if (obstacle == OBSTACLE_NONE)
			break;

		/* what is in our way may need the lock to get out of it */
		LockRelease(tag, request->mode, false);
		if (obstacle == OBSTACLE_TRANSACTION)
			wait_within(request, block_on_transaction, tag);
		else if (in_line)
			wait_for_lease(request);
		else
		{
			wait_within(request, block_on_queue, queue);
			in_line = true;
		}
	}
	if (in_line)
		LockRelease(queue, ExclusiveLock, false);
}

/*
 * Take the state id if it is free and nobody waits for it.
 */
static bool
claim_at_once(Request *request, const LOCKTAG *queue)
{
	const LOCKTAG *tag = &request->claim->tag;
	bool		result = false;

	/* a writer does not overtake anybody, so it need not look at the queue */
	if (request->mode == ExclusiveLock && !try_lock(queue, ExclusiveLock))
		return false;

	if (try_lock(tag, request->mode))
	{
		result = (find_obstacle(request) == OBSTACLE_NONE);
		if (!result)
			LockRelease(tag, request->mode, false);
	}

	if (request->mode == ExclusiveLock)
		LockRelease(queue, ExclusiveLock, false);
	return result;
}

/*
 * Get the run lock in the given mode until the end of the transaction or
 * ss_claim_release.  Answers false if the timeout is 0 and somebody else has
 * the state id; a timeout that passes is an error.
 */
static bool
claim(SsClaim *claim, LOCKMODE mode, const int64 *token,
	  const pg_uuid_t *lock_id, int timeout)
{
	Request		request;
	LOCKTAG		queue;

	request.claim = claim;
	request.mode = mode;
	request.token = token;
	request.lock_id = lock_id;
	request.deadline = timeout == SS_WAIT_FOREVER ? DT_NOEND :
		TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout);
	ss_claim_tag(&queue, claim->name, claim->state_id, SS_LOCK_CLASS_QUEUE);

	if (!claim_at_once(&request, &queue))
	{
		/* who has lost a lease need not wait to hear of it */
		if (!TransactionIdIsValid(probe_lease(claim)))
			(void) is_leaseholder(&request);
		if (timeout == 0)
			return false;
		claim_in_line(&request, &queue);
	}
	claim->mode = mode;
	return true;
}

static void
init_claim(SsClaim *claim, text *state_id)
{
	claim->name = ss_namespace_current();
	claim->state_id = state_id;
	claim->mode = NoLock;
	claim->blocker = InvalidTransactionId;
	memset(&claim->lease, 0, sizeof(SsLease));
	ss_claim_tag(&claim->tag, claim->name, state_id, SS_LOCK_CLASS_RUN);
}

/*
 * Claim a state id for one write: waits singer_state.lock_timeout for a run
 * or a lease of somebody else's.  "token" is that of the caller's lease, or
 * NULL; one that is not the newest is an error.  "force" asks nobody.
 *
 * The session that holds the run lock passes without a lock, which it could
 * not get before those who wait for it to end.  A token is an error there,
 * since nobody has a lease: behind a pooler, the session may be another's.
 */
void
ss_claim_write(SsClaim *write, text *state_id, const int64 *token, bool force)
{
	init_claim(write, state_id);
	if (force)
		return;
	if (ss_claim_is_own(&write->tag))
	{
		if (token != NULL)
			ss_lease_refuse(state_id, "write");
		return;
	}
	if (!claim(write, RowExclusiveLock, token, NULL, ss_lock_timeout))
		ss_claim_report(write);
}

/*
 * Claim a state id to renew the lease that has this lock_id; an error if that
 * is lost.  Without the claim, somebody who has found the lease expired and is
 * taking the state id could miss that it has been renewed.
 */
void
ss_claim_renewal(SsClaim *renewal, text *state_id, const pg_uuid_t *lock_id)
{
	init_claim(renewal, state_id);
	if (!claim(renewal, RowExclusiveLock, NULL, lock_id, ss_lock_timeout))
		ss_claim_report(renewal);
}

/*
 * Claim a state id against everybody, for a run lock or a lease.  Answers
 * false if timeout is 0 and it is not free.
 */
bool
ss_claim_exclusive(SsClaim *exclusive, text *state_id, int timeout)
{
	init_claim(exclusive, state_id);
	return claim(exclusive, ExclusiveLock, NULL, NULL, timeout);
}

/*
 * Let go of what ss_claim_write or ss_claim_exclusive took.
 */
void
ss_claim_release(SsClaim *claim)
{
	if (claim->mode != NoLock)
		LockRelease(&claim->tag, claim->mode, false);
	claim->mode = NoLock;
}

/*
 * Report who has the state id.
 */
void
ss_claim_report(SsClaim *claim)
{
	char	   *holder = ss_lock_holder_describe(&claim->tag);
	LOCKTAG		transaction;

	if (holder == NULL && claim->lease.exists)
		holder = psprintf("Leased to %s.", claim->lease.holder);
	if (holder == NULL && TransactionIdIsValid(claim->blocker))
	{
		SET_LOCKTAG_TRANSACTION(transaction, claim->blocker);
		holder = ss_lock_holder_describe(&transaction);
	}

	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("state \"%s\" is locked", text_to_cstring(claim->state_id)),
			 holder != NULL ? errdetail("%s", holder) :
			 errdetail("A transaction that has written it has not ended.")));
}

/*
 * The same, for whoever was told that it is not free now.
 */
void
ss_claim_report_locked(text *state_id)
{
	SsClaim		claim;

	init_claim(&claim, state_id);
	claim.blocker = probe_lease(&claim);
	ss_claim_report(&claim);
}

/*
 * Wake the first in a queue, whose wait for a lease may be over.
 *
 * Called at commit, so it must not fail.  The latch of a backend that has
 * gone on to something else is set for nothing, which does no harm.
 */
void
ss_claim_wake(const LOCKTAG *queue)
{
	VirtualTransactionId *holders;
	int			count;

	holders = GetLockConflicts(queue, ExclusiveLock, &count);
	for (int i = 0; i < count; i++)
	{
		PGPROC	   *proc = ss_vxid_proc(holders[i]);

		if (proc != NULL)
			SetLatch(&proc->procLatch);
	}
}
