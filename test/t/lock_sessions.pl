# Run locks and the sessions that hold and want them: a holder that dies blocks
# nobody, a wait that ends early leaves everything as it was, and the error
# names the holder.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LockSession;
use SingerStateTest;
use Test::More;

my $node =
  start_node('lock_sessions', conf => "max_prepared_transactions = 2\n");
run_sql($node, q{SELECT singer_state.set('s', '{"a": 1}')});

my $ours = q{FROM pg_locks WHERE locktype = 'advisory' AND objsubid > 2};

sub nothing_held
{
	my ($name) = @_;

	return ok(
		$node->poll_query_until('postgres', "SELECT count(*) = 0 $ours"),
		"$name: nothing is held");
}

# The holder dies, outside and inside of a transaction.
foreach my $begin ('', q{BEGIN; SELECT FROM singer_state.merge('s', '{"b": 1}');})
{
	foreach my $death (
		[ 'session ends', sub { $_[0]->quit } ],
		[ 'client is killed', sub { $_[0]->kill } ],
		[
			'backend is terminated',
			sub {
				run_sql($node, 'SELECT pg_terminate_backend(' . $_[0]->pid . ')');
			}
		])
	{
		my ($what, $kill) = @$death;
		my $name = $what . ($begin ? ' in a transaction' : '');
		my $holder = LockSession->new($node);
		my @waiters = map { LockSession->new($node) } 1 .. 2;

		$holder->ask(qq{$begin
			SELECT FROM singer_state.acquire_lock('s');});
		foreach my $waiter (@waiters)
		{
			$waiter->send(q{SELECT 'got it' FROM singer_state.acquire_lock('s');});
			$waiter->wait_until_blocked($node);
		}
		$kill->($holder);
		is($waiters[0]->answer, 'got it', "$name: the next one has the lock");
		is($waiters[0]->ask(q{SELECT singer_state.get('s');}),
			'{"a": 1}', "$name: and no write of the dead one");
		is($waiters[0]->ask(q{SELECT singer_state.release_lock('s');}),
			't', "$name: releases it");
		is($waiters[1]->answer, 'got it', "$name: to the one after it");
		$_->quit foreach @waiters;
		nothing_held($name);
	}
}

# Waits that end early.  The session's own lock_timeout stays as it was, and
# the holder's lock is left alone.
{
	my $holder = LockSession->new($node);
	my $waiter = LockSession->new($node);
	my $pid = $holder->pid;
	my $at_waiter = "$ours AND pid = " . $waiter->pid;

	$holder->ask(q{SET application_name = 'nightly "run"';
		SELECT FROM singer_state.acquire_lock('s');});
	$waiter->ask(q{SET lock_timeout = '54321ms';
		SET singer_state.lock_timeout = '5ms';
		\set VERBOSITY verbose});

	foreach my $call (
		q{singer_state.acquire_lock('s', '5 ms')},
		q{singer_state.acquire_lock('s', '0')},
		q{singer_state.acquire_lease('s', timeout => '5 ms')},
		q{singer_state.acquire_lease('s', timeout => '0')},
		q{singer_state.merge('s', '{"w": 1}')},
		q{singer_state.clear('s')})
	{
		my $said = $waiter->ask("SELECT $call;");

		like($said, qr/ERROR:  55P03: state "s" is locked/, "$call: 55P03");
		like(
			$said,
			qr/DETAIL:  Held by process $pid \(user "\w+", application "nightly "run"", client local\) since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00\./,
			"$call: the holder");
		value_is($node, "SELECT count(*) $at_waiter", '0',
			"$call: nothing is left");
		is($waiter->ask('SHOW lock_timeout;'),
			'54321ms', "$call: lock_timeout");
	}

	$waiter->ask(q{SET singer_state.lock_timeout = -1;});
	foreach my $call (
		q{singer_state.acquire_lock('s')},
		q{singer_state.acquire_lease('s')},
		q{singer_state.merge('s', '{"w": 1}')})
	{
		foreach my $block ('', 'BEGIN; SAVEPOINT a;')
		{
			$waiter->send("$block SELECT $call;");
			$waiter->wait_until_blocked($node);
			run_sql($node, 'SELECT pg_cancel_backend(' . $waiter->pid . ')');
			like($waiter->answer, qr/ERROR:  57014/, "$block $call: cancelled");
			$waiter->ask('ROLLBACK TO a;') if $block;
			value_is($node, "SELECT count(*) $at_waiter", '0',
				"$block $call: nothing is left");
			is($waiter->ask('SHOW lock_timeout;'),
				'54321ms', "$block $call: lock_timeout");
			$waiter->ask('COMMIT;') if $block;
		}
	}

	# nobody else can let go of it
	is($holder->ask(q{SELECT singer_state.holds_lock('s');}),
		't', 'the holder still holds');
	like($waiter->ask(q{SELECT singer_state.release_lock('s');}),
		qr/WARNING.*\nf/s, 'somebody else cannot release');
	like(
		run_sql($node, q{SELECT singer_state.break_lock('s')}),
		qr/Held by process $pid .*pg_terminate_backend\($pid\)/,
		'break_lock says whom to end');

	# a wait for a write under way names the writer
	$holder->ask(q{SELECT singer_state.release_lock('s');
		BEGIN;
		SELECT singer_state.merge('s', '{"c": 1}');});
	like($waiter->ask(q{SELECT singer_state.acquire_lock('s', '5 ms');}),
		qr/55P03.*Held by process $pid /s, 'an uncommitted write: 55P03');
	value_is($node, "SELECT count(*) $at_waiter", '0',
		'an uncommitted write: nothing is left');
	$holder->ask('ROLLBACK;');

	$_->quit foreach $holder, $waiter;
	nothing_held('after waits');
}

