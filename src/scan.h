/*-------------------------------------------------------------------------
 *
 * scan.h
 *	  The line scanner: what one line of a Singer tap or target is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_SCAN_H
#define SINGER_STATE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* What a line is.  The messages come last, in the order of their names. */
typedef enum SsLineKind
{
	SS_LINE_EMPTY,				/* nothing but white space */
	SS_LINE_INVALID,			/* neither a message nor a state */
	SS_LINE_BARE_STATE,			/* a state without envelope, as targets print */
	SS_LINE_ACTIVATE_VERSION,
	SS_LINE_BATCH,
	SS_LINE_RECORD,
	SS_LINE_SCHEMA,
	SS_LINE_STATE
} SsLineKind;

#define SS_LINE_KINDS (SS_LINE_STATE + 1)

/* Bytes within the scanned text; data is NULL when there are none. */
typedef struct SsSlice
{
	const char *data;
	size_t		length;
} SsSlice;

/* The top-level members that decide what a line is */
typedef enum SsMember
{
	SS_MEMBER_BOOKMARKS,
	SS_MEMBER_ENCODING,
	SS_MEMBER_MANIFEST,
	SS_MEMBER_RECORD,
	SS_MEMBER_SCHEMA,
	SS_MEMBER_SINGER_STATE,
	SS_MEMBER_STREAM,
	SS_MEMBER_TYPE,
	SS_MEMBER_VALUE,
	SS_MEMBER_VERSION
} SsMember;

#define SS_MEMBERS (SS_MEMBER_VERSION + 1)

typedef struct SsLine
{
	SsLineKind	kind;
	SsSlice text;				/* the line, without its end and a BOM */
	SsSlice		member[SS_MEMBERS]; /* values as spelled, strings quoted */
	SsSlice		state;			/* of STATE and BARE_STATE: the document */
	const char *problem;		/* of INVALID: what is wrong */
	size_t		problem_at;		/* ... and where, in bytes from its start */
} SsLine;

/* Containers that may be nested in one line */
#define SS_SCAN_MAX_DEPTH 65536

extern const char *ss_line_scan(const char *start, const char *end,
								SsLine *line);
extern size_t ss_string_unescape(SsSlice quoted, char *out);
extern const char *ss_line_kind_name(SsLineKind kind);

#endif							/* SINGER_STATE_SCAN_H */
