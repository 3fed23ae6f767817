# pg_dump and restore keep states, history, versions and sequences, in
# whatever order the tables' rows come back, and add nothing of their own.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

my $node = start_node('dump');
my $dir = $node->basedir;

run_sql(
	$node, q{
	SELECT singer_state.set('a', jsonb_build_object('i', i))
		FROM generate_series(1, 25) i;
	SELECT singer_state.set('b', '{"singer_state": {"bookmarks": {}}}',
		'{"singer_state": {"bookmarks": {"x": {"y": 18446744073709551616}}}}');
	SELECT singer_state.merge('b', '{"singer_state": {"bookmarks": {"x": {"z": null}}}}');
	SELECT singer_state.set('array', '[1, {"a": []}]', validate => false);
	SELECT singer_state.set('empty', '{}');
	SELECT singer_state.set('gone', '{"a": 1}');
	SELECT singer_state.clear('gone');
	SET singer_state.namespace = 'other';
	SELECT singer_state.set('a', '{"other": true}');
	SELECT singer_state.merge('a', '{"other": false}');
	SET singer_state.history_limit = -1;
	SELECT singer_state.set('long', jsonb_build_object('i', i))
		FROM generate_series(1, 40) i});

# Every row of every table that the extension marks for dumping, and where
# its sequences stand.
sub contents
{
	my ($db) = @_;
	my $text = '';

	foreach my $relation (
		split /\n/,
		run_sql(
			$node, q{
			SELECT relkind, o::regclass FROM pg_extension e, unnest(extconfig) o
				JOIN pg_class c ON c.oid = o
			WHERE extname = 'singer_state' ORDER BY 2}, db => $db))
	{
		my ($kind, $name) = split /\|/, $relation;
		$text .= "$name\n"
		  . run_sql(
			$node,
			$kind eq 'S'
			? "SELECT last_value, is_called FROM $name"
			: "SELECT r FROM $name AS r ORDER BY r::text COLLATE \"C\"",
			db => $db) . "\n";
	}
	return $text;
}

value_is(
	$node, q{
	SELECT c.relname FROM pg_class c
	WHERE c.relnamespace = 'singer_state'::regnamespace
		AND c.relkind IN ('r', 'S')
		AND c.oid <> ALL (SELECT unnest(extconfig) FROM pg_extension
			WHERE extname = 'singer_state')},
	'', 'every table and sequence is marked for dumping');

my $before = contents('postgres');
like($before, qr/clear/, 'there is history to keep');

# a plain script
command_ok([ 'pg_dump', '-f', "$dir/plain.sql", $node->connstr('postgres') ],
	'pg_dump');
run_sql($node, 'CREATE DATABASE plain');
command_ok(
	[
		'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/plain.sql",
		'-d', $node->connstr('plain')
	],
	'restore by psql');
is(contents('plain'), $before, 'all is there, and nothing more');

# rows as INSERT statements, each column named
command_ok(
	[
		'pg_dump', '--column-inserts', '-f', "$dir/inserts.sql",
		$node->connstr('postgres')
	],
	'pg_dump --column-inserts');
run_sql($node, 'CREATE DATABASE inserts');
command_ok(
	[
		'psql', '-X', '-q', '-o', "$dir/inserts.out", '-v',
		'ON_ERROR_STOP=1', '-f', "$dir/inserts.sql", '-d',
		$node->connstr('inserts')
	],
	'restore by psql');
is(contents('inserts'), $before, 'the same from INSERT statements');

# an archive, its tables in both orders
command_ok(
	[
		'pg_dump', '-Fc', '-f', "$dir/archive", $node->connstr('postgres')
	],
	'pg_dump -Fc');
my ($list) = run_command([ 'pg_restore', '-l', "$dir/archive" ]);
my @entries = split /\n/, $list;
my @data = grep { /TABLE DATA/ } @entries;
my @others = grep { !/TABLE DATA/ && !/^;/ } @entries;

cmp_ok(scalar(@data), '>=', 2, 'more than one table in the archive');
foreach my $order ('forward', 'backward')
{
	my @ordered = $order eq 'forward' ? @data : reverse @data;
	my @pre = grep { !/SEQUENCE SET/ } @others;
	my @post = grep { /SEQUENCE SET/ } @others;

	append_to_file("$dir/$order.list", join("\n", @pre, @ordered, @post, ''));
	run_sql($node, "CREATE DATABASE $order");
	command_ok(
		[
			'pg_restore', '-e', '-L', "$dir/$order.list", '-d',
			$node->connstr($order), "$dir/archive"
		],
		"pg_restore, $order");
	is(contents($order), $before, "the same, $order");
}

# data alone, into an extension that is there, with a limit that is lower
# than what the dump holds
run_sql($node, 'CREATE DATABASE data_only');
run_sql($node, q{
	ALTER DATABASE data_only SET singer_state.history_limit = 1;
	CREATE EXTENSION singer_state}, db => 'data_only');
command_ok(
	[
		'pg_restore', '-e', '--data-only', '-d',
		$node->connstr('data_only'), "$dir/archive"
	],
	'pg_restore --data-only');
is(contents('data_only'), $before, 'data alone');

# Life goes on where it stopped.
foreach my $db ('plain', 'backward')
{
	value_is(
		$node, q{
		SELECT singer_state.set('a', '{"i": 26}');
		SELECT singer_state.set('b', '{"i": 26}', if_version => 2);
		SELECT version, operation FROM singer_state.history('a') LIMIT 1;
		SELECT count(*) FROM singer_state.history('a');
		SELECT singer_state.get('a');
		SELECT singer_state.state_at('a', 20);
		SELECT singer_state.restore('gone', 1) > 1;
		SELECT count(DISTINCT r) = count(*) FROM singer_state.state_history r},
		join("\n",
			26, 3, '25|set', 10, '{"i": 26}', '{"i": 20}', 't', 't'),
		"$db: writes go on", db => $db);
}

# by the owner of the database, who is no superuser
run_sql($node, 'CREATE ROLE owner LOGIN');
run_sql($node, 'CREATE DATABASE source OWNER owner');
run_sql($node, 'CREATE DATABASE target OWNER owner');
run_sql(
	$node, q{
	CREATE EXTENSION singer_state;
	SELECT singer_state.set('a', '{"i": 1}');
	SELECT singer_state.set('a', '{"i": 2}')}, db => 'source', as => 'owner');
command_ok(
	[
		'pg_dump', '-U', 'owner', '-f', "$dir/owner.sql",
		$node->connstr('source')
	],
	'pg_dump by the owner of the database');
my $owner_before = contents('source');
my ($restored) = run_command(
	[
		'psql', '-X', '-q', '-U', 'owner', '-f', "$dir/owner.sql", '-d',
		$node->connstr('target')
	]);
is(contents('target'), $owner_before, 'restored by the owner');

$node->stop;
done_testing();
