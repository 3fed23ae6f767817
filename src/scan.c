/*-------------------------------------------------------------------------
 *
 * scan.c
 *	  The line scanner: what one line of a Singer tap or target is.
 *
 * One pass over the line, which checks that it is JSON and notes where the
 * top-level members that matter begin and end; it ends at the newline, so
 * that nobody needs to look for line ends first.  Nothing is built and
 * nothing is allocated: a RECORD of 64 MB costs no more than its bytes.
 *
 * JSON here is what taps write, which are Python programs mostly: as RFC 8259
 * has it, plus NaN, Infinity and -Infinity.  Escapes are checked for their
 * form alone, so \u0000 and lone surrogates pass.  Of duplicate keys the last
 * one counts, as it does for Python and for jsonb.
 *
 * This file knows nothing of PostgreSQL, so that a fuzzer can run it alone:
 * see test/fuzz.  The functions here which take a position take the first
 * byte of what they are named after and answer the position behind it, or
 * NULL after having noted the problem.
 *
 *-------------------------------------------------------------------------
 */
#include "scan.h"

#include <stdint.h>
#include <string.h>

typedef struct Scan
{
	const char *end;			/* end of the text, not of the line */
	SsLine	   *line;
} Scan;

/* Names of members and messages, and their lengths; sorted as their enums */
typedef struct Name
{
	const char *name;
	size_t		length;
} Name;

#define NAME(literal) {literal, sizeof(literal) - 1}

static const Name member_names[SS_MEMBERS] = {
	NAME("bookmarks"),
	NAME("encoding"),
	NAME("manifest"),
	NAME("record"),
	NAME("schema"),
	NAME("singer_state"),
	NAME("stream"),
	NAME("type"),
	NAME("value"),
	NAME("version")
};

#define FIRST_MESSAGE SS_LINE_ACTIVATE_VERSION

static const Name message_names[SS_LINE_KINDS - FIRST_MESSAGE] = {
	NAME("ACTIVATE_VERSION"),
	NAME("BATCH"),
	NAME("RECORD"),
	NAME("SCHEMA"),
	NAME("STATE")
};

/* Longest name above, and what it takes when each character is escaped */
#define LONGEST_NAME 16
#define LONGEST_ESCAPED_NAME (LONGEST_NAME * 6)

/* Characters of an integer that fits 64 bits whatever its digits */
#define MAX_INTEGER_LENGTH 18

/* For work on eight bytes at once */
#define ONES UINT64_C(0x0101010101010101)
#define HIGH_BITS UINT64_C(0x8080808080808080)

/*
 * High bit set in each byte of "word" that is less than "limit", which is at
 * most 128.  A borrow may also set it in bytes above the lowest such byte.
 */
static inline uint64_t
bytes_less_than(uint64_t word, uint8_t limit)
{
	return (word - ONES * limit) & ~word & HIGH_BITS;
}

static inline uint64_t
bytes_equal_to(uint64_t word, uint8_t byte)
{
	return bytes_less_than(word ^ (ONES * byte), 1);
}

static inline bool
ends_plain_text(unsigned char byte)
{
	return byte == '"' || byte == '\\' || byte < 0x20;
}

/*
 * Skip the part of a string that means itself.  Answers the position of a
 * quote, a backslash or a control character, or the end of the text.
 */
static inline const char *
skip_plain_text(const char *p, const char *end)
{
	while (end - p >= (ptrdiff_t) sizeof(uint64_t))
	{
		uint64_t	word;
		uint64_t	hits;

		memcpy(&word, p, sizeof(word));
		hits = bytes_equal_to(word, '"') | bytes_equal_to(word, '\\') |
			bytes_less_than(word, 0x20);
		if (hits != 0)
		{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			return p + (__builtin_ctzll(hits) >> 3);
#else
			break;
#endif
		}
		p += sizeof(word);
	}
	while (p < end && !ends_plain_text((unsigned char) *p))
		p++;
	return p;
}

static inline const char *
skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

/* The byte at a position; the end of the text reads as the end of a line. */
static inline char
byte_at(const char *p, const char *end)
{
	return p < end ? *p : '\n';
}

static const char *
fail(Scan *scan, const char *at, const char *problem)
{
	scan->line->kind = SS_LINE_INVALID;
	scan->line->problem = problem;
	scan->line->problem_at = at - scan->line->text.data;
	return NULL;
}

