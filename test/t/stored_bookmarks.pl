# Bookmarks of stored states: each function does to the effective state what
# its document function does, whatever the two parts are, takes from the
# completed part no more than it has to, and writes nothing if nothing changes.
# Over the sample documents and over random states of each form.

use strict;
use warnings;

use File::Spec;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

use constant STATES => 1000;
use constant SEED => 20261129;

# Few names and values, so that the two parts meet often.
my @streams = ('users', 'orders', 'a.b');
my @contexts = ('{"id": 1}', '{"id": "1"}', '{"id": 1, "eu": true}');
my @values = (
	'1', '2', '2.0', '9007199254740993', '"2026-01-01"', '"2026-02-01"',
	'null', 'false', '""', '{}', '[1]', '{"x": null}');

sub pick { return $_[ int(rand(@_)) ]; }

# Members of an object, each there with a probability.
sub object
{
	my ($probability, %member) = @_;

	return '{'
	  . join(', ',
		map { rand() < $probability ? qq("$_": ) . $member{$_}->() : () }
		  sort keys %member)
	  . '}';
}

sub value { return pick(@values); }

sub markers
{
	return rand() < 0.2 ? value()
	  : object(
		0.7,
		replication_key => sub { '"id"' },
		replication_key_value => \&value);
}

my %bookmark = (
	replication_key => sub { '"id"' },
	replication_key_value => \&value,
	replication_key_signpost => \&value,
	starting_replication_value => \&value,
	progress_markers => \&markers,
	cursor => \&value);

sub partition
{
	return object(0.4, %bookmark, context => sub { pick(@contexts) });
}

sub partitions
{
	return rand() < 0.1 ? value()
	  : '[' . join(', ', map { partition() } 1 .. int(rand(4))) . ']';
}

sub stream
{
	return rand() < 0.1 ? value()
	  : object(0.4, %bookmark, partitions => \&partitions);
}

sub streams
{
	return object(0.5, map { $_ => \&stream } @streams);
}

sub tap_state
{
	return object(
		0.8,
		bookmarks => rand() < 0.03 ? \&value : \&streams,
		currently_syncing => sub { pick('null', '"users"') });
}

