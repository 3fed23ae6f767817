# Documents at the limit of size, and one of 20,000 partitions through every
# function of the store.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use Test::More;

use constant LIMIT => 64 * 1024 * 1024;

my $node = start_node('large');

value_is(
	$node, q{
	LOAD 'singer_state';
	SELECT pg_size_bytes(current_setting('singer_state.max_state_size'))},
	LIMIT, 'the default limit');

# documents of just the limit, and of one byte more
run_sql(
	$node, sprintf(
		q{
	CREATE FUNCTION filled(bytes integer) RETURNS jsonb LANGUAGE sql AS $$
		SELECT jsonb_build_object('bookmarks', jsonb_build_object('users',
			jsonb_build_object('token', repeat('x', bytes))))
	$$;
	CREATE FUNCTION sized(bytes integer) RETURNS jsonb LANGUAGE sql AS $$
		SELECT filled(bytes - pg_column_size(filled(1000)) + 1000)
	$$;
	CREATE FUNCTION at_limit() RETURNS jsonb LANGUAGE sql AS
		'SELECT sized(%1$d)';
	CREATE FUNCTION over_limit() RETURNS jsonb LANGUAGE sql AS
		'SELECT sized(%1$d + 1)'},
		LIMIT));
value_is(
	$node,
	'SELECT pg_column_size(at_limit()), pg_column_size(over_limit())',
	LIMIT . '|' . (LIMIT + 1), 'documents of the sizes meant');

value_is(
	$node, q{
	SELECT singer_state.set('big', at_limit());
	SELECT singer_state.get('big') = at_limit();
	SELECT singer_state.set('big', at_limit())},
	"1\nt\n1", 'a document of just the limit is stored and read');
my $row = q{SELECT xmin, ctid, version FROM singer_state.state
	WHERE state_id = 'big'};
my $before = run_sql($node, $row);

foreach my $call (
	q{singer_state.set('big', over_limit())},
	q{singer_state.set('new', over_limit())},
	q{singer_state.set('new', '{"a": 1}', over_limit())},
	q{singer_state.set('new', over_limit(), validate => false)},
	q{singer_state.merge('big', over_limit())},
	q{singer_state.merge('new', over_limit())},
	q{singer_state.update('big', '{}', over_limit())},
	q{singer_state.import(jsonb_build_object('new', jsonb_build_object('completed', over_limit())))})
{
	fails_with($node, "SELECT $call", '54000', qr/max_state_size/,
		"refused: $call");
}

# the size is that of the result
fails_with(
	$node, q{
	BEGIN;
	SELECT singer_state.merge('big', '{"bookmarks": {"users": {"id": 1}}}');
	SELECT singer_state.promote('big')},
	'54000', qr/max_state_size/, 'refused: what grows over the limit');
is(run_sql($node, $row), $before, 'the old row is intact');
value_is($node, q{SELECT singer_state.get('big') = at_limit()},
	't', 'and what it holds');
value_is($node, q{SELECT singer_state.get('new') IS NULL},
	't', 'nothing new was stored');

# 20,000 partitions, each function once.  The time allowed is far above what
# a linear function needs and far below what a quadratic one takes.
run_sql(
	$node, q{
	CREATE FUNCTION partitions(first integer, n integer, value integer)
	RETURNS jsonb LANGUAGE sql AS $$
		SELECT jsonb_build_object('bookmarks', jsonb_build_object('orders',
			jsonb_build_object('partitions', jsonb_agg(jsonb_build_object(
				'context', jsonb_build_object('store', i, 'region', 'r' || i % 7),
				'replication_key', 'updated_at',
				'replication_key_value', value + i) ORDER BY i))))
		FROM generate_series(first, first + n - 1) i
	$$;
	CREATE FUNCTION counted(id text) RETURNS bigint LANGUAGE sql AS $$
		SELECT jsonb_array_length(singer_state.get(id)
			#> '{bookmarks,orders,partitions}')
	$$});
foreach my $case (
	[ q{singer_state.set('p', partitions(1, 20000, 0))}, '1' ],
	[ q{counted('p')}, '20000' ],
	[ q{singer_state.set('p', partitions(1, 20000, 0))}, '1' ],
	[ q{singer_state.merge('p', partitions(1, 20000, 1))}, '2' ],
	[ q{singer_state.merge('p', partitions(10001, 20000, 2), by_context => true)},
		'3' ],
	[ q{counted('p')}, '30000' ],
	[ q{singer_state.promote('p')}, '4' ],
	[ q{singer_state.update('p', partitions(1, 20000, 3))}, '5' ],
	[ q{singer_state.update('p', NULL, partitions(1, 20000, 4))}, '6' ],
	[ q{counted('p')}, '20000' ],
	[ q{count(*) FROM singer_state.get_state('p')}, '1' ],
	[ q{count(*) FROM singer_state.copy('p', 'q')}, '1' ],
	[ q{count(*) FROM singer_state.move('q', 'r')}, '1' ],
	[ q{count(*) FROM singer_state.merge_from('r', 's')}, '1' ],
	[ q{counted('s')}, '20000' ],
	[ q{count(*) FROM singer_state.list('[prs]')}, '3' ],
	[ q{count(*) FROM jsonb_object_keys(singer_state.export('[prs]'))}, '3' ],
	[ q{singer_state.import(singer_state.export('[prs]'), on_conflict => 'overwrite') IS NOT NULL},
		't' ],
	[ q{count(*) FROM singer_state.history('p')}, '5' ],
	[ q{jsonb_array_length(singer_state.state_at('p', 3) #> '{bookmarks,orders,partitions}')}, '30000' ],
	[ q{count(*) FROM singer_state.diff('p', 2, 6)}, '20000' ],
	[ q{count(*) FROM singer_state.diff('p', 1, 4)}, '40000' ],
	[ q{singer_state.restore('p', 4)}, '7' ],
	[ q{counted('p')}, '30000' ],
	[ q{count(*) FROM singer_state.states WHERE effective_state IS NOT NULL},
		'4' ],
	[ q{singer_state.clear('r')}, 't' ],
	[ q{count(*) FROM singer_state.clear_all('[ps]')}, '2' ])
{
	my $start = time();

	value_is($node, "SET statement_timeout = '60s'; SELECT $case->[0]",
		$case->[1], "20,000 partitions: $case->[0]");
	note(time() - $start, ' s');
}

# Depth is limited by the stack, and says so.
my ($deep, $said) = sqlstate_of($node, q{
	SELECT singer_state.set('deep', (repeat('{"a":', 5000) || '1' || repeat('}', 5000))::jsonb);
	SELECT singer_state.merge('deep', (repeat('{"a":', 5000) || '2' || repeat('}', 5000))::jsonb);
	SELECT singer_state.get('deep') = (repeat('{"a":', 5000) || '2' || repeat('}', 5000))::jsonb});
like($deep, qr/^(?:54001)?$/, 'a document 5,000 levels deep');

$node->stop;
done_testing();
