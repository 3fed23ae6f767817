# Mutual exclusion: eight sessions, 200 times each, take the lock, read a
# counter, write it plus one, and let go.  Any two at once would lose a count.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

use constant CLIENTS => 8;
use constant TRANSACTIONS => 200;

# The count is read and written in separate transactions, and kept where no
# lock of the server's protects it.
my $count = q{
SELECT n FROM counter \gset
UPDATE counter SET n = :n + 1;
};
my $with_lock = qq{
SELECT FROM singer_state.acquire_lock('counted', '-1 s');
$count
SELECT singer_state.release_lock('counted');
};
my $with_lease = qq{
SELECT quote_literal(lock_id) AS lock_id
	FROM singer_state.acquire_lease('counted', '1 hour', '-1 s') \\gset
$count
SELECT singer_state.release_lease('counted', :lock_id);
};

my $node = start_node('lock_exclusion');
run_sql($node, 'CREATE TABLE counter (n integer)');

foreach my $case (
	[ 'run locks', $with_lock ],
	[ 'leases', $with_lease ],
	[
		'both',
		"\\if :client_id % 2 = 0\n$with_lock\\else\n$with_lease\\endif\n"
	])
{
	my ($name, $script) = @$case;
	my $file = "$PostgreSQL::Test::Utils::tmp_check/exclusion.sql";

	run_sql($node, 'TRUNCATE counter; INSERT INTO counter VALUES (0)');
	open(my $handle, '>', $file) or die "cannot write $file: $!";
	print $handle $script;
	close $handle;
	command_ok(
		[
			'pgbench', '-n', '-c', CLIENTS, '-j', 2, '-t', TRANSACTIONS,
			'-f', $file, $node->connstr('postgres')
		],
		"$name: sessions");
	value_is(
		$node,
		'SELECT n FROM counter',
		CLIENTS * TRANSACTIONS,
		"$name: every count is there");
	value_is(
		$node, q{
		SELECT (SELECT count(*) FROM singer_state.locks),
			(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')},
		'0|0', "$name: nothing is left held");
}

$node->stop;
done_testing();
