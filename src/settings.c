/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  The settings with the prefix singer_state, their bounds and their hints.
 *
 * What protects the store from its writers (history_limit, max_state_size) is
 * for superusers to set, and for those whom they grant it to: a writer who
 * could set history_limit to 0 could erase what history is there to keep.
 * The rest belongs to the session.
 *
 * Bounds are checked here, not by the server's range check, since only a
 * check hook can add a hint.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include <limits.h>

#include "mb/pg_wchar.h"
#include "settings.h"

char	   *ss_namespace = NULL;
int			ss_lock_timeout = 30000;
int			ss_lease_ttl = 300;
int			ss_history_limit = 10;
int			ss_max_state_size = 64 * 1024 * 1024;
bool		ss_notify = false;

static bool
check_namespace(char **newval, void **extra, GucSource source)
{
	size_t		length = strlen(*newval);

	if (length >= 1 && length <= SS_MAX_NAMESPACE)
		return true;

	GUC_check_errdetail("A namespace has 1 to %d bytes; this one has %zu.",
						SS_MAX_NAMESPACE, length);
	GUC_check_errhint("Use the name of the project or tenant whose states you keep; the default is \"meltano\".");
	return false;
}

/*
 * Shared by the integer settings: at least "least", or a detail and a hint.
 */
static bool
check_at_least(int newval, int least, const char *hint)
{
	if (newval >= least)
		return true;

	GUC_check_errdetail("The smallest value is %d.", least);
	GUC_check_errhint("%s", hint);
	return false;
}

static bool
check_lock_timeout(int *newval, void **extra, GucSource source)
{
	return check_at_least(*newval, -1,
						  "Use -1 to wait for ever, 0 not to wait, or a time such as \"30s\".");
}

static bool
check_lease_ttl(int *newval, void **extra, GucSource source)
{
	return check_at_least(*newval, 1,
						  "Use a time of one second or more, such as \"5min\".");
}

static bool
check_history_limit(int *newval, void **extra, GucSource source)
{
	return check_at_least(*newval, -1,
						  "Use -1 to keep every version, 0 to keep none, or the number of versions to keep.");
}

static bool
check_max_state_size(int *newval, void **extra, GucSource source)
{
	return check_at_least(*newval, 1024,
						  "Use a size of one kilobyte or more, such as \"64MB\".");
}

/*
 * Define the settings.  Called once, by _PG_init.
 */
void
ss_settings_init(void)
{
	DefineCustomStringVariable("singer_state.namespace",
							   "Namespace that the functions of singer_state act in.",
							   "One per project or tenant; state ids of different namespaces never meet.",
							   &ss_namespace, "meltano",
							   PGC_USERSET, 0,
							   check_namespace, NULL, NULL);

	DefineCustomIntVariable("singer_state.lock_timeout",
							"Time to wait for a state that another run has locked.",
							"-1 waits for ever, 0 does not wait.",
							&ss_lock_timeout, 30000, INT_MIN, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							check_lock_timeout, NULL, NULL);

	DefineCustomIntVariable("singer_state.lease_ttl",
							"Time that a lease lasts unless it is renewed.",
							"After it anybody may take the lease; the old holder's token is fenced out then.",
							&ss_lease_ttl, 300, INT_MIN, INT_MAX,
							PGC_USERSET, GUC_UNIT_S,
							check_lease_ttl, NULL, NULL);

	DefineCustomIntVariable("singer_state.history_limit",
							"Number of replaced versions to keep of each state.",
							"-1 keeps all, 0 keeps none.",
							&ss_history_limit, 10, INT_MIN, INT_MAX,
							PGC_SUSET, 0,
							check_history_limit, NULL, NULL);

	DefineCustomIntVariable("singer_state.max_state_size",
							"Size of the largest document that may be stored.",
							"Counted as jsonb, before compression, for each part of a state.",
							&ss_max_state_size, 64 * 1024 * 1024, INT_MIN, INT_MAX,
							PGC_SUSET, GUC_UNIT_BYTE,
							check_max_state_size, NULL, NULL);

	DefineCustomBoolVariable("singer_state.notify",
							 "Sends NOTIFY singer_state for each change of a state.",
							 "The payload is a JSON object: namespace, state_id and version.",
							 &ss_notify, false,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);

	MarkGUCPrefixReserved("singer_state");
}
