# Runs whose sessions die, that several sessions feed, and that others own.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

my $node = start_node(
	'runs', conf => "max_prepared_transactions = 2\n");

# A session that runs SQL and then stays; answers what it is and its pid.
sub start_session
{
	my ($name, $sql) = @_;
	my $in = "SET application_name = '$name';\n$sql\n";
	my $session = IPC::Run::start(
		[ 'psql', '-X', '-q', '-d', $node->connstr('postgres') ],
		'<', \$in,
		'>', \my $out,
		'2>', \my $err);

	$session->pump while $in ne '';
	my $query = qq{
		SELECT pid FROM pg_stat_activity
		WHERE application_name = '$name' AND state LIKE 'idle%' AND query LIKE '%ready%'};
	$node->poll_query_until('postgres', "SELECT EXISTS ($query)")
	  or die "session $name is not ready: $err";
	return ($session, run_sql($node, $query));
}

sub wait_for_end
{
	my ($pid) = @_;

	$node->poll_query_until('postgres',
		"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)")
	  or die "backend $pid does not end";
	return;
}

my $reach = q{SELECT singer_state.process_messages(singer_state.current_run(), E'{"type":"RECORD","stream":"a","record":{}}\n{"bookmarks":{"a":{"id":%d}}}');};

# However a session dies, in a transaction or not: the next run has the lock,
# the dead one is known to have failed, and what it had committed is kept.
my $id = 0;
for my $way ('client killed', 'backend terminated', 'client quits')
{
	for my $in_transaction (0, 1)
	{
		my $name = $way . ($in_transaction ? ', in a transaction' : '');
		my ($committed, $open) = (++$id, ++$id);
		my ($session, $pid) = start_session(
			'dies',
			"SELECT singer_state.begin_run('mortal');\n"
			  . sprintf($reach, $committed)
			  . ($in_transaction ? "BEGIN;\n" . sprintf($reach, $open) : '')
			  . "SELECT 'ready';");

		fails_with($node,
			q{SET singer_state.lock_timeout = 0; SELECT singer_state.begin_run('mortal')},
			'55P03', qr/$pid/, "$name: a second run is refused first");
		if ($way eq 'client killed')
		{
			$session->kill_kill;
		}
		elsif ($way eq 'client quits')
		{
			$session->finish;
		}
		else
		{
			run_sql($node, "SELECT pg_terminate_backend($pid)");
			$session->kill_kill;
		}
		value_is(
			$node, q{
			SELECT 1 FROM singer_state.begin_run('mortal');
			SELECT status, error, messages_processed, final_state FROM singer_state.finish_run(singer_state.current_run());
			SELECT status, messages_processed, error FROM singer_state.runs WHERE state_id = 'mortal' ORDER BY started_at DESC OFFSET 1 LIMIT 1},
			qq{1\nsuccess||0|{"bookmarks": {"a": {"id": $committed}}}\nfailed|2|the session ended before the run was finished},
			"$name: taken over");
	}
}

# Stale: the session gone, and not heard of
my ($session, $pid) =
  start_session('stale', q{SELECT singer_state.begin_run('stale'); SELECT 'ready';});
my $status = q{SELECT status FROM singer_state.runs WHERE state_id = 'stale'};
my $age = q{UPDATE singer_state.run SET heartbeat_at = now() - interval '%s' WHERE state_id = 'stale'};

run_sql($node, sprintf($age, '6 minutes'));
value_is($node, $status, 'running', 'silent, but its session is there');
$session->kill_kill;
wait_for_end($pid);
value_is($node, $status, 'stale', 'its session gone');
run_sql($node, sprintf($age, '4 minutes'));
value_is($node, $status, 'running', 'heard of, from another session perhaps');
run_sql($node, sprintf($age, '6 minutes'));
value_is($node,
	q{SELECT status FROM singer_state.finish_run((SELECT run_id FROM singer_state.runs WHERE state_id = 'stale'), false, 'given up')},
	'failed', 'another session may finish it');

# A run that many sessions feed, under a lease
my ($run, $token, $lock) = split /\|/, run_sql(
	$node, q{
	SELECT singer_state.begin_run('leased', lock => false, token => l.token), l.token, l.lock_id
	FROM singer_state.acquire_lease('leased') l});
my $feed = sprintf($reach, 1) =~ s/singer_state\.current_run\(\)/'$run'/r;

run_sql($node, $feed) for 1 .. 3;
value_is($node,
	q{SELECT status, messages_processed, states_processed FROM singer_state.runs WHERE state_id = 'leased'},
	'running|6|3', 'messages from several sessions');
fails_with($node,
	q{SET singer_state.lock_timeout = 0; SELECT singer_state.begin_run('leased')},
	'55P03', undef, 'the lease keeps others out');
run_sql($node, "SELECT singer_state.release_lease('leased', '$lock')");
fails_with($node, $feed =~ s/"id":1/"id":2/r,
	'55000', qr/lease/, 'when the lease is lost, so is the run');
fails_with($node, "SELECT singer_state.finish_run('$run')",
	'55000', qr/lease/, 'it cannot complete the state');
value_is($node,
	"SELECT status, states_processed FROM singer_state.finish_run('$run', false)",
	'failed|3', 'but it can be said to have failed');

