# A hundred thousand states at default settings: imported in one call, listed
# by pattern, exported, cleared, with bounded memory and no lock per state.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use Test::More;

use constant STATES => 100_000;

# Most that a session may have resident at its peak, in megabytes: the
# document itself takes some 25, and importing must not take many times that.
use constant PEAK_MB => 512;

my $node = start_node('bulk');

value_is($node, 'SHOW max_locks_per_transaction', '64',
	'the default number of locks');

run_sql(
	$node, sprintf(
		q{
	CREATE TABLE file AS
	SELECT jsonb_object_agg(format('%%s:tap-%%s-to-target:%%s',
			CASE i %% 10 WHEN 0 THEN 'dev' ELSE 'prod' END, i, i %% 7),
		jsonb_build_object('completed', jsonb_build_object('bookmarks',
				jsonb_build_object('users', jsonb_build_object(
					'replication_key', 'id', 'replication_key_value', i))),
			'partial', '{}'::jsonb)) AS doc
	FROM generate_series(1, %d) i},
		STATES));
run_sql(
	$node, q{
	CREATE TABLE other_file AS
	SELECT jsonb_object_agg(key, value || '{"partial": {"a": 1}}') AS doc
	FROM file, jsonb_each(doc)});

# Runs statements in one session; tests what they answer and prints the
# session's peak.
sub bounded
{
	my ($name, $sql, $expected) = @_;
	my $start = time();
	my @rows = split /\n/, run_sql(
		$node, qq{
		$sql;
		SELECT count(*) < 1000 FROM pg_locks WHERE pid = pg_backend_pid();
		SELECT (regexp_match(pg_read_file('/proc/self/status', 0, 100000),
			'VmHWM:\\s+(\\d+)'))[1]::bigint / 1024});
	my $peak = pop @rows;

	note("$name: ", time() - $start, " s, peak $peak MB");
	is(join("\n", @rows), $expected, $name);
	return cmp_ok($peak, '<', PEAK_MB, "$name: memory is bounded");
}

bounded('reading the document alone', 'SELECT count(*) FROM file,
	jsonb_object_keys(doc)', STATES . "\nt");
bounded('import', 'SELECT singer_state.import(doc) FROM file', STATES . "\nt");
bounded('list', q{SELECT count(*) FROM singer_state.list();
	SELECT count(*) FROM singer_state.list('dev:*');
	SELECT count(*) FROM singer_state.list('*:3');
	SELECT count(*) FROM singer_state.list('prod:tap-777-*')},
	join("\n", STATES, STATES / 10, int(STATES / 7) + (STATES % 7 >= 3), 1,
		't'));
bounded('export', 'SELECT singer_state.export() = doc FROM file', "t\nt");
bounded(
	'import over what is there',
	q{SELECT singer_state.import(doc, on_conflict => 'skip') FROM file;
	SELECT singer_state.import(doc, on_conflict => 'overwrite') IS NOT NULL FROM file;
	SELECT count(*) FROM singer_state.state_history},
	"0\nt\n0\nt");
bounded(
	'overwriting all',
	q{SELECT singer_state.import(doc, on_conflict => 'overwrite')
		FROM other_file;
	SELECT count(*) FROM singer_state.state_history;
	SELECT min(version) FROM singer_state.states},
	join("\n", STATES, STATES, 2, 't'));
bounded('dry run', q{SELECT count(*) FROM singer_state.clear_all('*', dry_run => true)},
	STATES . "\nt");
bounded('clear', q{SELECT count(*) FROM singer_state.clear_all('*')},
	STATES . "\nt");
value_is($node, 'SELECT count(*) FROM singer_state.state', '0', 'all gone');

# one that exists among the last: none is written
run_sql($node, q{SELECT singer_state.set('prod:tap-99999-to-target:4', '{"mine": 1}')});
fails_with($node, 'SELECT singer_state.import(doc) FROM file',
	'23505', qr/prod:tap-99999-to-target:4/, 'one id that exists stops all');
value_is($node, 'SELECT count(*) FROM singer_state.state', '1',
	'nothing was written');

$node->stop;
done_testing();
