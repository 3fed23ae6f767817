# Behind pgbouncer in transaction mode, each transaction of a client may run
# in another server session.  Leases do not care; a run lock belongs to the
# server session, so a client there loses it: holds_lock tells, release_lock
# says false, and whoever uses the server session next has it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use LockSession;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

$ENV{PATH} .= ':/usr/sbin:/usr/local/sbin';
plan skip_all => 'pgbouncer is not installed'
  unless IPC::Run::run([ 'pgbouncer', '--version' ], '>', \my $version, '2>', \my $none);

my $node = start_node('lock_pooler');
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $user = run_sql($node, 'SELECT session_user');

open(my $conf, '>', "$dir/pgbouncer.ini") or die "cannot write in $dir: $!";
print $conf <<CONF;
[databases]
postgres = host=${\ $node->host } port=${\ $node->port } user=$user

[pgbouncer]
listen_addr =
unix_socket_dir = $dir
listen_port = $port
auth_type = any
pool_mode = transaction
default_pool_size = 4
server_round_robin = 1
CONF
close $conf;

my $pooler = IPC::Run::start(
	[ 'pgbouncer', "$dir/pgbouncer.ini" ],
	'>&', \my $log,
	IPC::Run::timeout(180));

END
{
	my $status = $?;
	$pooler->kill_kill if $pooler;
	$? = $status;
}

$pooler->pump until $log =~ /process up/;
my $pooled = "host=$dir port=$port dbname=postgres user=$user";

my $client = LockSession->new($node, dsn => $pooled);
my @others = map { LockSession->new($node, dsn => $pooled) } 1 .. 3;

# Opens server sessions for the pool to rotate through.
$_->ask('BEGIN; SELECT;') foreach @others;
$client->ask('SELECT;');
$_->ask('COMMIT;') foreach @others;

# Each statement of the client's in whatever server session comes next.
my %pids;
sub pooled_ask
{
	my ($sql) = @_;
	my ($pid, $answer) = split(/\n/,
		$client->ask("BEGIN; SELECT pg_backend_pid(); $sql; COMMIT;"), 2);

	$pids{$pid}++;
	return $answer;
}

my ($lock_id, $token) = split(/\|/,
	pooled_ask(q{SELECT lock_id, token FROM singer_state.acquire_lease('s', '1 day')}));
is(pooled_ask(qq{SELECT singer_state.set('s', '{"n": $_}', token => $token)}),
	$_, "write $_ with the lease")
  foreach 1 .. 8;
is(pooled_ask(qq{SELECT singer_state.renew_lease('s', '$lock_id') > now()}),
	't', 'renewed');
like(
	$others[0]->ask(q{BEGIN; SET LOCAL singer_state.lock_timeout = 0;
		SELECT singer_state.set('s', '{"stranger": 1}'); ROLLBACK;}),
	qr/state "s" is locked/, 'another client is kept out');
like($others[0]->ask(q{SELECT singer_state.try_acquire_lock('s');}),
	qr/^f$/, 'and gets no run lock');
is(pooled_ask(qq{SELECT singer_state.release_lease('s', '$lock_id')}),
	't', 'released');
cmp_ok(scalar(keys %pids), '>', 1, 'the server connections changed');
value_is($node,
	q{SELECT (SELECT count(*) FROM singer_state.locks), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')},
	'0|0', 'nothing is left held');

# A run lock stays behind in the server session that took it.
is($client->ask(q{SELECT singer_state.try_acquire_lock('s');}),
	't', 'a run lock can be had');
my %answers = map { $_ => 1 }
  map { $client->ask(q{SELECT singer_state.holds_lock('s');}) } 1 .. 8;
is_deeply([ sort keys %answers ],
	[ 'f', 't' ], 'and is held or not, as the server session changes');
like(
	join("\n",
		map { $client->ask(q{SELECT singer_state.release_lock('s');}) } 1 .. 8),
	qr/WARNING:  this session does not hold the run lock of state "s"\nf/,
	'the wrong session says so');

$_->quit foreach $client, @others;
$pooler->kill_kill;
undef $pooler;
$node->stop;
done_testing();
