# Updates of a small state stay HOT, and a transaction may write one state as
# often as it likes.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use Test::More;

use constant UPDATES => 2000;

my $node = start_node('hot');
my $flush = run_sql($node, 'SHOW server_version_num') >= 150000
  ? 'SELECT pg_stat_force_next_flush();'
  : '';

foreach my $limit (0, 10)
{
	my $db = "limit_$limit";

	run_sql($node, "CREATE DATABASE $db");
	run_sql($node, qq{
		CREATE EXTENSION singer_state;
		ALTER DATABASE $db SET singer_state.history_limit = $limit}, db => $db);

	# each one in a transaction of its own, as pipelines do
	run_sql(
		$node,
		join('',
			map {
				qq{SELECT singer_state.merge('s', '{"bookmarks": {"users": {"replication_key_value": $_}}}');\n}
			} 0 .. UPDATES)
		  . $flush,
		db => $db);
	ok( $node->poll_query_until(
			$db,
			'SELECT n_tup_upd = '
			  . UPDATES
			  . q{ FROM pg_stat_all_tables
			WHERE relid = 'singer_state.state'::regclass}),
		"history_limit $limit: every update is counted");
	my $share = run_sql(
		$node,
		q{SELECT round(100.0 * n_tup_hot_upd / n_tup_upd, 1)
		FROM pg_stat_all_tables
		WHERE relid = 'singer_state.state'::regclass}, db => $db);
	note("history_limit $limit: $share % of the updates were HOT");
	cmp_ok($share, '>', 90, "history_limit $limit: updates are HOT");
	value_is($node, q{SELECT version FROM singer_state.get_state('s')},
		UPDATES + 1, "history_limit $limit: each has a version", db => $db);
	value_is($node, q{SELECT count(*) FROM singer_state.state_history},
		$limit, "history_limit $limit: holds", db => $db);
}

# a thousand writes in one transaction
value_is(
	$node, q{
	DO $$
	DECLARE
		last bigint := 0;
		version bigint;
	BEGIN
		FOR i IN 1 .. 1000 LOOP
			IF i % 2 = 0 THEN
				version := singer_state.set('t', jsonb_build_object('i', i));
			ELSE
				version := singer_state.merge('t', jsonb_build_object('i', i));
			END IF;
			IF version <> last + 1 THEN
				RAISE 'write % answers version % after %', i, version, last;
			END IF;
			IF singer_state.get('t') <> jsonb_build_object('i', i) THEN
				RAISE 'write % is not what is read', i;
			END IF;
			last := version;
		END LOOP;
	END $$;
	SELECT version, effective_state FROM singer_state.states
	WHERE state_id = 't'},
	'1000|{"i": 1000}', 'a thousand writes in one transaction');

# in one statement, and with savepoints that go
value_is(
	$node, q{
	SELECT count(DISTINCT v), min(v), max(v) FROM (
		SELECT singer_state.merge('u', jsonb_build_object('i', i)) AS v
		FROM generate_series(1, 1000) i) s;
	SELECT singer_state.get('u');
	DO $$
	BEGIN
		FOR i IN 1 .. 500 LOOP
			BEGIN
				PERFORM singer_state.merge('u', jsonb_build_object('i', -i));
				IF i % 2 = 0 THEN
					RAISE division_by_zero;
				END IF;
			EXCEPTION WHEN division_by_zero THEN
				NULL;
			END;
		END LOOP;
	END $$;
	SELECT version, effective_state FROM singer_state.states
	WHERE state_id = 'u'},
	qq{1000|1|1000\n{"i": 1000}\n1250|{"i": -499}},
	'in one statement, and in subtransactions');

$node->stop;
done_testing();