static inline bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int
hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Skip an escape within a string, backslash first. */
static const char *
skip_escape(Scan *scan, const char *p)
{
	int			i;

	switch (byte_at(p + 1, scan->end))
	{
		case '"':
		case '\\':
		case '/':
		case 'b':
		case 'f':
		case 'n':
		case 'r':
		case 't':
			return p + 2;
		case 'u':
			for (i = 2; i < 6; i++)
			{
				if (hex_value(byte_at(p + i, scan->end)) < 0)
					return fail(scan, p, "bad escape in a string");
			}
			return p + 6;
		default:
			return fail(scan, p, "bad escape in a string");
	}
}

static inline const char *
skip_string(Scan *scan, const char *p)
{
	p++;
	for (;;)
	{
		p = skip_plain_text(p, scan->end);
		switch (byte_at(p, scan->end))
		{
			case '"':
				return p + 1;
			case '\\':
				p = skip_escape(scan, p);
				if (p == NULL)
					return NULL;
				break;
			case '\n':
				return fail(scan, p, "unterminated string");
			default:
				return fail(scan, p, "control character in a string");
		}
	}
}

static inline const char *
skip_digits(const char *p, const char *end)
{
	while (p < end && is_digit(*p))
		p++;
	return p;
}

/* Skip digits, of which there must be one at least. */
static inline const char *
skip_some_digits(Scan *scan, const char *p)
{
	if (!is_digit(byte_at(p, scan->end)))
		return fail(scan, p, "bad number");
	return skip_digits(p + 1, scan->end);
}

static const char *
skip_word(Scan *scan, const char *p, const char *word)
{
	size_t		length = strlen(word);

	if ((size_t) (scan->end - p) < length || memcmp(p, word, length) != 0)
		return fail(scan, p, "unknown word");
	return p + length;
}

static inline const char *
skip_number(Scan *scan, const char *p)
{
	const char *end = scan->end;

	if (*p == '-')
	{
		p++;
		if (byte_at(p, end) == 'I')
			return skip_word(scan, p, "Infinity");
	}
	if (byte_at(p, end) == '0')
		p++;
	else if ((p = skip_some_digits(scan, p)) == NULL)
		return NULL;

	if (byte_at(p, end) == '.')
	{
		p = skip_some_digits(scan, p + 1);
		if (p == NULL)
			return NULL;
	}
	if (byte_at(p, end) == 'e' || byte_at(p, end) == 'E')
	{
		p++;
		if (byte_at(p, end) == '+' || byte_at(p, end) == '-')
			p++;
		p = skip_some_digits(scan, p);
	}
	return p;
}

/* Skip any value but an object or an array. */
static inline const char *
skip_scalar(Scan *scan, const char *p)
{
	switch (byte_at(p, scan->end))
	{
		case '"':
			return skip_string(scan, p);
		case '-':
		case '0':
		case '1':
		case '2':
		case '3':
		case '4':
		case '5':
		case '6':
		case '7':
		case '8':
		case '9':
			return skip_number(scan, p);
		case 't':
			return skip_word(scan, p, "true");
		case 'f':
			return skip_word(scan, p, "false");
		case 'n':
			return skip_word(scan, p, "null");
		case 'N':
			return skip_word(scan, p, "NaN");
		case 'I':
			return skip_word(scan, p, "Infinity");
		case '\n':
			return fail(scan, p, "unexpected end of the line");
		default:
			return fail(scan, p, "not a JSON value");
	}
}

/* Skip the colon behind a key, and space around it. */
static inline const char *
skip_colon(Scan *scan, const char *p)
{
	p = skip_space(p, scan->end);
	if (byte_at(p, scan->end) != ':')
		return fail(scan, p, "colon expected");
	return skip_space(p + 1, scan->end);
}

/* Skip a key, the colon behind it, and space around both. */
static inline const char *
skip_key(Scan *scan, const char *p)
{
	p = skip_space(p, scan->end);
	if (byte_at(p, scan->end) != '"')
		return fail(scan, p, "key expected");
	p = skip_string(scan, p);
	return p == NULL ? NULL : skip_colon(scan, p);
}

/* Containers that are open at a position, each a bit: set for an object */
typedef struct Nesting
{
	size_t		depth;
	uint8_t		is_object[SS_SCAN_MAX_DEPTH / 8];
} Nesting;

