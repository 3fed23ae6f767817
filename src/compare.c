/*-------------------------------------------------------------------------
 *
 * compare.c
 *	  Order of replication values, and the timestamps among them.
 *
 * As in the Singer SDK, which compares as Python does: numbers as numbers
 * (true is 1, false is 0), strings by code point, and nothing else.  As
 * timestamps, values compare as instants.
 *
 * Timestamps are read as Python's datetime.fromisoformat() reads them, and
 * not by the server's input function, whose answer depends on TimeZone and
 * DateStyle and which accepts much that a tap would not.  Naive means UTC.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "compare.h"
#include "mb/pg_wchar.h"
#include "utils/datetime.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

/* The rest of a string that is being read */
typedef struct Reader
{
	const char *next;
	const char *end;
} Reader;

/*
 * The message part for a value: as it would be printed in a document.
 */
static const char *
value_text(const SsValue *value)
{
	Jsonb	   *jsonb = ss_value_to_jsonb(value);

	return JsonbToCString(NULL, &jsonb->root, VARSIZE(jsonb));
}

/* ---------------------------------------------------------------------------
 * Timestamps
 * ---------------------------------------------------------------------------
 */

static bool
read_char(Reader *reader, char wanted)
{
	if (reader->next >= reader->end || *reader->next != wanted)
		return false;
	reader->next++;
	return true;
}

/*
 * Read a number of exactly so many digits.
 */
static bool
read_digits(Reader *reader, int digits, int *result)
{
	*result = 0;
	if (reader->end - reader->next < digits)
		return false;
	for (; digits > 0; digits--, reader->next++)
	{
		if (*reader->next < '0' || *reader->next > '9')
			return false;
		*result = *result * 10 + (*reader->next - '0');
	}
	return true;
}

/*
 * The fraction of a second, in microseconds: what is finer is cut off.
 */
static bool
read_fraction(Reader *reader, int *microseconds)
{
	int			scale = 100000;
	const char *start = reader->next;

	*microseconds = 0;
	for (; reader->next < reader->end; reader->next++)
	{
		if (*reader->next < '0' || *reader->next > '9')
			break;
		*microseconds += (*reader->next - '0') * scale;
		scale /= 10;
	}
	return reader->next > start;
}

/*
 * A date: 2021-05-17, 20210517, 2021-W20-1, 2021W201, or a week alone.  The
 * answer is a Julian day.
 */
static bool
read_date(Reader *reader, int *julian_day)
{
	int			year,
				month,
				day = 1;
	bool		dashed;

	if (!read_digits(reader, 4, &year) || year < 1)
		return false;
	dashed = read_char(reader, '-');

	if (read_char(reader, 'W'))
	{
		int			week;

		if (!read_digits(reader, 2, &week) || week < 1 || week > 53)
			return false;
		if (dashed ? read_char(reader, '-') :
			(reader->next < reader->end &&
			 *reader->next >= '0' && *reader->next <= '9'))
		{
			if (!read_digits(reader, 1, &day) || day < 1 || day > 7)
				return false;
		}
		*julian_day = isoweek2j(year, week) + day - 1;
		return week < 53 || isoweek2j(year + 1, 1) > *julian_day;
	}

	if (!read_digits(reader, 2, &month) || month < 1 || month > 12 ||
		(dashed && !read_char(reader, '-')) ||
		!read_digits(reader, 2, &day) ||
		day < 1 || day > day_tab[isleap(year)][month - 1])
		return false;
	*julian_day = date2j(year, month, day);
	return true;
}

/*
 * A time of day or an offset, in microseconds: 20, 20:41, 20:41:16,
 * 20:41:16.5, or the same without colons.
 */
static bool
read_time(Reader *reader, int64 *microseconds)
{
	int			fields[3] = {0, 0, 0};
	int			fraction = 0;
	bool		colons = false;

	for (int i = 0; i < 3; i++)
	{
		if (i == 1)
			colons = read_char(reader, ':');
		else if (i == 2 && colons && !read_char(reader, ':'))
			break;
		if (i > 0 && !colons &&
			(reader->next >= reader->end ||
			 *reader->next < '0' || *reader->next > '9'))
			break;
		if (!read_digits(reader, 2, &fields[i]) ||
			fields[i] >= (i == 0 ? HOURS_PER_DAY : 60))
			return false;
		if (i == 2 && (read_char(reader, '.') || read_char(reader, ',')) &&
			!read_fraction(reader, &fraction))
			return false;
	}
	*microseconds = ((fields[0] * 60 + fields[1]) * 60 + fields[2]) *
		USECS_PER_SEC + fraction;
	return true;
}

