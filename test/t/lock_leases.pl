# Leases: waits for one, expiry and takeover in time, release in two phases,
# and the error that names the holder.  Their waits are on a latch, which
# isolation specs do not see as blocked.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LockSession;
use SingerStateTest;
use Test::More;

my $node =
  start_node('lock_leases', conf => "max_prepared_transactions = 2\n");
run_sql($node, q{SELECT singer_state.set('s', '{"a": 1}')});

# Takes a lease in a session of its own; answers (lock_id, token).
sub take_lease
{
	my ($ttl) = @_;

	return split(/\|/, run_sql($node, qq{
		SET application_name = 'nightly';
		SELECT lock_id, token FROM singer_state.acquire_lease('s', '$ttl')}));
}

my @waits = (
	[ 'run lock', q{SELECT 'got it' FROM singer_state.acquire_lock('s', '-1 s');}, q{SELECT singer_state.release_all_locks();} ],
	[ 'lease', q{SELECT 'got it' FROM singer_state.acquire_lease('s', '1 day', '-1 s');}, q{SELECT singer_state.break_lock('s');} ],
	[ 'write', q{SELECT 'got it' FROM singer_state.merge('s', '{"w": 1}');}, q{SELECT;} ]);

# Everybody who waits for a lease is woken when its end is committed.  With a
# ttl of a day and no timeout, nothing else would wake them.
foreach my $wait (@waits)
{
	my ($what, $call, $undo) = @$wait;
	my $waiter = LockSession->new($node);

	$waiter->ask('SET singer_state.lock_timeout = -1;');
	foreach my $end (
		[ 'release', q{SELECT singer_state.release_lease('s', '%s')} ],
		[ 'release in a transaction', q{BEGIN; SELECT singer_state.release_lease('s', '%s'); SELECT; COMMIT} ],
		[ 'release in two phases', q{BEGIN; SELECT singer_state.release_lease('s', '%s'); PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'} ],
		[ 'renewal that ends sooner', q{SELECT singer_state.renew_lease('s', '%s', '1 ms')} ],
		[ 'break_lock', q{SELECT singer_state.break_lock('s') -- %s} ])
	{
		my ($how, $sql) = @$end;
		my ($lock_id) = take_lease('1 day');

		$waiter->send($call);
		ok($waiter->wait_until_blocked($node), "$what waits");
		run_sql($node, sprintf($sql, $lock_id));
		is($waiter->answer, 'got it', "$what: woken by $how");
		$waiter->ask($undo);
	}

	# nobody tells when a lease expires, so who waits knows when to look
	take_lease('300 ms');
	is($waiter->ask($call), 'got it', "$what: waits for the lease to expire");
	$waiter->ask($undo);
	$waiter->quit;
	value_is(
		$node, q{SELECT (SELECT count(*) FROM singer_state.locks),
			(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')},
		'0|0', "$what: nothing is left held");
}

# A rolled back release wakes nobody for good, and the queue is served in the
# order in which it stood.
{
	my ($lock_id) = take_lease('1 day');
	my @waiters = map { LockSession->new($node) } 1 .. 3;

	foreach my $waiter (@waiters)
	{
		$waiter->send(
			q{SELECT 'got it' FROM singer_state.acquire_lock('s', '-1 s');});
		$waiter->wait_until_blocked($node);
	}
	value_is($node, q{SELECT kind, waiters FROM singer_state.locks},
		'lease|3', 'the view counts those who wait');
	run_sql($node, qq{
		BEGIN; SELECT singer_state.release_lease('s', '$lock_id'); ROLLBACK});
	value_is($node, q{SELECT kind, waiters FROM singer_state.locks},
		'lease|3', 'a release that is rolled back');
	run_sql($node, qq{SELECT singer_state.release_lease('s', '$lock_id')});
	foreach my $waiter (@waiters)
	{
		is($waiter->answer, 'got it', 'in their order');
		value_is(
			$node,
			q{SELECT pid FROM singer_state.locks WHERE kind = 'run lock'},
			$waiter->pid, 'it is this one');
		$waiter->ask(q{SELECT singer_state.release_lock('s');});
	}
	$_->quit foreach @waiters;
}

# Waits that end early leave the lease and the session as they were, and say
# who has it: the first in the queue and the one behind it.
{
	my ($lock_id, $token) = take_lease('1 day');
	my $first = LockSession->new($node);
	my $second = LockSession->new($node);
	my $said;

	$first->send(q{SET lock_timeout = '54321ms';
		SELECT singer_state.acquire_lock('s', '-1 s');});
	$first->wait_until_blocked($node);
	foreach my $call (
		q{singer_state.acquire_lock('s', '5 ms')},
		q{singer_state.acquire_lease('s', timeout => '5 ms')},
		q{singer_state.merge('s', '{"w": 1}')})
	{
		$said = $second->ask(qq{\\set VERBOSITY verbose
			SET singer_state.lock_timeout = '5ms'; SELECT $call;});
		like(
			$said,
			qr/55P03: state "s" is locked\nDETAIL:  Leased to user "\w+", application "nightly", client local since .*\+00 until .*\+00\./,
			"$call: 55P03");
		value_is(
			$node,
			'SELECT count(*) FROM pg_locks WHERE objsubid > 2 AND pid = '
			  . $second->pid,
			'0', "$call: nothing is left");
	}
	run_sql($node, 'SELECT pg_cancel_backend(' . $first->pid . ')');
	like($first->answer, qr/canceling statement/, 'a wait is cancelled');
	is($first->ask('SHOW lock_timeout;'), '54321ms', 'lock_timeout is kept');
	like(
		$first->ask(q{SELECT singer_state.acquire_lock('s', '20 ms');}),
		qr/state "s" is locked.*Leased to/s, 'the first times out');
	is($first->ask('SHOW lock_timeout;'), '54321ms', 'lock_timeout is kept');
	value_is(
		$node, q{SELECT (SELECT token FROM singer_state.locks),
			(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')},
		"$token|0", 'the lease is there, nothing else is held');
	run_sql($node, qq{SELECT singer_state.release_lease('s', '$lock_id')});
	$_->quit foreach $first, $second;
}

# A lease runs out while its holder works, and somebody else takes it.
foreach my $wait (@waits[0 .. 1])
{
	my ($what, $call, $undo) = @$wait;
	my ($lock_id, $token) = take_lease('200 ms');
	my $next = LockSession->new($node);

	is($next->ask($call), 'got it', "$what: takes an expired lease over");
	my $before = run_sql($node,
		q{SELECT s, l FROM singer_state.state s LEFT JOIN singer_state.state_lock l USING (state_id)});
	foreach my $late (
		qq{singer_state.merge('s', '{"late": 1}', token => $token)},
		qq{singer_state.set('s', '{"late": 1}', token => $token)},
		qq{singer_state.clear('s', token => $token)},
		qq{singer_state.renew_lease('s', '$lock_id')},
		qq{singer_state.release_lease('s', '$lock_id')})
	{
		fails_with($node, "SELECT $late", '55000', qr/lease on state "s" is lost/,
			"$what: too late to $late");
	}
	value_is($node,
		q{SELECT s, l FROM singer_state.state s LEFT JOIN singer_state.state_lock l USING (state_id)},
		$before, "$what: nothing has changed");
	$next->ask($undo);
	fails_with(
		$node, qq{SELECT singer_state.renew_lease('s', '$lock_id')},
		'55000', undef, "$what: nor is it renewed afterwards");
	$next->quit;
}

# A holder that writes and has not committed when its lease runs out: whoever
# takes over waits for that write, and sees it.
{
	my ($lock_id, $token) = take_lease('1 day');
	my $holder = LockSession->new($node);
	my $next = LockSession->new($node);

	$holder->ask(qq{BEGIN;
		SELECT singer_state.merge('s', '{"in_time": 1}', token => $token);});
	run_sql($node, q{UPDATE singer_state.state_lock SET expires_at = now()});
	$next->send(q{SELECT 'got it' FROM singer_state.acquire_lease('s');});
	$next->wait_until_blocked($node);
	$holder->ask(qq{SELECT singer_state.merge('s', '{"more": 1}', token => $token);
		COMMIT;});
	is($next->answer, 'got it', 'taken over');
	is($next->ask(q{SELECT singer_state.get('s') ?& '{in_time,more}';}),
		't', 'with what was written in time');
	run_sql($node, q{SELECT singer_state.break_lock('s')});
	$_->quit foreach $holder, $next;
}

# Writers have the lock while their statement runs; that is no run lock, and
# no reason not to break the lease.
{
	my ($lock_id, $token) = take_lease('1 day');
	my $first = LockSession->new($node);
	my $second = LockSession->new($node);

	$first->ask(qq{BEGIN;
		SELECT singer_state.merge('s', '{"first": 1}', token => $token);});
	$second->send(
		qq{SELECT singer_state.merge('s', '{"second": 1}', token => $token) > 0;});
	$second->wait_until_blocked($node);
	value_is($node, q{SELECT singer_state.break_lock('s')},
		'lease ended', 'broken while a write goes on');
	$first->ask('COMMIT;');
	is($second->answer, 't', 'which is not held up');
	$_->quit foreach $first, $second;
}

$node->stop;
done_testing();
