/*-------------------------------------------------------------------------
 *
 * message.c
 *	  Messages of taps and targets, by function call and by COPY.
 *
 * The view "messages" is there to be copied into.  Its row trigger counts,
 * its statement trigger writes the state reached; neither touches a table for
 * a line that brings no state.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "args.h"
#include "catalog/namespace.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "run_session.h"
#include "run_tally.h"
#include "utils/rel.h"

static const char *const on_error_names[] = {"stop", "skip", NULL};

PG_FUNCTION_INFO_V1(singer_state_process_message);
PG_FUNCTION_INFO_V1(singer_state_process_messages);
PG_FUNCTION_INFO_V1(singer_state_messages_insert);
PG_FUNCTION_INFO_V1(singer_state_messages_end);

/*
 * Add the lines of a text; answers how many of them were messages.
 */
static int64
add_lines(SsTally *tally, const char *bytes, size_t length, bool skip)
{
	const char *p = bytes;
	const char *end = bytes + length;
	int64		messages = 0;

	while (p < end)
	{
		SsLine		line;

		CHECK_FOR_INTERRUPTS();
		p = ss_line_scan(p, end, &line);
		ss_tally_add_line(tally, &line, skip);
		if (line.kind > SS_LINE_INVALID)
			messages++;
	}
	return messages;
}

static text *
message_arg(FunctionCallInfo fcinfo, int argno, const char *name)
{
	ss_require_arg(fcinfo, argno, name);
	return PG_GETARG_TEXT_PP(argno);
}

/*
 * process_message(run_id, message): counts one message; answers its type, or
 * NULL for an empty line.
 */
Datum
singer_state_process_message(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *id = ss_run_id_arg(fcinfo, 0);
	text	   *message = message_arg(fcinfo, 1, "message");
	const char *start = VARDATA_ANY(message);
	const char *end = start + VARSIZE_ANY_EXHDR(message);
	const char *next;
	SsTally    *tally;
	SsLine		line;

	PreventCommandIfReadOnly("process_message()");
	tally = ss_tally_open(id);
	next = ss_line_scan(start, end, &line);
	if (next < end)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("message has more than one line"),
				 errhint("process_messages takes any number of lines.")));
	ss_tally_add_line(tally, &line, false);
	ss_tally_end_statement(tally);

	if (line.kind == SS_LINE_EMPTY)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(ss_line_kind_name(line.kind ==
													   SS_LINE_BARE_STATE ?
													   SS_LINE_STATE :
													   line.kind)));
}

/*
 * process_messages(run_id, messages, on_error): counts the messages of a
 * text, one a line; answers how many they were.
 */
Datum
singer_state_process_messages(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *id = ss_run_id_arg(fcinfo, 0);
	text	   *messages = message_arg(fcinfo, 1, "messages");
	bool		skip = ss_choice_arg(fcinfo, 2, "on_error", on_error_names) == 1;
	SsTally    *tally;
	int64		count;

	PreventCommandIfReadOnly("process_messages()");
	tally = ss_tally_open(id);
	count = add_lines(tally, VARDATA_ANY(messages),
					  VARSIZE_ANY_EXHDR(messages), skip);
	ss_tally_end_statement(tally);
	PG_RETURN_INT64(count);
}

static SsTally *
open_current(void)
{
	const pg_uuid_t *current = ss_run_current();

	if (current == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this session has no current run"),
				 errhint("Call begin_run before messages are copied.")));
	return ss_tally_open(current);
}

/*
 * Does a trigger serve our view?  Another's first column need not be a text.
 */
static bool
serves_messages(const TriggerData *trigger)
{
	Relation	relation = trigger->tg_relation;

	return strcmp(RelationGetRelationName(relation), "messages") == 0 &&
		RelationGetNamespace(relation) == get_namespace_oid(SS_SCHEMA, false);
}

static void
refuse_trigger(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
			 errmsg("function \"%s\" serves view \"%s.messages\" only",
					name, SS_SCHEMA)));
}

/*
 * Row trigger of the view: adds a line, or several, to the current run.
 *
 * Answers a copy of the row.  The row itself is leaked by the server if it is
 * answered, one for each line until the end of the statement, and NULL would
 * make INSERT report that nothing was inserted.
 */
Datum
singer_state_messages_insert(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	SsTally    *tally;
	Datum		value;
	bool		isnull;

	if (!CALLED_AS_TRIGGER(fcinfo) ||
		!TRIGGER_FIRED_INSTEAD(trigger->tg_event) ||
		!TRIGGER_FIRED_BY_INSERT(trigger->tg_event) ||
		!serves_messages(trigger))
		refuse_trigger("messages_insert");

	tally = open_current();
	value = heap_getattr(trigger->tg_trigtuple, 1,
						 RelationGetDescr(trigger->tg_relation), &isnull);
	if (isnull)
	{
		/* what COPY makes of an empty line */
		tally->line++;
	}
	else
	{
		text	   *lines = DatumGetTextPP(value);

		(void) add_lines(tally, VARDATA_ANY(lines),
						 VARSIZE_ANY_EXHDR(lines), false);
	}
	return PointerGetDatum(heap_copytuple(trigger->tg_trigtuple));
}

/*
 * Statement trigger of the view: writes the state that its rows have brought.
 */
Datum
singer_state_messages_end(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) ||
		!TRIGGER_FIRED_AFTER(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_STATEMENT(trigger->tg_event) ||
		!serves_messages(trigger))
		refuse_trigger("messages_end");

	if (ss_run_current() != NULL)
		ss_tally_end_statement(open_current());
	return PointerGetDatum(NULL);	/* not SQL NULL, for a trigger */
}
