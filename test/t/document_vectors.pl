# The document functions against the recorded answers of the Singer SDK,
# singer-python and the SDK's start date rule: every line, and how many agree.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use Test::More;

my $node = start_node('vectors');

read_jsonl($node, 'sdk', data_path('vectors', 'sdk_stream_state.jsonl'));
read_jsonl($node, 'python', data_path('vectors', 'singer_python.jsonl'));
read_jsonl($node, 'start_date', data_path('vectors', 'start_date.jsonl'));

# Tests that a query, which answers a row for each line that does not agree,
# answers none, and that a count of the lines is as it was recorded.
sub all_agree
{
	my ($table, $lines, $query) = @_;
	my $failures = run_sql($node, $query);
	my $count = run_sql($node, "SELECT count(*) FROM $table");
	my $failed = () = $failures =~ /^.+$/mg;

	is($count, $lines, "$table: lines");
	is($failures, '', "$table: every line agrees");
	note("$table: " . ($count - $failed) . " of $count lines agree");
}

run_sql(
	$node, q{
-- An answer as Python has it: None for what is not there.
CREATE FUNCTION json_or_null(value jsonb) RETURNS jsonb LANGUAGE sql AS
$$ SELECT coalesce(value, 'null') $$;

CREATE FUNCTION text_array(list jsonb) RETURNS text[] LANGUAGE sql AS
$$ SELECT CASE WHEN jsonb_typeof(list) = 'array'
	THEN ARRAY(SELECT jsonb_array_elements_text(list)) END $$;

-- The state after one operation on a stream, and its answer.
CREATE FUNCTION run_sdk(v jsonb, state jsonb, op jsonb,
	OUT after jsonb, OUT answer jsonb) LANGUAGE plpgsql AS $$
DECLARE
	stream text := v ->> 'stream';
	keys text[] := text_array(v -> 'state_partitioning_keys');
	context jsonb := singer_state.partition_context(op -> 'context', keys);
BEGIN
	after := state;
	CASE op ->> 'op'
	WHEN 'increment' THEN
		after := singer_state.increment_state(state, stream, op -> 'record',
			op ->> 'replication_key', (v ->> 'is_sorted')::boolean,
			(v ->> 'check_sorted')::boolean, op -> 'context', keys);
	WHEN 'finalize' THEN
		after := singer_state.finalize_state_progress_markers(state, stream, context);
	WHEN 'signpost' THEN
		after := singer_state.write_replication_key_signpost(state, stream,
			op -> 'value', context);
	WHEN 'start' THEN
		after := singer_state.write_starting_replication_value(state, stream,
			op ->> 'method', op ->> 'replication_key',
			op -> 'config' ->> 'start_date', false, context);
	WHEN 'starting' THEN
		answer := json_or_null(singer_state.get_starting_replication_value(
			state, stream, op ->> 'method', context));
	WHEN 'non_resumable' THEN
		answer := to_jsonb(singer_state.is_state_non_resumable(
			state, stream, context => context));
	WHEN 'partitions' THEN
		answer := json_or_null(singer_state.partitions(state, stream));
	WHEN 'context_state' THEN
		answer := coalesce(singer_state.stream_state(state, stream, context),
			CASE WHEN context IS NULL THEN '{}'
				ELSE jsonb_build_object('context', context) END);
	END CASE;
END $$;

-- Runs all operations of a line; answers the first that disagrees.
CREATE FUNCTION check_sdk(v jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	state jsonb := v -> 'initial';
	op jsonb;
	after jsonb;
	answer jsonb;
	failed text;
BEGIN
	FOR op IN SELECT value FROM jsonb_array_elements(v -> 'ops') LOOP
		failed := NULL;
		BEGIN
			SELECT r.after, r.answer INTO after, answer
			FROM run_sdk(v, state, op) r;
		EXCEPTION WHEN SQLSTATE '22023' OR SQLSTATE '42804' OR SQLSTATE 'SS001' THEN
			failed := SQLSTATE;
		END;
		IF failed IS DISTINCT FROM (CASE op ->> 'error'
			WHEN 'KeyError' THEN '22023' WHEN 'TypeError' THEN '42804'
			WHEN 'unsorted' THEN 'SS001' END)
		THEN
			RETURN format('%s: error %s', op, failed);
		END IF;
		CONTINUE WHEN failed IS NOT NULL;
		IF op ? 'out' THEN
			IF answer IS DISTINCT FROM op -> 'out' THEN
				RETURN format('%s: answer %s', op, answer);
			END IF;
		ELSIF after IS DISTINCT FROM op -> 'state' THEN
			RETURN format('%s: state %s', op, after);
		END IF;
		-- the SDK's readers make what they look for
		state := op -> 'state';
	END LOOP;
	RETURN NULL;
END $$;
});

all_agree('sdk', 300,
	'SELECT line, check_sdk(doc) FROM sdk WHERE check_sdk(doc) IS NOT NULL');

run_sql(
	$node, q{
CREATE FUNCTION run_python(v jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	s jsonb := v -> 'state';
	a jsonb := v -> 'args';
BEGIN
	RETURN CASE v ->> 'fn'
	WHEN 'get_bookmark' THEN json_or_null(singer_state.get_bookmark(s, a ->> 0, a ->> 1))
	WHEN 'set_bookmark' THEN singer_state.set_bookmark(s, a ->> 0, a ->> 1, a -> 2)
	WHEN 'clear_bookmark' THEN singer_state.clear_bookmark(s, a ->> 0, a ->> 1)
	WHEN 'reset_stream' THEN singer_state.reset_stream(s, a ->> 0)
	WHEN 'get_offset' THEN json_or_null(singer_state.get_offset(s, a ->> 0))
	WHEN 'set_offset' THEN singer_state.set_offset(s, a ->> 0, a ->> 1, a -> 2)
	WHEN 'clear_offset' THEN singer_state.clear_offset(s, a ->> 0)
	WHEN 'get_currently_syncing' THEN
		json_or_null(to_jsonb(singer_state.get_currently_syncing(s)))
	WHEN 'set_currently_syncing' THEN singer_state.set_currently_syncing(s, a ->> 0)
	WHEN 'get_version' THEN json_or_null(singer_state.get_version(s, a ->> 0))
	WHEN 'set_version' THEN singer_state.set_version(s, a ->> 0, a -> 1)
	WHEN 'clear_version' THEN singer_state.clear_version(s, a ->> 0)
	END;
END $$;
});

all_agree('python', 300,
	q{SELECT line, doc, run_python(doc) FROM python
		WHERE run_python(doc) IS DISTINCT FROM doc -> 'out'});

# A time zone and a date style that would show in any other way to read
# timestamps.
run_sql(
	$node, q{
ALTER DATABASE postgres SET TimeZone = 'Asia/Kolkata';
ALTER DATABASE postgres SET DateStyle = 'SQL, DMY';

CREATE FUNCTION run_start_date(v jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	state jsonb := jsonb_build_object('bookmarks', jsonb_build_object('s',
		jsonb_build_object('replication_key', 'k',
			'replication_key_value', v -> 'value')));
BEGIN
	state := singer_state.write_starting_replication_value(state, 's',
		'INCREMENTAL', 'k', v ->> 'start_date', true);
	RETURN jsonb_build_object(
		'out', singer_state.get_starting_replication_value(state, 's'),
		'instant', extract(epoch FROM singer_state.get_starting_timestamp(state, 's')));
EXCEPTION WHEN SQLSTATE '22023' THEN
	RETURN '{"error": true}';
END $$;

CREATE FUNCTION expected_start_date(v jsonb) RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object(
		'out', v -> 'out',
		'instant', extract(epoch FROM
			greatest((v ->> 'value_utc')::timestamptz,
				(v ->> 'start_date_utc')::timestamptz)))
$$;
});

# An empty value is false to Python, which then never looks at it as a date.
all_agree('start_date', 306,
	q{SELECT line, doc, run_start_date(doc) FROM start_date
		WHERE run_start_date(doc) IS DISTINCT FROM
			CASE WHEN doc ? 'error' AND doc ->> 'value' <> '' THEN '{"error": true}'
			WHEN doc ? 'error' THEN '{"out": "2021-01-01T00:00:00Z", "instant": 1609459200.000000}'
			ELSE expected_start_date(doc) END});

done_testing();