/*
 * What follows the date: a separator of any kind, the time, and perhaps the
 * offset from UTC.
 */
static bool
read_time_and_offset(Reader *reader, int64 *microseconds)
{
	int64		offset = 0;
	bool		west = false;

	/* one character, which may have several bytes */
	do
		reader->next++;
	while (reader->next < reader->end && (*reader->next & 0xC0) == 0x80);
	if (!read_time(reader, microseconds))
		return false;

	if (read_char(reader, 'Z') || reader->next == reader->end)
		return reader->next == reader->end;
	west = read_char(reader, '-');
	if ((!west && !read_char(reader, '+')) || !read_time(reader, &offset))
		return false;
	*microseconds += west ? offset : -offset;
	return reader->next == reader->end;
}

/*
 * The instant that a value means.  Errors if it is not an ISO 8601 timestamp.
 */
TimestampTz
ss_timestamp_from_value(const SsValue *value)
{
	Reader		reader = {value->data, value->data + value->len};
	int			julian_day;
	int64		microseconds = 0;

	if (!ss_value_is_string(value))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("%s is not a timestamp", value_text(value)),
				 errdetail("A timestamp is a JSON string in ISO 8601 format.")));

	if (!read_date(&reader, &julian_day) ||
		(reader.next < reader.end &&
		 !read_time_and_offset(&reader, &microseconds)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is not a timestamp", value_text(value)),
				 errhint("Timestamps are in ISO 8601 format, such as \"2021-05-17T20:41:16Z\".")));

	return (int64) (julian_day - POSTGRES_EPOCH_JDATE) * USECS_PER_DAY +
		microseconds;
}

/* ---------------------------------------------------------------------------
 * Order
 * ---------------------------------------------------------------------------
 */

/*
 * The bytes of a string in UTF-8, whose order is that of the code points.
 */
static const char *
utf8_bytes(const SsValue *value, size_t *len)
{
	char	   *utf8 = pg_server_to_any(value->data, value->len, PG_UTF8);

	*len = utf8 == value->data ? value->len : strlen(utf8);
	return utf8;
}

static int
compare_strings(const SsValue *a, const SsValue *b)
{
	size_t		alen,
				blen;
	const char *abytes = utf8_bytes(a, &alen);
	const char *bbytes = utf8_bytes(b, &blen);
	int			difference = memcmp(abytes, bbytes, Min(alen, blen));

	if (difference == 0)
		return (alen > blen) - (alen < blen);
	return difference;
}

/*
 * A number, or a boolean as one.  False if it is neither.
 */
static bool
number_from_value(const SsValue *value, Datum *number)
{
	switch (value->type)
	{
		case JENTRY_ISNUMERIC:
			*number = PointerGetDatum(value->data);
			return true;
		case JENTRY_ISBOOL_TRUE:
		case JENTRY_ISBOOL_FALSE:
			*number = DirectFunctionCall1(int4_numeric,
										  Int32GetDatum(value->type == JENTRY_ISBOOL_TRUE));
			return true;
		default:
			return false;
	}
}

/*
 * Compare two replication values; errors if they do not compare.
 */
int
ss_replication_compare(const SsValue *a, const SsValue *b, bool is_timestamp)
{
	Datum		anumber,
				bnumber;

	if (is_timestamp)
		return timestamp_cmp_internal(ss_timestamp_from_value(a),
									  ss_timestamp_from_value(b));
	if (ss_value_is_string(a) && ss_value_is_string(b))
		return compare_strings(a, b);
	if (number_from_value(a, &anumber) && number_from_value(b, &bnumber))
		return DatumGetInt32(DirectFunctionCall2(numeric_cmp, anumber, bnumber));

	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("replication values %s and %s do not compare",
					value_text(a), value_text(b)),
			 errdetail("Numbers compare with numbers and strings with strings.")));
	return 0;					/* keep compilers quiet */
}
