/*-------------------------------------------------------------------------
 *
 * lock_holder.c
 *	  Descriptions of those who hold a run lock or a lease, for people.
 *
 * The lock table does not say when a lock was taken.  So a run lock has a
 * companion in it, which locks nobody out: its tag holds the upper half of
 * the state id's key and the time, in seconds of the Unix epoch.  It ends
 * with the session as the run lock does.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "access/htup_details.h"
#include "common/ip.h"
#include "lock_holder.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/acl.h"
#include "utils/datetime.h"
#include "utils/inet.h"
#include "utils/timestamp.h"

/* Columns of singer_state.state_lock */
#define LEASE_LOCK_ID 3
#define LEASE_TOKEN 4
#define LEASE_LOCKED_AT 5
#define LEASE_EXPIRES_AT 6
#define LEASE_HOLDER_USER 7
#define LEASE_APPLICATION 8
#define LEASE_CLIENT 9

/*
 * A point in time as ISO 8601 in UTC, whatever the session's settings are.
 */
static char *
format_utc(TimestampTz when)
{
	struct pg_tm tm;
	fsec_t		fsec;
	char	   *result = palloc(MAXDATELEN + 1);

	if (TIMESTAMP_NOT_FINITE(when))
	{
		EncodeSpecialTimestamp(when, result);
		return result;
	}
	if (timestamp2tm(when, NULL, &tm, &fsec, NULL, NULL) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	tm.tm_isdst = 0;			/* known, or no zone is printed */
	EncodeDateTime(&tm, fsec, true, 0, NULL, USE_ISO_DATES, result);
	return result;
}

static const LockInstanceData *
find_holder(const LockData *locks, const LOCKTAG *tag)
{
	for (int i = 0; i < locks->nelements; i++)
	{
		const LockInstanceData *lock = &locks->locks[i];

		if (lock->holdMask != 0 && lock->pid != MyProcPid &&
			memcmp(&lock->locktag, tag, sizeof(LOCKTAG)) == 0)
			return lock;
	}
	return NULL;
}

/*
 * When did the holder of a run lock get it?  0 if it holds it as a writer
 * does, for a moment.
 */
static TimestampTz
find_since(const LockData *locks, const LOCKTAG *tag, int pid)
{
	for (int i = 0; i < locks->nelements; i++)
	{
		const LockInstanceData *lock = &locks->locks[i];

		if (lock->holdMask != 0 && lock->pid == pid &&
			lock->locktag.locktag_type == LOCKTAG_ADVISORY &&
			lock->locktag.locktag_field1 == tag->locktag_field1 &&
			lock->locktag.locktag_field2 == tag->locktag_field2 &&
			lock->locktag.locktag_field4 == SS_LOCK_CLASS_SINCE)
			return time_t_to_timestamptz((pg_time_t) lock->locktag.locktag_field3);
	}
	return 0;
}

static PgBackendStatus *
find_backend(int pid)
{
	int			count = pgstat_fetch_stat_numbackends();

	for (int i = 1; i <= count; i++)
	{
		LocalPgBackendStatus *local = pgstat_get_local_beentry_by_index(i);

		if (local != NULL && local->backendStatus.st_procpid == pid)
			return &local->backendStatus;
	}
	return NULL;
}

/*
 * The address of a client as text; "local" for a Unix-domain socket.
 */
static char *
format_client(const SockAddr *addr)
{
	char		host[NI_MAXHOST];

	if (addr->addr.ss_family != AF_INET && addr->addr.ss_family != AF_INET6)
		return pstrdup("local");
	if (pg_getnameinfo_all(&addr->addr, addr->salen, host, sizeof(host),
						   NULL, 0, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return pstrdup("unknown");
	return pstrdup(host);
}

/*
 * Who holds the lock of this tag, as a sentence for an error's detail; NULL
 * if nobody else does.
 *
 * Serves error reports, also when a wait was cancelled: it reads shared
 * memory and one catalog.
 */
char *
ss_lock_holder_describe(const LOCKTAG *tag)
{
	LockData   *locks = GetLockStatusData();
	const LockInstanceData *lock = find_holder(locks, tag);
	PgBackendStatus *backend;
	TimestampTz since;
	StringInfoData text;

	if (lock == NULL)
		return NULL;
	if (lock->pid == 0)
		return pstrdup("Held by a prepared transaction.");

	initStringInfo(&text);
	appendStringInfo(&text, "Held by process %d", lock->pid);
	backend = find_backend(lock->pid);
	if (backend != NULL)
		appendStringInfo(&text, " (user \"%s\", application \"%s\", client %s)",
						 GetUserNameFromId(backend->st_userid, true),
						 backend->st_appname ? backend->st_appname : "",
						 format_client(&backend->st_clientaddr));
	since = find_since(locks, tag, lock->pid);
	if (since != 0)
		appendStringInfo(&text, " since %s", format_utc(since));
	appendStringInfoChar(&text, '.');
	return text.data;
}

/*
 * The process that holds the run lock of this tag, or 0.  One that only writes
 * has the lock, too, but not as a run does.
 */
int
ss_lock_holder_pid(const LOCKTAG *tag)
{
	const LockInstanceData *lock = find_holder(GetLockStatusData(), tag);

	if (lock == NULL || (lock->holdMask & LOCKBIT_ON(ExclusiveLock)) == 0)
		return 0;
	return lock->pid;
}

static char *
text_column(HeapTuple tuple, TupleDesc desc, int column)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, column, desc, &isnull);

	return isnull ? pstrdup("") : TextDatumGetCString(value);
}

/*
 * Read a row of state_lock.
 */
void
ss_lease_read(HeapTuple tuple, TupleDesc desc, SsLease *lease)
{
	bool		isnull;
	Datum		client;

	lease->exists = true;
	lease->lock_id = *DatumGetUUIDP(heap_getattr(tuple, LEASE_LOCK_ID, desc, &isnull));
	lease->token = DatumGetInt64(heap_getattr(tuple, LEASE_TOKEN, desc, &isnull));
	lease->locked_at = DatumGetTimestampTz(heap_getattr(tuple, LEASE_LOCKED_AT, desc, &isnull));
	lease->expires_at = DatumGetTimestampTz(heap_getattr(tuple, LEASE_EXPIRES_AT, desc, &isnull));

	client = heap_getattr(tuple, LEASE_CLIENT, desc, &isnull);
	lease->holder = psprintf("user \"%s\", application \"%s\", client %s since %s until %s",
							 text_column(tuple, desc, LEASE_HOLDER_USER),
							 text_column(tuple, desc, LEASE_APPLICATION),
							 isnull ? "local" :
							 DatumGetCString(DirectFunctionCall1(inet_out, client)),
							 format_utc(lease->locked_at),
							 format_utc(lease->expires_at));
}