static inline void
nesting_push(Nesting *nesting, bool is_object)
{
	uint8_t    *bits = &nesting->is_object[nesting->depth / 8];
	uint8_t		bit = 1 << (nesting->depth % 8);

	*bits = is_object ? *bits | bit : *bits & ~bit;
	nesting->depth++;
}

static inline bool
nesting_in_object(const Nesting *nesting)
{
	size_t		top = nesting->depth - 1;

	return (nesting->is_object[top / 8] >> (top % 8)) & 1;
}

/*
 * Skip whatever closes containers, up to where the next value begins, or
 * to the end of the outermost container, which leaves the depth at 0.
 */
static inline const char *
skip_to_next_value(Scan *scan, Nesting *nesting, const char *p)
{
	while (nesting->depth > 0)
	{
		bool		in_object = nesting_in_object(nesting);
		char		c;

		p = skip_space(p, scan->end);
		c = byte_at(p, scan->end);
		if (c == ',')
			return in_object ? skip_key(scan, p + 1) :
				skip_space(p + 1, scan->end);
		if (c != (in_object ? '}' : ']'))
			return fail(scan, p, in_object ?
						"comma or } expected" : "comma or ] expected");
		p++;
		nesting->depth--;
	}
	return p;
}

/*
 * Enter an object or an array, up to its first value or, if it is empty, to
 * the bracket that closes it: *empty tells which.
 */
static inline const char *
enter_container(Scan *scan, Nesting *nesting, const char *p, bool *empty)
{
	bool		is_object = (*p == '{');

	if (nesting->depth == SS_SCAN_MAX_DEPTH)
		return fail(scan, p, "nested too deeply");
	nesting_push(nesting, is_object);

	p = skip_space(p + 1, scan->end);
	*empty = (byte_at(p, scan->end) == (is_object ? '}' : ']'));
	if (is_object && !*empty)
		return skip_key(scan, p);
	return p;
}

/* Skip an object or an array with all that is in it. */
static const char *
skip_container(Scan *scan, const char *p)
{
	Nesting		nesting;

	nesting.depth = 0;
	do
	{
		char		c = byte_at(p, scan->end);

		if (c == '{' || c == '[')
		{
			bool		empty;

			p = enter_container(scan, &nesting, p, &empty);
			if (p != NULL && !empty)
				continue;
		}
		else
			p = skip_scalar(scan, p);

		if (p != NULL)
			p = skip_to_next_value(scan, &nesting, p);
	} while (p != NULL && nesting.depth > 0);

	return p;
}

static inline const char *
skip_value(Scan *scan, const char *p)
{
	char		c = byte_at(p, scan->end);

	return (c == '{' || c == '[') ? skip_container(scan, p) :
		skip_scalar(scan, p);
}

/*
 * Position of a quoted string in a list of names, or -1.  Escaped spellings
 * of a name are that name.
 */
static int
find_name(SsSlice quoted, const Name *names, int count)
{
	char		buffer[LONGEST_ESCAPED_NAME];
	const char *text = quoted.data + 1;
	size_t		length = quoted.length - 2;
	int			i;

	if (length > LONGEST_ESCAPED_NAME)
		return -1;
	if (memchr(text, '\\', length) != NULL)
	{
		length = ss_string_unescape(quoted, buffer);
		text = buffer;
	}
	for (i = 0; i < count; i++)
	{
		if (names[i].length == length && memcmp(names[i].name, text, length) == 0)
			return i;
	}
	return -1;
}

/* Skip a member of the top-level object, and note it if it matters. */
static const char *
scan_member(Scan *scan, const char *p)
{
	SsSlice		key;
	const char *value;
	int			member;

	p = skip_space(p, scan->end);
	if (byte_at(p, scan->end) != '"')
		return fail(scan, p, "key expected");
	key.data = p;
	p = skip_string(scan, p);
	if (p == NULL)
		return NULL;
	key.length = p - key.data;

	value = skip_colon(scan, p);
	if (value == NULL)
		return NULL;
	p = skip_value(scan, value);
	if (p == NULL)
		return NULL;

	member = find_name(key, member_names, SS_MEMBERS);
	if (member >= 0)
	{
		scan->line->member[member].data = value;
		scan->line->member[member].length = p - value;
	}
	return p;
}

