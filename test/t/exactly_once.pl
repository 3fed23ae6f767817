# Rows and state that commit together: however often a pipeline is killed,
# target and bookmark agree, and in the end each row is there once.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

my $batches = 1000;
my $rows = 7;
my $kills = 12;

my $node =
  start_node('exactly_once', conf => "restart_after_crash = on\n");

run_sql(
	$node, qq{
	CREATE TABLE source AS
		SELECT id, (id - 1) / $rows + 1 AS batch
		FROM generate_series(1, $batches * $rows) AS s (id);
	CREATE INDEX ON source (batch);
	CREATE TABLE target (id integer, batch integer)});

# One batch: the rows that come next, their messages and the state, in a
# transaction.  What comes next is what the state says.
my $batch = q{
WITH moved AS (
	INSERT INTO target
	SELECT id, batch FROM source
	WHERE batch = coalesce((singer_state.get('pipeline') #>> '{bookmarks,rows,batch}')::integer, 0) + 1
	RETURNING id, batch)
SELECT singer_state.process_messages(:'run',
	string_agg(json_build_object('type', 'RECORD', 'stream', 'rows', 'record', json_build_object('id', id)) || E'\n', '')
	|| json_build_object('type', 'STATE', 'value', json_build_object('bookmarks', json_build_object('rows', json_build_object('batch', max(batch))))))
FROM moved HAVING count(*) > 0;
};
my $script =
	"SET application_name = 'pipeline';\n"
  . "SELECT singer_state.begin_run('pipeline') AS run \\gset\n"
  . ("BEGIN;\n$batch\nCOMMIT;\n" x $batches)
  . "SELECT status FROM singer_state.finish_run(:'run');\n";
my $file = PostgreSQL::Test::Utils::tempdir() . '/pipeline.sql';
append_to_file($file, $script);

sub start_pipeline
{
	return IPC::Run::start(
		[
			'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1',
			'-d', $node->connstr('postgres'), '-f', $file
		],
		'>', \my $out,
		'2>', \my $err);
}

my $bookmark =
  q{coalesce((singer_state.get('pipeline') #>> '{bookmarks,rows,batch}')::integer, 0)};

sub kill_backend
{
	my $pid = $node->safe_psql('postgres',
		q{SELECT pid FROM pg_stat_activity WHERE application_name = 'pipeline'}
	);

	kill('KILL', $pid) if $pid ne '';
	return;
}

sub agrees
{
	my ($name) = @_;

	return value_is(
		$node, qq{
		SELECT count(*) = count(DISTINCT id)
			AND count(*) = $rows * $bookmark
			AND coalesce(max(batch), 0) = $bookmark
		FROM target},
		't', $name);
}

# A machine may be so fast that the pipeline ends before the last kill.
my $reached = 0;
for my $kill (1 .. $kills)
{
	last if $reached == $batches;

	my $pipeline = start_pipeline();

	$node->poll_query_until('postgres', "SELECT $bookmark > $reached")
	  or die "the pipeline stands still";
	if ($kill % 3 == 0)
	{
		$node->stop('immediate');
		$node->start;
	}
	elsif ($kill % 3 == 1)
	{
		kill_backend();
	}
	$pipeline->kill_kill;
	eval { $pipeline->finish };
	$node->poll_query_until('postgres', 'SELECT true')
	  or die "the server does not come back";
	agrees("after kill $kill");
	$reached = $node->safe_psql('postgres', "SELECT $bookmark");
}

start_pipeline()->finish;
agrees('at the end');
value_is($node, 'SELECT count(*), count(DISTINCT id) FROM target',
	$batches * $rows . '|' . $batches * $rows,
	'each row is there once');
value_is($node, "SELECT $bookmark", $batches, 'all batches are done');
value_is(
	$node,
	q{SELECT sum((message_counts ->> 'RECORD')::bigint) FROM singer_state.runs},
	$batches * $rows,
	'the runs have counted what was committed');
value_is(
	$node,
	q{SELECT bool_and(status IN ('success', 'failed')), bool_or(status = 'failed')
		FROM singer_state.runs},
	't|t',
	'the runs that were killed are known to have failed');

done_testing();