# Both parts of a state, in one form.
sub state_parts
{
	my $form = rand();

	return map { qq({"singer_state": ) . streams() . '}' } 1 .. 2
	  if $form < 0.1;
	return map { streams() } 1 .. 2 if $form < 0.4;
	return map { qq({"singer_state": ) . tap_state() . '}' } 1 .. 2
	  if $form < 0.7;
	return map { tap_state() } 1 .. 2;
}

srand(SEED);
my $lines = '';
foreach (1 .. STATES)
{
	my ($completed, $partial) = state_parts();

	$completed = '{}' if rand() < 0.1;
	$partial = '{}' if rand() < 0.2;
	$lines .= qq({"completed": $completed, "partial": $partial}\n);
}

my $node = start_node('stored');
my $path = $node->basedir . '/states.jsonl';
append_to_file($path, $lines);
read_jsonl($node, 'random', $path);

run_sql(
	$node, q{
CREATE TABLE parts (n integer GENERATED ALWAYS AS IDENTITY, completed jsonb, partial jsonb, stream text);

-- What is called: a function on the stored state, and the one on documents
-- that it has to equal.  The first argument is the state, the second the stream.
CREATE TABLE call (n integer GENERATED ALWAYS AS IDENTITY, stored text, document text);
INSERT INTO call (stored, document)
SELECT format('%s(%%L, %%L, %s)', f.stored, v.args), format('%s(%%L, %%L, %s)', f.document, v.args)
FROM (VALUES
	('update_bookmark', 'set_bookmark', ARRAY[
		$$'replication_key_value', '2'$$,
		$$'cursor', '{}'$$,
		$$'cursor', '{"x": null}'$$,
		$$'progress_markers', 'null'$$,
		$$'cursor', '[1]', '{"id": 1}'$$,
		$$'context', '5', '{"id": "1"}'$$]),
	('advance_bookmark', 'advance', ARRAY[
		$$'id', '2'$$,
		$$'id', '2', '{"id": 1}'$$,
		$$'id', '"2026-01-15"'$$,
		$$'id', 'null'$$,
		$$'id', '3', is_sorted => false$$,
		$$'id', '2', '{"id": 1}', is_sorted => false$$,
		$$'id', '2', check_sorted => true$$,
		$$'id', '"2026-01-15T00:00:00Z"', is_timestamp => true$$])) AS f (stored, document, calls),
	unnest(f.calls) AS v (args);
INSERT INTO call (stored, document) VALUES
	('finalize_bookmarks(%L)', 'finalize_state_progress_markers(%L)'),
	('finalize_bookmarks(%L, %L)', 'finalize_state_progress_markers(%L, %L)'),
	('finalize_bookmarks(%L, %L, ''{"id": 1}'')', 'finalize_state_progress_markers(%L, %L, ''{"id": 1}'')'),
	('remove_stream(%L, %L)', 'clear_stream(%L, %L)');

-- increment_state, as it is on stored states: a smaller value is no error.
CREATE FUNCTION singer_state.advance(state jsonb, stream text, key text, value jsonb, context jsonb DEFAULT NULL,
	is_sorted boolean DEFAULT true, check_sorted boolean DEFAULT false, is_timestamp boolean DEFAULT false)
RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
	RETURN singer_state.increment_state(state, stream, jsonb_build_object(key, value), key,
		is_sorted, true, context, NULL, is_timestamp);
EXCEPTION WHEN SQLSTATE 'SS001' THEN
	IF check_sorted THEN
		RAISE;
	END IF;
	RETURN state;
END $$;

-- The answer or the SQLSTATE of a call.
CREATE FUNCTION attempt(call text, OUT answer text, OUT failed text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'SELECT singer_state.' || call INTO answer;
EXCEPTION WHEN OTHERS THEN
	failed := SQLSTATE;
END $$;

-- What is wrong with a call on a state, NULL if nothing is.
CREATE FUNCTION problem(p parts, c call) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	id text := format('%s %s', p.n, c.n);
	before record;
	after record;
	wanted record;
	got record;
BEGIN
	PERFORM singer_state.set(id, p.completed, p.partial, validate => false, allow_empty => true);
	SELECT s.*, singer_state.get(id) AS effective_state INTO before FROM singer_state.get_state(id) s;
	wanted := attempt(format(c.document, before.effective_state, p.stream));
	got := attempt(format(c.stored, id, p.stream));
	SELECT s.*, singer_state.get(id) AS effective_state INTO after FROM singer_state.get_state(id) s;

	IF got.failed IS DISTINCT FROM wanted.failed THEN
		RETURN format('%s, not %s', got.failed, wanted.failed);
	ELSIF got.failed IS NOT NULL AND after IS DISTINCT FROM before THEN
		RETURN 'changed by a failure';
	ELSIF got.failed IS NULL AND after.effective_state::text <> wanted.answer THEN
		RETURN format('effective: %s, not %s', after.effective_state, wanted.answer);
	ELSIF got.failed IS NULL AND after.version <> got.answer::bigint THEN
		RETURN 'another version';
	ELSIF after.effective_state::text = before.effective_state::text AND after IS DISTINCT FROM before
		AND c.stored NOT LIKE 'remove%' THEN
		RETURN 'a write for nothing';
	ELSIF after.completed_state <> before.completed_state AND c.stored NOT LIKE 'remove%'
		AND singer_state.deep_merge(before.completed_state, after.partial_state) = after.effective_state THEN
		RETURN 'completed was changed for nothing';
	ELSIF after.completed_state <> before.completed_state AND c.stored <> 'finalize_bookmarks(%L)'
		AND after.completed_state::text IS DISTINCT FROM
			(attempt(format('clear_stream(%L, %L)', before.completed_state, p.stream))).answer
		AND NOT (after.completed_state = '{}' AND after.partial_state::text = wanted.answer) THEN
		RETURN format('completed: %s', after.completed_state);
	END IF;
	RETURN NULL;
END $$;
});

# Makes all calls on all states of the table parts.
sub equals_document_functions
{
	my ($name) = @_;

	value_is(
		$node, q{
		SELECT format(c.stored, 'p', p.stream), p.completed, p.partial, problem
		FROM parts p CROSS JOIN call c CROSS JOIN LATERAL problem(p, c)
		WHERE problem IS NOT NULL
		LIMIT 20},
		'', "$name: every call does what its document function does");
	run_sql($node, 'TRUNCATE parts, singer_state.state');
	return;
}

run_sql($node, q{ALTER DATABASE postgres SET singer_state.history_limit = 0});
run_sql($node,
	q{INSERT INTO parts (completed, partial, stream) SELECT doc -> 'completed', doc -> 'partial', 'users' FROM random}
);
value_is($node, 'SELECT count(*) FROM parts', STATES, 'random states');
equals_document_functions('random states');

# The samples that are JSON objects, each as either part and as both, with
# a call on each of its streams and one on a stream that it does not have.
my $samples = 0;
foreach my $file (sort glob(data_path('states', '*.json')))
{
	my $quoted = File::Spec->rel2abs($file);
	$quoted =~ s/'/''/g;
	my ($sqlstate) = sqlstate_of(
		$node, qq{
		WITH sample AS MATERIALIZED (SELECT pg_read_file('$quoted')::jsonb AS doc)
		INSERT INTO parts (completed, partial, stream)
		SELECT part.completed, part.partial, streams.stream
		FROM sample, LATERAL (
			SELECT 'none'
			UNION (SELECT stream FROM singer_state.bookmarks(doc) GROUP BY stream ORDER BY stream LIMIT 3)) AS streams (stream),
			LATERAL (VALUES (doc, '{}'), ('{}', doc), (doc, doc)) AS part (completed, partial)
		WHERE jsonb_typeof(doc) = 'object'});

	$samples++ if $sqlstate eq '';
}
cmp_ok($samples, '>=', 75, 'samples that are JSON');
equals_document_functions('samples');

$node->stop;
done_testing();