/* Skip the object that a line must be. */
static const char *
scan_object(Scan *scan, const char *p)
{
	if (byte_at(p, scan->end) != '{')
		return fail(scan, p, "not a JSON object");

	p = skip_space(p + 1, scan->end);
	if (byte_at(p, scan->end) == '}')
		return p + 1;

	for (;;)
	{
		p = scan_member(scan, p);
		if (p == NULL)
			return NULL;
		p = skip_space(p, scan->end);
		switch (byte_at(p, scan->end))
		{
			case ',':
				p++;
				break;
			case '}':
				return p + 1;
			default:
				return fail(scan, p, "comma or } expected");
		}
	}
}

static inline bool
has_member(const SsLine *line, SsMember member)
{
	return line->member[member].data != NULL;
}

/* Does a member begin as strings, objects or arrays do? */
static bool
member_is(const SsLine *line, SsMember member, char first)
{
	return has_member(line, member) && *line->member[member].data == first;
}

/* An integer as spelled, short enough for 64 bits: what a version is */
static bool
member_is_integer(const SsLine *line, SsMember member)
{
	SsSlice		value = line->member[member];
	const char *p;

	if (value.data == NULL || value.length > MAX_INTEGER_LENGTH)
		return false;
	p = value.data;
	if (*p == '-')
		p++;
	return is_digit(*p) &&
		skip_digits(p, value.data + value.length) == value.data + value.length;
}

static bool
looks_like_state(const SsLine *line)
{
	return has_member(line, SS_MEMBER_BOOKMARKS) ||
		has_member(line, SS_MEMBER_SINGER_STATE);
}

/*
 * What is missing from a message of the kind that its type says, or NULL.
 */
static const char *
missing_member(const SsLine *line, SsLineKind kind)
{
	if (kind == SS_LINE_STATE)
		return has_member(line, SS_MEMBER_VALUE) ? NULL :
			"STATE message without \"value\"";

	if (!member_is(line, SS_MEMBER_STREAM, '"'))
		return "message without \"stream\"";

	switch (kind)
	{
		case SS_LINE_ACTIVATE_VERSION:
			return member_is_integer(line, SS_MEMBER_VERSION) ? NULL :
				"ACTIVATE_VERSION message without integer \"version\"";
		case SS_LINE_BATCH:
			return member_is(line, SS_MEMBER_ENCODING, '{') &&
				member_is(line, SS_MEMBER_MANIFEST, '[') ? NULL :
				"BATCH message without \"encoding\" or \"manifest\"";
		case SS_LINE_RECORD:
			return member_is(line, SS_MEMBER_RECORD, '{') ? NULL :
				"RECORD message without \"record\"";
		case SS_LINE_SCHEMA:
			return member_is(line, SS_MEMBER_SCHEMA, '{') ? NULL :
				"SCHEMA message without \"schema\"";
		default:
			return NULL;
	}
}

/*
 * Tell what a well-formed object is.  An object without a "type" that is a
 * string is a bare state, also one of the flat form, where any key may be
 * the name of a stream.  A type that no message has is refused, rather than
 * taken for the name of a stream, unless the object is surely a state: a log
 * line in JSON must not replace one.
 */
static void
classify(Scan *scan)
{
	SsLine	   *line = scan->line;
	int			message = -1;

	if (member_is(line, SS_MEMBER_TYPE, '"'))
		message = find_name(line->member[SS_MEMBER_TYPE], message_names,
							SS_LINE_KINDS - FIRST_MESSAGE);

	if (message >= 0)
	{
		line->kind = FIRST_MESSAGE + message;
		line->state = line->member[SS_MEMBER_VALUE];
		line->problem = missing_member(line, line->kind);
	}
	else
	{
		line->kind = SS_LINE_BARE_STATE;
		line->state = line->text;
		if (looks_like_state(line))
			return;
		if (member_is(line, SS_MEMBER_TYPE, '"'))
			line->problem = "unknown message type";
		else if (member_is(line, SS_MEMBER_STREAM, '"') &&
				 (has_member(line, SS_MEMBER_RECORD) ||
				  has_member(line, SS_MEMBER_SCHEMA)))
			line->problem = "message without \"type\"";
	}
	if (line->problem != NULL)
		fail(scan, line->text.data, line->problem);
}

/*
 * Scan the line that begins at "start" in the text that ends at "end".
 * Answers where the next line begins, which is "end" after the last one.
 * The slices in "line" point into the text.
 */