# Messages of a run that somebody has finished meanwhile belong to nobody.
$run = run_sql($node, q{SELECT singer_state.begin_run('meanwhile', lock => false)});
fails_with(
	$node, qq{
	BEGIN;
	} . sprintf($reach, 1) =~ s/singer_state\.current_run\(\)/'$run'/r . qq{
	\\! psql -XAtqd "@{[$node->connstr('postgres')]}" -c "SELECT FROM singer_state.finish_run('$run')" >/dev/null
	COMMIT},
	'55000', qr/run $run is finished/, 'a run that is finished meanwhile');
value_is(
	$node, q{
	SELECT status, messages_processed, singer_state.get('meanwhile') IS NULL FROM singer_state.runs
	WHERE state_id = 'meanwhile'},
	'success|0|t', 'takes neither messages nor states');

# Prepared transactions
value_is(
	$node, q{
	SELECT 1 FROM singer_state.begin_run('prepared');
	BEGIN;
	} . sprintf($reach, 1) . q{
	PREPARE TRANSACTION 'run';
	SELECT count(*) FROM singer_state.states WHERE state_id = 'prepared';
	COMMIT PREPARED 'run';
	SELECT messages_processed, final_state FROM singer_state.finish_run(singer_state.current_run())},
	qq{1\n2\n0\n2|{"bookmarks": {"a": {"id": 1}}}},
	'a transaction that is prepared');
fails_with(
	$node, q{
	BEGIN;
	SELECT 1 FROM singer_state.begin_run('not prepared');
	PREPARE TRANSACTION 'begun'},
	'0A000', qr/rollback releases a run lock/,
	'one that begins a run and takes its lock');
value_is(
	$node, q{
	BEGIN;
	SELECT 1 FROM singer_state.begin_run('not prepared', lock => false);
	PREPARE TRANSACTION 'begun';
	ROLLBACK PREPARED 'begun'},
	'1', 'one that begins a run without a lock');

# Read-only
for my $call (
	q{begin_run('x')}, qq{heartbeat('$run')},
	qq{finish_run('$run')}, qq{process_message('$run', '{}')},
	qq{process_messages('$run', '{}')})
{
	fails_with($node, "SET default_transaction_read_only = on; SELECT singer_state.$call",
		'25006', undef, "read-only: $call");
}

# Roles
run_sql(
	$node, q{
	CREATE ROLE reader; CREATE ROLE writer; CREATE ROLE other; CREATE ROLE administrator; CREATE ROLE nobody;
	SELECT singer_state.grant_access('reader', 'reader'), singer_state.grant_access('writer', 'writer'),
		singer_state.grant_access('other', 'writer'), singer_state.grant_access('administrator', 'admin')});
$run = run_sql($node, q{SELECT singer_state.begin_run('owned', lock => false)}, as => 'writer');
my %calls = (
	heartbeat => "SELECT singer_state.heartbeat('$run')",
	process_message => "SELECT singer_state.process_message('$run', '{\"type\":\"RECORD\",\"stream\":\"a\",\"record\":{}}')",
	process_messages => "SELECT singer_state.process_messages('$run', '{\"bookmarks\":{\"a\":1}}')",
	finish_run => "SELECT status FROM singer_state.finish_run('$run')");
for my $call (sort keys %calls)
{
	for my $role (qw(reader other nobody))
	{
		fails_with($node, $calls{$call}, '42501', undef,
			"$role: $call", as => $role);
	}
}
for my $call (
	q{SELECT singer_state.begin_run('x', lock => false)},
	q{INSERT INTO singer_state.messages VALUES ('{}')})
{
	fails_with($node, $call, '42501', undef, "$_: $call", as => $_)
	  for qw(reader nobody);
}
value_is($node, q{SELECT status FROM singer_state.runs WHERE state_id = 'owned'},
	'running', 'a reader sees runs', as => 'reader');
fails_with($node, 'SELECT * FROM singer_state.runs',
	'42501', undef, 'nobody does not', as => 'nobody');
fails_with($node, 'DELETE FROM singer_state.run',
	'42501', undef, 'a writer deletes no runs', as => 'writer');
for my $call (qw(heartbeat process_message process_messages))
{
	ok(defined eval { run_sql($node, $calls{$call}, as => 'writer') },
		"its owner: $call");
}
value_is($node, $calls{finish_run}, 'success', 'an administrator: finish_run',
	as => 'administrator');
value_is(
	$node, q{
	SELECT messages_processed, started_by, last_state FROM singer_state.runs WHERE state_id = 'owned'},
	'2|writer|{"bookmarks": {"a": 1}}', 'the counts of its owner');

# Who has brought messages writes the counts, whoever commits.
value_is(
	$node, q{
	SET SESSION AUTHORIZATION writer;
	SELECT 1 FROM singer_state.begin_run('role');
	RESET SESSION AUTHORIZATION;
	BEGIN;
	SET LOCAL ROLE writer;
	} . sprintf($reach, 7) . q{
	SET LOCAL ROLE nobody;
	COMMIT;
	SELECT messages_processed, started_by FROM singer_state.runs WHERE state_id = 'role';},
	"1\n2\n2|writer", 'the role changes before commit');

# Dump and restore
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
my $all = 'SELECT * FROM singer_state.run ORDER BY started_at';

$node->command_ok([ 'pg_dump', '-f', $dump, $node->connstr('postgres') ],
	'pg_dump');
run_sql($node, 'CREATE DATABASE restored');
$node->command_ok(
	[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('restored') ],
	'restore');
is(run_sql($node, $all, db => 'restored'),
	run_sql($node, $all), 'each run is there');
is(run_sql($node, $all) =~ tr/\n// > 10, 1, 'and there were some');

done_testing();
