# The pipelines of the README, as a reader would paste them.

use strict;
use warnings;

use Cwd qw(abs_path);
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

my $node = start_node('pipelines');
my $folder = abs_path(PostgreSQL::Test::Utils::tempdir());

$ENV{PATH} = data_path('pipeline') . ":$ENV{PATH}";
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGDATABASE} = 'postgres';

# The code block of the README that is marked with a name
sub pipeline
{
	my ($name) = @_;

	return $1
	  if slurp_file(source_path('README.md')) =~
	  /<!-- pipeline: $name -->\n```\w+\n(.*?)```/s;
	die "the README has no pipeline $name";
}

sub spew
{
	my ($name, $text) = @_;

	open(my $fh, '>', "$folder/$name") or die "$name: $!";
	print $fh $text;
	close $fh;
	return;
}

# Runs a pipeline of the shell; answers whether it succeeded.
sub run_pipeline
{
	my ($name, $tap_config) = @_;

	spew('tap.json', $tap_config);
	spew('pipeline.sh', pipeline($name));
	return system("cd '$folder' && bash pipeline.sh >>log 2>&1") == 0;
}

sub last_run
{
	my ($state_id) = @_;

	return qq{
		SELECT status, message_counts ->> 'RECORD', states_processed, last_state #>> '{bookmarks,users,replication_key_value}'
		FROM singer_state.runs WHERE state_id = '$state_id' ORDER BY started_at DESC LIMIT 1};
}

sub lines_of
{
	return join(' ', split(/\n/, slurp_file("$folder/$_[0]")));
}

# tap | target | psql
my $state_id = 'prod:tap-users-to-target-files';
spew('target.json', '{"file": "users"}');

ok(run_pipeline('target', '{"last": 5}'), 'target: first run');
is(lines_of('users'), '1 2 3 4 5', 'target: the rows');
value_is($node, last_run($state_id), 'success||3|5', 'target: the run');
ok(run_pipeline('target', '{"last": 8}'), 'target: second run');
is(lines_of('users'), '1 2 3 4 5 6 7 8', 'target: only what is new');
value_is($node, last_run($state_id), 'success||2|8', 'target: the run');
ok(run_pipeline('target', '{"last": 20, "fail_at": 12}'),
	'target: a tap that fails');
value_is($node, last_run($state_id),
	'failed||1|10', 'target: what was reached is kept');
value_is(
	$node, qq{
	SELECT completed_state #>> '{bookmarks,users,replication_key_value}', partial_state #>> '{bookmarks,users,replication_key_value}'
	FROM singer_state.states WHERE state_id = '$state_id'},
	'8|10', 'target: as partial state');
ok(run_pipeline('target', '{"last": 12}'), 'target: it resumes');
is(lines_of('users'), '1 2 3 4 5 6 7 8 9 10 11 11 12',
	'target: from there');
value_is($node, last_run($state_id), 'success||1|12', 'target: the run');

# A tap's messages into a table
$state_id = 'prod:tap-users-to-postgres';
my $rows = q{SELECT count(*), max(id), bool_and(name = E'tab\t "quoted" back\\\\slash \\\\N ' || id) FROM users};

ok(run_pipeline('table', '{"last": 5}'), 'table: first run');
value_is($node, $rows, '5|5|t', 'table: the rows');
value_is($node, last_run($state_id), 'success|5|3|5', 'table: the run');
ok(run_pipeline('table', '{"last": 20, "fail_at": 12}'),
	'table: a tap that fails');
value_is($node, $rows, '11|11|t', 'table: the rows');
value_is($node, last_run($state_id), 'failed|6|3|10', 'table: the run');
ok(run_pipeline('table', '{"last": 20}'), 'table: it resumes');
value_is($node, $rows, '20|20|t', 'table: each row once');
value_is($node, last_run($state_id), 'success|10|5|20', 'table: the run');

run_sql($node, 'ALTER TABLE users ADD CHECK (id < 25)');
ok(!run_pipeline('table', '{"last": 30}'), 'table: a row that is refused');
value_is($node, $rows, '20|20|t', 'table: no rows');
value_is($node, last_run($state_id),
	'success|10|5|20', 'table: no state, and no run');

# A tap in PL/pgSQL
SKIP:
{
	skip 'no advance_bookmark yet', 5
	  if run_sql($node,
		q{SELECT count(*) FROM pg_proc WHERE proname = 'advance_bookmark'}) eq
	  '0';

	run_sql(
		$node, q{
		CREATE TABLE api (id bigint, total numeric);
		CREATE VIEW orders_api AS SELECT * FROM api;
		INSERT INTO api SELECT n, n * 1.5 FROM generate_series(1, 250) n});
	run_sql($node, pipeline('plpgsql'));
	my $bookmark =
	  q{SELECT count(*), max(id), singer_state.fetch_bookmark('prod:orders', 'orders', 'replication_key_value') FROM orders};

	value_is($node, $bookmark, '250|250|250', 'plpgsql: first run');
	run_sql($node,
		'INSERT INTO api SELECT n, n FROM generate_series(251, 260) n; CALL sync_orders(3)'
	);
	value_is($node, $bookmark, '260|260|260', 'plpgsql: only what is new');
	run_sql($node, 'ALTER TABLE orders ADD CHECK (id < 268)');
	fails_with($node,
		'INSERT INTO api SELECT n, n FROM generate_series(261, 270) n; CALL sync_orders(3)',
		'23514', undef, 'plpgsql: a page that is refused');
	value_is($node, $bookmark, '266|266|266',
		'plpgsql: rows and bookmark agree');
	run_sql($node, 'DELETE FROM api WHERE id >= 268; CALL sync_orders(3)');
	value_is($node, $bookmark, '267|267|267', 'plpgsql: it resumes');
}

done_testing();