const char *
ss_line_scan(const char *start, const char *end, SsLine *line)
{
	Scan		scan = {end, line};
	const char *p;

	memset(line, 0, sizeof(*line));
	if (end - start >= 3 && memcmp(start, "\xEF\xBB\xBF", 3) == 0)
		start += 3;

	p = skip_space(start, end);
	line->text.data = p;
	if (byte_at(p, end) == '\n')
		line->kind = SS_LINE_EMPTY;
	else if ((p = scan_object(&scan, p)) != NULL)
	{
		line->text.length = p - line->text.data;
		p = skip_space(p, end);
		if (byte_at(p, end) == '\n')
			classify(&scan);
		else
			fail(&scan, p, "text behind the JSON object");
	}

	if (line->kind == SS_LINE_INVALID)
	{
		p = line->text.data + line->problem_at;
		p = memchr(p, '\n', end - p);
		if (p == NULL)
			p = end;
		line->text.length = p - line->text.data;
	}
	return p < end ? p + 1 : end;
}

/* Code unit that the \u escape at a position spells; its form was checked. */
static uint32_t
code_unit(const char *p)
{
	return hex_value(p[2]) << 12 | hex_value(p[3]) << 8 |
		hex_value(p[4]) << 4 | hex_value(p[5]);
}

static char *
put_utf8(char *out, uint32_t code)
{
	if (code < 0x80)
		*out++ = code;
	else if (code < 0x800)
	{
		*out++ = 0xC0 | code >> 6;
		*out++ = 0x80 | (code & 0x3F);
	}
	else if (code < 0x10000)
	{
		*out++ = 0xE0 | code >> 12;
		*out++ = 0x80 | (code >> 6 & 0x3F);
		*out++ = 0x80 | (code & 0x3F);
	}
	else
	{
		*out++ = 0xF0 | code >> 18;
		*out++ = 0x80 | (code >> 12 & 0x3F);
		*out++ = 0x80 | (code >> 6 & 0x3F);
		*out++ = 0x80 | (code & 0x3F);
	}
	return out;
}

#define IS_HIGH_SURROGATE(unit) ((unit) >= 0xD800 && (unit) < 0xDC00)
#define IS_LOW_SURROGATE(unit) ((unit) >= 0xDC00 && (unit) < 0xE000)
#define REPLACEMENT_CHARACTER 0xFFFD

/*
 * Read one \u escape, or two that make a surrogate pair, and advance *p.
 * What no text can hold, NUL and lone surrogates, becomes U+FFFD.
 */
static uint32_t
read_unicode_escape(const char **p, const char *end)
{
	uint32_t	code = code_unit(*p);

	*p += 6;
	if (IS_HIGH_SURROGATE(code) && end - *p >= 6 &&
		(*p)[0] == '\\' && (*p)[1] == 'u' && IS_LOW_SURROGATE(code_unit(*p)))
	{
		code = 0x10000 + ((code - 0xD800) << 10) + (code_unit(*p) - 0xDC00);
		*p += 6;
	}
	else if (code == 0 || (code >= 0xD800 && code < 0xE000))
		code = REPLACEMENT_CHARACTER;
	return code;
}

static char
unescape_letter(char letter)
{
	switch (letter)
	{
		case 'b':
			return '\b';
		case 'f':
			return '\f';
		case 'n':
			return '\n';
		case 'r':
			return '\r';
		case 't':
			return '\t';
		default:
			return letter;
	}
}

/*
 * Write to "out" what a string of a scanned line means, with \u escapes as
 * UTF-8, and answer its length, which is never more than quoted.length.
 */
size_t
ss_string_unescape(SsSlice quoted, char *out)
{
	const char *p = quoted.data + 1;
	const char *end = quoted.data + quoted.length - 1;
	char	   *to = out;

	while (p < end)
	{
		if (*p != '\\')
			*to++ = *p++;
		else if (p[1] == 'u')
			to = put_utf8(to, read_unicode_escape(&p, end));
		else
		{
			*to++ = unescape_letter(p[1]);
			p += 2;
		}
	}
	return to - out;
}

/* The type that messages of a kind carry; NULL for what is no message */
const char *
ss_line_kind_name(SsLineKind kind)
{
	return kind < FIRST_MESSAGE ? NULL :
		message_names[kind - FIRST_MESSAGE].name;
}
