/*-------------------------------------------------------------------------
 *
 * run_session.c
 *	  The session's current run, and the run locks that runs hold.
 *
 * Both follow transactions and subtransactions, as the rows of the runs do: a
 * begin_run that is rolled back leaves the current run as it was and lets go
 * of its lock; a finish_run lets go of the lock when it has committed, not
 * before, since whoever gets the lock next must see the state that it left.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access/xact.h"
#include "run_lock.h"
#include "run_session.h"
#include "utils/memutils.h"

typedef struct CurrentRun
{
	bool		is_set;
	pg_uuid_t	id;
} CurrentRun;

static CurrentRun current;

/* What the current run was before a subtransaction changed it */
typedef struct Saved
{
	struct Saved *next;			/* of an outer subtransaction */
	SubTransactionId subid;
	CurrentRun	before;
} Saved;

/* A lock that the end of a transaction releases */
typedef struct LockEnd
{
	struct LockEnd *next;
	SubTransactionId subid;
	bool		at_commit;		/* else at rollback */
	LOCKTAG		tag;
} LockEnd;

/* Both live in TopTransactionContext, newest first */
static Saved *saved = NULL;
static LockEnd *lock_ends = NULL;

/*
 * The current run, or NULL.
 */
const pg_uuid_t *
ss_run_current(void)
{
	return current.is_set ? &current.id : NULL;
}

/*
 * Make a run the current one, or none if "id" is NULL.
 */
void
ss_run_set_current(const pg_uuid_t *id)
{
	SubTransactionId subid = GetCurrentSubTransactionId();

	if (saved == NULL || saved->subid != subid)
	{
		Saved	   *entry = MemoryContextAlloc(TopTransactionContext,
											   sizeof(Saved));

		entry->next = saved;
		entry->subid = subid;
		entry->before = current;
		saved = entry;
	}
	current.is_set = (id != NULL);
	if (id != NULL)
		current.id = *id;
}

static void
add_lock_end(const LOCKTAG *tag, bool at_commit)
{
	LockEnd    *end = MemoryContextAlloc(TopTransactionContext,
										 sizeof(LockEnd));

	end->next = lock_ends;
	end->subid = GetCurrentSubTransactionId();
	end->at_commit = at_commit;
	end->tag = *tag;
	lock_ends = end;
}

/*
 * A lock was taken for a run that begins, or after an expired lease: let go of
 * it if that is rolled back.
 */
void
ss_run_lock_begun(const LOCKTAG *tag)
{
	add_lock_end(tag, false);
}

/*
 * A run that holds its lock is finished: let go of it when that commits.
 */
void
ss_run_lock_finished(const LOCKTAG *tag)
{
	add_lock_end(tag, true);
}

static void
end_transaction(bool commit)
{
	LockEnd    *end;

	if (!commit)
	{
		for (; saved != NULL; saved = saved->next)
			current = saved->before;
	}
	saved = NULL;

	end = lock_ends;
	lock_ends = NULL;
	for (; end != NULL; end = end->next)
	{
		if (end->at_commit == commit)
			ss_run_lock_release_tag(&end->tag);
	}
}

/*
 * Refuse to prepare a transaction whose rollback must let go of a lock: by
 * then this session no longer hears of it.
 */
static void
check_prepare(void)
{
	for (LockEnd *end = lock_ends; end != NULL; end = end->next)
	{
		if (!end->at_commit)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot prepare a transaction whose rollback releases a run lock"),
					 errdetail("It has begun a run, or taken a run lock after an expired lease.")));
	}
}

static void
on_transaction_event(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_PREPARE:
			check_prepare();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
			end_transaction(true);
			break;
		case XACT_EVENT_ABORT:
			end_transaction(false);
			break;
		default:
			break;
	}
}

static void
abort_subtransaction(SubTransactionId subid)
{
	LockEnd   **link = &lock_ends;

	while (saved != NULL && saved->subid == subid)
	{
		current = saved->before;
		saved = saved->next;
	}

	while (*link != NULL)
	{
		LockEnd    *end = *link;

		if (end->subid != subid)
		{
			link = &end->next;
			continue;
		}
		*link = end->next;
		if (!end->at_commit)
			ss_run_lock_release_tag(&end->tag);
	}
}

static void
commit_subtransaction(SubTransactionId subid, SubTransactionId parent)
{
	if (saved != NULL && saved->subid == subid)
	{
		if (saved->next != NULL && saved->next->subid == parent)
			saved = saved->next;
		else
			saved->subid = parent;
	}

	for (LockEnd *end = lock_ends; end != NULL; end = end->next)
	{
		if (end->subid == subid)
			end->subid = parent;
	}
}

static void
on_subtransaction_event(SubXactEvent event, SubTransactionId subid,
						SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		abort_subtransaction(subid);
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		commit_subtransaction(subid, parent);
}

/*
 * Called once, by _PG_init.
 */
void
ss_run_session_init(void)
{
	RegisterXactCallback(on_transaction_event, NULL);
	RegisterSubXactCallback(on_subtransaction_event, NULL);
}
