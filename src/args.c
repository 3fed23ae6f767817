/*-------------------------------------------------------------------------
 *
 * args.c
 *	  Arguments of SQL functions: fetched, checked, never NULL by surprise.
 *
 * Most functions have arguments that may be NULL beside some that may not, so
 * they are not STRICT, and a NULL where a value is needed is an error: a
 * silent NULL in answer would look like "no such state".
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include <math.h>

#include "args.h"
#include "claim.h"
#include "lib/stringinfo.h"
#include "state_id.h"
#include "utils/timestamp.h"
#include "validate.h"

/*
 * Refuse NULL for the argument of the given name.
 */
void
ss_require_arg(FunctionCallInfo fcinfo, int argno, const char *name)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", name)));
}

/*
 * The state id that a function was given: checked, never NULL.
 */
text *
ss_state_id_arg(FunctionCallInfo fcinfo, int argno)
{
	text	   *state_id;

	ss_require_arg(fcinfo, argno, "state id");
	state_id = PG_GETARG_TEXT_PP(argno);
	ss_state_id_check(state_id);
	return state_id;
}

/*
 * A document that a function was given, by the name of its argument: never
 * NULL, and a good state if it is to be validated.
 */
Jsonb *
ss_document_arg(FunctionCallInfo fcinfo, int argno, const char *name,
				bool validate)
{
	Jsonb	   *document;

	ss_require_arg(fcinfo, argno, name);
	document = PG_GETARG_JSONB_P(argno);
	ss_document_check_kind(document);
	if (validate)
		ss_document_validate(document);
	return document;
}

/*
 * A document in which a bookmark is to be found or changed.
 */
Jsonb *
ss_jsonb_arg(FunctionCallInfo fcinfo, int argno, const char *name)
{
	ss_require_arg(fcinfo, argno, name);
	return PG_GETARG_JSONB_P(argno);
}

/*
 * A JSON value that goes into a document.
 */
SsValue
ss_value_arg(FunctionCallInfo fcinfo, int argno, const char *name)
{
	return ss_value_from_jsonb(ss_jsonb_arg(fcinfo, argno, name));
}

/*
 * A text that is a key or a string of a document.
 */
SsValue
ss_string_arg(FunctionCallInfo fcinfo, int argno, const char *name)
{
	ss_require_arg(fcinfo, argno, name);
	return ss_value_from_text(PG_GETARG_TEXT_PP(argno));
}

/*
 * A context, NULL if it means the stream itself.
 */
const SsValue *
ss_context_arg(FunctionCallInfo fcinfo, int argno)
{
	SsValue    *context;

	if (PG_ARGISNULL(argno))
		return NULL;
	context = palloc(sizeof(SsValue));
	*context = ss_value_from_jsonb(PG_GETARG_JSONB_P(argno));
	if (ss_value_is_null(context) ||
		(ss_value_is_object(context) &&
		 JsonContainerSize(ss_value_container(context)) == 0))
		return NULL;
	return context;
}

/*
 * A boolean that must not be NULL.
 */
bool
ss_flag_arg(FunctionCallInfo fcinfo, int argno, const char *name)
{
	ss_require_arg(fcinfo, argno, name);
	return PG_GETARG_BOOL(argno);
}

/*
 * A time to wait that a function was given, in milliseconds: NULL is the
 * standard one, negative is for ever.
 */
int
ss_timeout_arg(FunctionCallInfo fcinfo, int argno, int standard)
{
	Interval   *interval;
	double		milliseconds;

	if (PG_ARGISNULL(argno))
		return standard;

	interval = PG_GETARG_INTERVAL_P(argno);
	milliseconds = interval->time / 1000.0 +
		(interval->day + interval->month * (double) DAYS_PER_MONTH) *
		SECS_PER_DAY * 1000.0;
	if (milliseconds < 0)
		return SS_WAIT_FOREVER;
	return (int) Min(ceil(milliseconds), INT_MAX);
}

/*
 * One of several words, by its position in a list that NULL ends.
 */
int
ss_choice_arg(FunctionCallInfo fcinfo, int argno, const char *name,
			  const char *const *choices)
{
	StringInfoData known;
	char	   *word;

	ss_require_arg(fcinfo, argno, name);
	word = text_to_cstring(PG_GETARG_TEXT_PP(argno));
	initStringInfo(&known);
	for (int i = 0; choices[i] != NULL; i++)
	{
		if (strcmp(word, choices[i]) == 0)
			return i;
		appendStringInfo(&known, "%s\"%s\"", i == 0 ? "" :
						 choices[i + 1] != NULL ? ", " : " or ", choices[i]);
	}

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized value for %s: \"%s\"", name, word),
			 errhint("Use %s.", known.data)));
}
