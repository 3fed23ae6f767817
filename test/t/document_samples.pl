# State documents as taps, Meltano, Airbyte and others leave them, through
# every document function: no reader fails on any of them, and a writer of one
# stream leaves all the others as they were.

use strict;
use warnings;

use File::Basename;
use File::Spec;
use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use Test::More;

# What jsonb itself does not take.
my %unreadable = map { $_ => 1 } qw(90_raw_nan 91_raw_nul_escape
  92_raw_lone_surrogate 94_raw_concatenated 96_raw_empty_file);

my $node = start_node('samples');
my $samples = 0;

run_sql($node, 'CREATE TABLE sample (name text PRIMARY KEY, doc jsonb)');
foreach my $file (sort glob(data_path('states', '*.json')))
{
	my $name = basename($file, '.json');
	my $path = File::Spec->rel2abs($file);

	next if $unreadable{$name};
	$path =~ s/'/''/g;
	run_sql($node,
		"INSERT INTO sample VALUES ('$name', pg_read_file('$path')::jsonb)");
	$samples++;
}
cmp_ok($samples, '>=', 75, 'the sample documents are there');

# Each document with each of its streams, and with one that it does not have;
# with each context that is there once.
run_sql(
	$node, q{
	CREATE TABLE place AS
	SELECT name, doc, stream, NULL::jsonb AS context
	FROM sample, LATERAL (
		SELECT 'none' UNION SELECT stream FROM singer_state.bookmarks(doc)) s (stream)
	UNION ALL
	SELECT name, doc, stream, min(context::text)::jsonb
	FROM sample, singer_state.bookmarks(doc) b
	WHERE jsonb_typeof(context) = 'object' AND context <> '{}'
	GROUP BY name, doc, stream, context HAVING count(*) = 1});
value_is($node,
	'SELECT count(DISTINCT name), count(*) > 2000 FROM place WHERE doc IS NOT NULL',
	"$samples|t", 'places to read');

foreach my $reader (
	q{get_bookmark(doc, stream, 'replication_key_value', context)},
	q{get_bookmark(doc, 'none', stream, context)},
	q{stream_state(doc, stream, context)},
	q{partitions(doc, stream)},
	q{get_offset(doc, stream)},
	q{get_version(doc, stream)},
	q{get_currently_syncing(doc)},
	q{get_starting_replication_value(doc, stream, 'INCREMENTAL', context)},
	q{get_starting_replication_value(doc, stream, 'FULL_TABLE', context)},
	q{is_state_non_resumable(doc, stream, 'INCREMENTAL', context)},
	q{partition_context(doc, ARRAY[stream])},
	q{deep_merge(doc, doc)},
	q{deep_merge(doc, jsonb_build_array(doc))},
	q{bookmark_part(doc, stream, context)})
{
	value_is($node, "SELECT count(*) FROM (SELECT singer_state.$reader AS answer FROM place OFFSET 0) s",
		run_sql($node, 'SELECT count(*) FROM place'), "$reader never fails");
}
foreach my $reader ('bookmarks(doc)', 'check_state(doc)',
	q{diff_states(doc, '{}')}, 'diff_states(NULL, doc)')
{
	value_is($node,
		"SELECT count(DISTINCT name) FROM sample LEFT JOIN LATERAL singer_state.$reader r ON true",
		$samples, "$reader never fails");
}
value_is($node,
	'SELECT count(*) FROM sample, singer_state.diff_states(doc, doc)',
	'0', 'no document differs from itself');
value_is($node,
	'SELECT name FROM sample WHERE singer_state.deep_merge(doc, doc) <> doc',
	'', 'a document merged into itself is itself');

# Readers agree with each other: what bookmarks() lists, stream_state() finds.
value_is(
	$node, q{
	SELECT p.name, p.stream, p.context
	FROM place p JOIN sample s USING (name), singer_state.bookmarks(s.doc) b
	WHERE b.stream = p.stream AND b.context = p.context
	AND jsonb_typeof(singer_state.stream_state(p.doc, p.stream) -> 'partitions') = 'array'
	AND b.bookmark IS DISTINCT FROM singer_state.stream_state(p.doc, p.stream, p.context) - 'partitions'},
	'', 'bookmarks() and stream_state() agree');

# Setting and clearing a key of one stream: everything else is as it was.  (A
# null where there should be an object becomes one, and stays it.)
run_sql(
	$node, q{
	-- NULL where the document cannot hold a bookmark of the stream.
	CREATE FUNCTION attempt(call text) RETURNS jsonb LANGUAGE plpgsql AS $$
	DECLARE
		answer jsonb;
	BEGIN
		EXECUTE 'SELECT singer_state.' || call INTO answer;
		RETURN answer;
	EXCEPTION WHEN invalid_parameter_value THEN
		RETURN NULL;
	END $$;
	CREATE TABLE written AS
	SELECT name, doc, stream, context,
		attempt(format('set_bookmark(%L, %L, ''new key'', ''[1]'', %L)', doc, stream, context)) AS changed
	FROM place
	WHERE (context IS NULL OR name <> '73_very_large_partitions'
		OR context::text LIKE '%77%')
	AND singer_state.stream_state(doc, stream) IS DISTINCT FROM 'null'
	AND name <> '69_null_bookmarks'});
value_is($node,
	'SELECT count(DISTINCT name) > 60 FROM written WHERE changed IS NOT NULL',
	't', 'most documents can be written');
value_is(
	$node, q{
	SELECT name, stream, context FROM written
	WHERE changed IS NOT NULL
	AND (SELECT array_agg(format('%s %s %s', d.stream, d.context, d.new_value))
		FROM singer_state.diff_states(doc, changed) d)
		IS DISTINCT FROM ARRAY[format('%s %s %s', stream, context, '[1]')]},
	'', 'set_bookmark changes one key of one stream');
value_is(
	$node, q{
	SELECT name, stream, context FROM written
	WHERE changed IS NOT NULL AND stream <> 'none'
	AND singer_state.clear_bookmark(changed, stream, 'new key', context) <> doc},
	'', 'clear_bookmark takes it away again');

$node->stop;
done_testing();