# Two phases: a run lock is the session's, so a transaction that holds it and
# has written a state can be prepared.
{
	my $session = LockSession->new($node);

	is( $session->ask(q{BEGIN;
			SELECT FROM singer_state.acquire_lock('s');
			SELECT FROM singer_state.merge('s', '{"two": "phases"}');
			PREPARE TRANSACTION 'p';
			SELECT singer_state.holds_lock('s');}),
		't', 'prepared with a run lock');
	is($session->ask(q{SELECT singer_state.release_lock('s');}),
		't', 'it is released before the second phase');
	fails_with($node, q{SELECT singer_state.acquire_lock('s', '5 ms')},
		'55P03', qr/prepared transaction/,
		'whoever comes next waits for that');
	$session->ask(q{COMMIT PREPARED 'p';});
	is( $session->ask(q{SELECT singer_state.acquire_lock('s');
			SELECT singer_state.get('s') ->> 'two';}),
		"\nphases", 'and has its write');
	$session->quit;
}

# Two databases are independent.
{
	my $here = LockSession->new($node);

	$here->ask(q{SELECT FROM singer_state.acquire_lock('s');});
	run_sql($node, 'CREATE DATABASE other');
	run_sql($node, 'CREATE EXTENSION singer_state', db => 'other');
	value_is(
		$node, q{SELECT singer_state.try_acquire_lock('s')},
		't', 'another database', db => 'other');

	# and no advisory lock of any kind is in the way of, or kept out by, ours
	is( run_sql(
			$node, q{
			SELECT pg_try_advisory_lock(k),
				pg_try_advisory_lock((k >> 32)::integer, (k << 32 >> 32)::integer),
				pg_try_advisory_lock_shared(k)
			FROM singer_state.lock_key('meltano', 's') k}),
		't|t|t', 'pg_advisory_lock of our key');
	$here->quit;
}

# A crash takes the run locks and leaves the leases.
{
	my $holder = LockSession->new($node);

	$holder->ask(q{SELECT FROM singer_state.acquire_lock('s');});
	my ($lock_id, $token) =
	  split(/\|/, run_sql($node, q{
		SELECT lock_id, token FROM singer_state.acquire_lease('leased', '1 day')}));
	$node->stop('immediate');
	$holder->kill;
	$node->start;
	value_is($node, "SELECT count(*) $ours", '0', 'crash: no run lock');
	value_is($node, q{SELECT singer_state.try_acquire_lock('s')},
		't', 'crash: it is free');
	value_is($node, q{SELECT state_id, token FROM singer_state.locks},
		"leased|$token", 'crash: the lease is there');
	fails_with(
		$node, q{SET singer_state.lock_timeout = 0;
		SELECT singer_state.set('leased', '{"a": 1}')},
		'55P03', qr/Leased to user/, 'crash: and keeps others out');
	value_is($node,
		qq{SELECT singer_state.set('leased', '{"a": 1}', token => $token)},
		'1', 'crash: its token passes');
	value_is(
		$node, qq{SELECT singer_state.release_lease('leased', '$lock_id');
			SELECT token > $token + 1 OR token = $token + 1 FROM singer_state.acquire_lease('leased')},
		"t\nt", 'crash: the next token is higher');
	fails_with($node,
		qq{SELECT singer_state.set('leased', '{"a": 2}', token => $token)},
		'55000', undef, 'crash: the old token is fenced');
}

# Many ids at the default max_locks_per_transaction.
run_sql(
	$node, q{
	SELECT singer_state.import((SELECT jsonb_object_agg('bulk:' || i,
		jsonb_build_object('completed', jsonb_build_object('i', i)))
		FROM generate_series(1, 20000) i))});
value_is($node, q{SELECT count(*) FROM singer_state.list('bulk:*')},
	'20000', '20000 ids imported');
value_is($node, q{SELECT count(*) FROM singer_state.clear_all('bulk:*')},
	'20000', 'and cleared');

$node->stop;
done_testing();
