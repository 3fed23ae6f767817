# On a standby the store reads, and each write says that it cannot be.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $primary = start_node('primary', allows_streaming => 1);

run_sql(
	$primary, q{
	SELECT singer_state.set('a', '{"bookmarks": {"users": {"id": 1}}}');
	SELECT singer_state.merge('a', '{"bookmarks": {"users": {"id": 2}}}');
	SELECT singer_state.set('b', '{"bookmarks": {"users": {"id": 3}}}')});

$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

run_sql($primary,
	q{SELECT singer_state.merge('a', '{"bookmarks": {"orders": {"id": 4}}}')});
my $caught_up =
  run_sql($primary, 'SELECT pg_current_wal_insert_lsn()');
ok( $standby->poll_query_until(
		'postgres',
		"SELECT pg_last_wal_replay_lsn() >= '$caught_up'"),
	'the standby follows');

foreach my $case (
	[
		q{singer_state.get('a')},
		'{"bookmarks": {"users": {"id": 2}, "orders": {"id": 4}}}'
	],
	[ q{version FROM singer_state.get_state('a')}, '3' ],
	[ q{singer_state.get('none') IS NULL}, 't' ],
	[ q{array_agg(l) FROM singer_state.list() l}, '{a,b}' ],
	[
		q{singer_state.export('b')},
		'{"b": {"partial": {}, "completed": {"bookmarks": {"users": {"id": 3}}}}}'
	],
	[ q{array_agg(version) FROM singer_state.history('a')}, '{2,1}' ],
	[ q{count(*) FROM singer_state.state_at('a', 1)}, '1' ],
	[ q{count(*) > 0 FROM singer_state.diff('a', 1, 3)}, 't' ],
	[ q{count(*) FROM singer_state.states}, '2' ])
{
	value_is($standby, "SELECT $case->[0]", $case->[1],
		"reads: $case->[0]");
}

foreach my $call (
	q{singer_state.set('a', '{"x": 1}')},
	q{singer_state.set('new', '{"x": 1}')},
	q{singer_state.merge('a', '{"x": 1}')},
	q{singer_state.update('a', '{"x": 1}')},
	q{singer_state.promote('a')},
	q{singer_state.clear('a')},
	q{singer_state.clear_all('*')},
	q{singer_state.copy('a', 'c')},
	q{singer_state.move('a', 'c')},
	q{singer_state.merge_from('a', 'b')},
	q{singer_state.import('{"c": {"completed": {"a": 1}}}')},
	q{singer_state.restore('a', 1)})
{
	fails_with($standby, "SELECT $call", '25006', undef, "standby: $call");
	fails_with($primary, "BEGIN READ ONLY; SELECT $call",
		'25006', undef, "read-only transaction: $call");
}
value_is($primary, q{SELECT version FROM singer_state.get_state('a')},
	'3', 'nothing was written');

# Promoted, it is a store like any other.
$standby->promote;
value_is(
	$standby, q{
	SELECT singer_state.merge('a', '{"bookmarks": {"users": {"id": 5}}}');
	SELECT singer_state.get('a');
	SELECT version FROM singer_state.history('a') LIMIT 1},
	qq{4\n{"bookmarks": {"users": {"id": 5}, "orders": {"id": 4}}}\n3},
	'after failover writes go on where they were');

$standby->stop;
$primary->stop;
done_testing();
