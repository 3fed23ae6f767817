/*-------------------------------------------------------------------------
 *
 * store.h
 *	  Reading and changing one stored state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_STORE_H
#define SINGER_STATE_STORE_H

#include "datatype/timestamp.h"
#include "storage/itemptr.h"

/* Columns of singer_state.state */
enum
{
	SS_STATE_NAMESPACE,
	SS_STATE_STATE_ID,
	SS_STATE_PARTIAL,
	SS_STATE_COMPLETED,
	SS_STATE_VERSION,
	SS_STATE_UPDATED_AT,
	SS_STATE_NCOLUMNS
};

/*
 * A state as it is read, or as it is to be.  A part may be toasted; NULL
 * stands for the empty object.
 */
typedef struct SsState
{
	bool		exists;
	int64		version;		/* 0 if the state does not exist */
	TimestampTz updated_at;
	ItemPointerData place;		/* invalid if it was SQL that read the row */
	struct varlena *completed;
	struct varlena *partial;
} SsState;

/*
 * How a state is to be changed.  The edit may be called several times, each
 * time with the state as it then is, and puts new parts in place of old ones.
 */
typedef void (*SsStoreEdit) (SsState *state, void *arg);

typedef struct SsWrite
{
	const char *operation;		/* for the history: the function's name */
	text	   *state_id;
	bool		has_if_version;
	bool		has_token;
	int64		if_version;		/* 0: only if the state does not exist */
	int64		token;			/* of the caller's lease */
	bool		must_exist;
	bool		must_not_exist;
	bool		allow_empty;	/* may lose all bookmarks */
} SsWrite;

extern void ss_write_init(SsWrite *write, const char *operation,
						  text *state_id);
extern void ss_write_condition(SsWrite *write, FunctionCallInfo fcinfo,
							   int if_version_argno, int token_argno);
extern int64 ss_store_write(const SsWrite *write, SsStoreEdit edit, void *arg);
extern int64 ss_store_write_claimed(const SsWrite *write, SsStoreEdit edit,
									void *arg);
extern void ss_store_edit_promote(SsState *state, void *arg);
extern void ss_state_read(text *state_id, bool read_only, SsState *state);
extern bool ss_state_delete(const char *operation, text *state_id,
							SsState *deleted);
extern bool ss_state_same_parts(const SsState *a, const SsState *b);
extern Jsonb *ss_state_part(struct varlena *part);
extern Jsonb *ss_state_effective(const SsState *state);
extern Jsonb *ss_state_effective_copy(const SsState *state);
pg_noreturn extern void ss_state_missing(text *state_id);

#endif							/* SINGER_STATE_STORE_H */
