# Failover: the primary dies while a lease is held, and its standby is
# promoted.  The holder goes on there with its token, nobody else can write,
# and tokens go on growing.  Run locks do not survive their server.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use SingerStateTest;
use Test::More;

my $primary = start_node('lock_primary', allows_streaming => 1);
my $standby = PostgreSQL::Test::Cluster->new('lock_standby');

run_sql($primary, q{SELECT singer_state.set('s', '{"a": 1}')});
$primary->backup('copy');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

my ($lock_id, $token) = split(/\|/, run_sql($primary,
	q{SELECT lock_id, token FROM singer_state.acquire_lease('s', '1 day')}));
run_sql($primary, qq{SELECT singer_state.merge('s', '{"b": 2}', token => $token)});

my $written = run_sql($primary, 'SELECT pg_current_wal_insert_lsn()');
ok( $standby->poll_query_until(
		'postgres', "SELECT pg_last_wal_replay_lsn() >= '$written'"),
	'the standby follows');

# A standby shows the lease and locks nothing.
value_is($standby, q{SELECT state_id, kind, token FROM singer_state.locks},
	"s|lease|$token", 'the standby shows the lease');
foreach my $call (
	q{singer_state.acquire_lock('x')},
	q{singer_state.try_acquire_lock('x')},
	q{singer_state.acquire_lease('x')},
	qq{singer_state.renew_lease('s', '$lock_id')},
	qq{singer_state.release_lease('s', '$lock_id')},
	q{singer_state.break_lock('s')})
{
	fails_with($standby, "SELECT $call", '25006', undef, "standby: $call");
}
value_is($standby, q{SELECT singer_state.holds_lock('s')},
	'f', 'standby: holds_lock');

$primary->stop('immediate');
$standby->promote;

fails_with(
	$standby, q{SET singer_state.lock_timeout = 0;
	SELECT singer_state.merge('s', '{"stranger": 1}')},
	'55P03', qr/state "s" is locked.*Leased to user/s,
	'a stranger cannot write');
fails_with(
	$standby, q{SELECT singer_state.acquire_lock('s', '0')},
	'55P03', qr/Leased to user/, 'nor lock');
fails_with(
	$standby,
	"SELECT singer_state.merge('s', '{\"old\": 1}', token => $token - 1)",
	'55000', undef, 'nor can an old holder');
value_is($standby,
	qq{SELECT singer_state.merge('s', '{"c": 3}', token => $token)},
	'3', 'the holder writes');
value_is($standby,
	qq{SELECT singer_state.renew_lease('s', '$lock_id', '2 days') > now() + interval '1 day'},
	't', 'renews');
value_is($standby, qq{SELECT singer_state.release_lease('s', '$lock_id')},
	't', 'and releases');
value_is($standby, q{SELECT singer_state.get('s')},
	'{"a": 1, "b": 2, "c": 3}', 'what it wrote is there');
value_is($standby,
	"SELECT token > $token FROM singer_state.acquire_lease('s')",
	't', 'the next token is higher');
fails_with($standby,
	qq{SELECT singer_state.merge('s', '{"late": 1}', token => $token)},
	'55000', undef, 'and the old one is fenced');

$standby->stop;
done_testing();
