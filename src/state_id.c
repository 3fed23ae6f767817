/*-------------------------------------------------------------------------
 *
 * state_id.c
 *	  State ids and namespaces: what is a good one, and their lock keys.
 *
 * A state id is opaque: it is never trimmed, folded or normalised.  Its
 * length is counted in bytes of the server's encoding, since it is the index
 * tuple that limits it.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "settings.h"
#include "state_id.h"

PG_FUNCTION_INFO_V1(singer_state_current_namespace);
PG_FUNCTION_INFO_V1(singer_state_lock_key);

/*
 * Refuse a namespace that the setting would refuse, for those that reach the
 * table directly.
 */
void
ss_namespace_check(text *name)
{
	int			length = VARSIZE_ANY_EXHDR(name);

	if (length < 1 || length > SS_MAX_NAMESPACE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid namespace"),
				 errdetail("A namespace has 1 to %d bytes; this one has %d.",
						   SS_MAX_NAMESPACE, length)));
}

/*
 * The namespace that the session acts in, as a fresh text.
 */
text *
ss_namespace_current(void)
{
	return cstring_to_text(ss_namespace);
}

/*
 * Refuse a state id that is too short or too long.
 */
void
ss_state_id_check(text *state_id)
{
	int			length = VARSIZE_ANY_EXHDR(state_id);

	if (length < 1 || length > SS_MAX_STATE_ID)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid state id"),
				 errdetail("A state id has 1 to %d bytes; this one has %d.",
						   SS_MAX_STATE_ID, length)));
}

/*
 * qsort comparator of text pointers in byte order, the order of the primary
 * key, in which bulk calls take their locks.
 */
int
ss_state_id_compare(const void *a, const void *b)
{
	text	   *left = *(text *const *) a;
	text	   *right = *(text *const *) b;
	int			left_length = VARSIZE_ANY_EXHDR(left);
	int			right_length = VARSIZE_ANY_EXHDR(right);
	int			cmp = memcmp(VARDATA_ANY(left), VARDATA_ANY(right),
							 Min(left_length, right_length));

	if (cmp != 0)
		return cmp;
	return (left_length > right_length) - (left_length < right_length);
}

static uint64
fnv1a(uint64 hash, const char *bytes, int length)
{
	for (int i = 0; i < length; i++)
	{
		hash ^= (unsigned char) bytes[i];
		hash *= UINT64CONST(0x100000001b3);
	}
	return hash;
}

/*
 * The 64-bit key of a state id's locks: FNV-1a over the namespace, a zero
 * byte and the state id.
 *
 * Clients of different versions of this library meet on these keys, so the
 * derivation never changes; the hash functions of the server are no promise
 * across versions and byte orders.  Texts hold no zero byte, so no two pairs
 * of names make the same string.  A collision makes two states wait for each
 * other and does no other harm.
 */
uint64
ss_state_id_lock_key(text *name, text *state_id)
{
	uint64		hash = UINT64CONST(0xcbf29ce484222325);

	hash = fnv1a(hash, VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
	hash = fnv1a(hash, "", 1);
	return fnv1a(hash, VARDATA_ANY(state_id), VARSIZE_ANY_EXHDR(state_id));
}

/*
 * current_namespace(): the setting singer_state.namespace, also in a session
 * that has not loaded the library yet.
 */
Datum
singer_state_current_namespace(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(ss_namespace_current());
}

/*
 * lock_key(namespace, state_id): the key under which pg_locks shows the run
 * lock of a state id, classid its upper and objid its lower half.
 */
Datum
singer_state_lock_key(PG_FUNCTION_ARGS)
{
	text	   *name = PG_GETARG_TEXT_PP(0);
	text	   *state_id = PG_GETARG_TEXT_PP(1);

	PG_RETURN_INT64((int64) ss_state_id_lock_key(name, state_id));
}
