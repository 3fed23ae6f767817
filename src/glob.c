/*-------------------------------------------------------------------------
 *
 * glob.c
 *	  Shell patterns for state ids, as Python's fnmatch.fnmatchcase reads
 *	  them: anchored, case-sensitive, by character.
 *
 * "*" is any run of characters, "?" one character, "[abc]", "[a-z]" and
 * "[!x]" one of a set.  A "[" that is never closed stands for itself, and so
 * does everything else, backslashes included.
 *
 * A pattern is compiled into a list of items; matching remembers only the
 * last "*", so it takes at most the product of both lengths.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "mb/pg_wchar.h"
#include "state_id.h"

typedef enum GlobKind
{
	GLOB_LITERAL,
	GLOB_ANY,					/* ? */
	GLOB_STAR,
	GLOB_SET
} GlobKind;

typedef struct GlobItem
{
	GlobKind	kind;
	pg_wchar	literal;
	bool		negated;		/* of a set */
	const pg_wchar *set;		/* its members, as written */
	int			set_length;
} GlobItem;

struct SsGlob
{
	text	   *prefix;			/* literal start, in the server's encoding */
	int			nitems;
	GlobItem	items[FLEXIBLE_ARRAY_MEMBER];
};

static pg_wchar *
decode(text *string, int *length)
{
	int			bytes = VARSIZE_ANY_EXHDR(string);
	pg_wchar   *chars = palloc((bytes + 1) * sizeof(pg_wchar));

	*length = pg_mb2wchar_with_len(VARDATA_ANY(string), chars, bytes);
	return chars;
}

/*
 * Position of the "]" that closes the set opened just before "start", or -1.
 * The first character of a set, after "!", is a member even if it is "]".
 */
static int
find_set_end(const pg_wchar *chars, int length, int start)
{
	int			end = start;

	if (end < length && chars[end] == '!')
		end++;
	if (end < length && chars[end] == ']')
		end++;
	while (end < length && chars[end] != ']')
		end++;
	return end < length ? end : -1;
}

/*
 * Fill in the item that starts at chars[i]; answers where the next one does.
 */
static int
compile_item(GlobItem *item, const pg_wchar *chars, int length, int i)
{
	int			end;

	item->kind = GLOB_LITERAL;
	item->literal = chars[i];

	if (chars[i] == '*')
		item->kind = GLOB_STAR;
	else if (chars[i] == '?')
		item->kind = GLOB_ANY;
	else if (chars[i] == '[' && (end = find_set_end(chars, length, i + 1)) > 0)
	{
		item->kind = GLOB_SET;
		item->negated = (chars[i + 1] == '!');
		item->set = chars + i + 1 + (item->negated ? 1 : 0);
		item->set_length = chars + end - item->set;
		return end + 1;
	}
	return i + 1;
}

/*
 * Compile a pattern, in the current memory context.
 */
SsGlob *
ss_glob_compile(text *pattern)
{
	int			length;
	pg_wchar   *chars = decode(pattern, &length);
	SsGlob	   *glob;
	const char *bytes = VARDATA_ANY(pattern);
	int			prefix_chars = 0;
	int			prefix_bytes = 0;

	glob = palloc(offsetof(SsGlob, items) + length * sizeof(GlobItem));
	glob->nitems = 0;
	for (int i = 0; i < length;)
		i = compile_item(&glob->items[glob->nitems++], chars, length, i);

	while (prefix_chars < glob->nitems &&
		   glob->items[prefix_chars].kind == GLOB_LITERAL)
	{
		prefix_bytes += pg_mblen(bytes + prefix_bytes);
		prefix_chars++;
	}
	glob->prefix = cstring_to_text_with_len(bytes, prefix_bytes);
	return glob;
}

static bool
in_set(const GlobItem *item, pg_wchar c)
{
	for (int i = 0; i < item->set_length; i++)
	{
		if (i + 2 < item->set_length && item->set[i + 1] == '-')
		{
			if (item->set[i] <= c && c <= item->set[i + 2])
				return true;
			i += 2;
		}
		else if (item->set[i] == c)
			return true;
	}
	return false;
}

static bool
match_one(const GlobItem *item, pg_wchar c)
{
	switch (item->kind)
	{
		case GLOB_LITERAL:
			return item->literal == c;
		case GLOB_SET:
			return in_set(item, c) != item->negated;
		default:
			return true;
	}
}

static bool
match(const SsGlob *glob, const pg_wchar *chars, int length)
{
	int			item = 0;
	int			pos = 0;
	int			star_item = -1;
	int			star_pos = 0;

	while (pos < length)
	{
		if (item < glob->nitems && glob->items[item].kind == GLOB_STAR)
		{
			star_item = item++;
			star_pos = pos;
		}
		else if (item < glob->nitems &&
				 match_one(&glob->items[item], chars[pos]))
		{
			item++;
			pos++;
		}
		else if (star_item >= 0)
		{
			/* let the last star take one character more */
			item = star_item + 1;
			pos = ++star_pos;
		}
		else
			return false;
	}

	while (item < glob->nitems && glob->items[item].kind == GLOB_STAR)
		item++;
	return item == glob->nitems;
}

/*
 * Does the whole string match?
 */
bool
ss_glob_match(const SsGlob *glob, text *string)
{
	int			length;
	pg_wchar   *chars = decode(string, &length);
	bool		result = match(glob, chars, length);

	pfree(chars);
	return result;
}

/*
 * What every matching string starts with: where an ordered scan may begin.
 */
text *
ss_glob_prefix(const SsGlob *glob)
{
	return glob->prefix;
}

/*
 * Does the string start with the fixed prefix?  An ordered scan that began
 * there is done as soon as one does not.
 */
bool
ss_glob_covers(const SsGlob *glob, text *string)
{
	int			length = VARSIZE_ANY_EXHDR(glob->prefix);

	return VARSIZE_ANY_EXHDR(string) >= length &&
		memcmp(VARDATA_ANY(string), VARDATA_ANY(glob->prefix), length) == 0;
}
