# save_state and load_state: whole files or none, and for whom.

use strict;
use warnings;

use Cwd qw(abs_path);
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

my $node = start_node('state_files');
my $folder = abs_path(PostgreSQL::Test::Utils::tempdir());
my $file = "$folder/deep/er/state.json";

sub spew
{
	my ($path, $bytes) = @_;

	open(my $fh, '>:raw', $path) or die "$path: $!";
	print $fh $bytes;
	close $fh;
	return;
}

sub files_in
{
	my ($path) = @_;

	opendir(my $dh, $path) or die "$path: $!";
	return join(' ', sort grep { !/^\./ } readdir $dh);
}

# Saving
run_sql(
	$node, q{
	SELECT singer_state.set('tap', '{"bookmarks": {"users": {"id": 1}}}',
		'{"bookmarks": {"users": {"name": "\u00e4 \"q\" \\\\"}}}');
	SELECT singer_state.set('payload', '{"singer_state": {"bookmarks": {"users": {"id": 2}}}}')});
my $expected =
  qq{{"bookmarks": {"users": {"id": 1, "name": "\xc3\xa4 \\"q\\" \\\\"}}}\n};
value_is($node, "SELECT singer_state.save_state('tap', '$file')",
	length $expected, 'save_state answers the number of bytes');
is(slurp_file($file), $expected,
	'the effective state, in a directory that was created');
is(sprintf('%o', (stat $file)[2] & oct(777)), '644', 'the tap may read it');
is(sprintf('%o', (stat "$folder/deep")[2] & oct(777)),
	'755', 'and get there');
run_sql($node, "SELECT singer_state.save_state('payload', '$file')");
is( slurp_file($file),
	qq{{"bookmarks": {"users": {"id": 2}}}\n},
	'a payload is unwrapped, and the file replaced');
is(files_in("$folder/deep/er"), 'state.json', 'nothing else is left');

fails_with($node, "SELECT singer_state.save_state('none', '$file')",
	'02000', qr/state "none" does not exist/, 'no such state');
fails_with($node, q{SELECT singer_state.save_state('tap', 'state.json')},
	'22023', qr/not absolute/, 'a relative path');
fails_with($node, q{SELECT singer_state.save_state('tap', '/' || repeat('d/', 600))},
	'22023', qr/longer than/, 'a long path');
fails_with($node, "SELECT singer_state.save_state('tap', NULL)",
	'22004', qr/path/, 'no path');

# A file that cannot be written whole leaves the old one whole.
my $old = slurp_file($file);

SKIP:
{
	skip 'root may write everywhere', 3 if $> == 0;

	chmod oct(555), "$folder/deep/er";
	fails_with($node, "SELECT singer_state.save_state('tap', '$file')",
		'42501', qr/could not create file/, 'a directory without permission');
	chmod oct(755), "$folder/deep/er";
	is(slurp_file($file), $old, 'the old file is whole');
	is(files_in("$folder/deep/er"), 'state.json', 'nothing else is left');
}

mkdir "$folder/taken";
fails_with($node, "SELECT singer_state.save_state('tap', '$folder/taken')",
	'42809', undef, 'a directory in its place');
is(files_in($folder), 'deep taken', 'nothing else is left');

# A full disk: files of this server may have 20 MB (that is EFBIG, not ENOSPC, to the
# server), and the state has more.
run_sql(
	$node, q{
	SELECT count(singer_state.set('large', jsonb_build_object('bookmarks',
		(SELECT jsonb_object_agg('stream ' || n, repeat('x', 1000)) FROM generate_series(1, 30000) n))))});
$node->stop;
system_or_bail('sh', '-c',
	'ulimit -f 40960 && exec pg_ctl -D "$0" -l "$1" -w -s start',
	$node->data_dir, $node->logfile);
$node->_update_pid(1);
fails_with($node, "SELECT singer_state.save_state('large', '$file')",
	'XX000', qr/could not write file/, 'a disk that is full');
is(slurp_file($file), $old, 'the old file is whole');
is(files_in("$folder/deep/er"), 'state.json', 'nothing else is left');
$node->stop;
$node->start;

# Loading
value_is($node, "SELECT singer_state.load_state('tap', '$folder/none.json')",
	'f', 'a missing file answers false');
value_is($node, q{SELECT version FROM singer_state.states WHERE state_id = 'tap'},
	1, 'and leaves the state as it is');
value_is($node, "SELECT singer_state.load_state('tap', '$file')",
	't', 'a file is loaded');
value_is(
	$node,
	q{SELECT completed_state, partial_state FROM singer_state.states WHERE state_id = 'tap'},
	'{"bookmarks": {"users": {"id": 2}}}|{}',
	'it replaces both parts');
run_sql($node, "SELECT singer_state.load_state('payload', '$file')");
value_is($node, q{SELECT singer_state.get('payload')},
	'{"singer_state": {"bookmarks": {"users": {"id": 2}}}}',
	'a payload stays one');
spew("$folder/bom.json", qq{\xef\xbb\xbf{"bookmarks": {"\xc3\xa4": {}}}\r\n});
value_is($node, "SELECT singer_state.load_state('bom', '$folder/bom.json')",
	't', 'a byte order mark');
value_is($node, q{SELECT singer_state.get('bom') -> 'bookmarks' ? U&'\00E4'},
	't', 'UTF-8');

# A broken file leaves the state whole.
my $before = run_sql($node, q{SELECT * FROM singer_state.state ORDER BY state_id});
my %broken = (
	empty => [ '', '22P02' ],
	cut => [ '{"bookmarks": {"users"', '22P02' ],
	nan => [ '{"bookmarks": {"users": NaN}}', '22P02' ],
	two => [ '{"bookmarks": {}} {"bookmarks": {}}', '22P02' ],
	latin1 => [ qq{{"bookmarks": {"\xe4": {}}}}, '22021' ],
	nul => [ qq{{"bookmarks": {"a\0": {}}}}, '22021' ],
	message => [ '{"type": "STATE", "value": {"bookmarks": {}}}', '22023' ],
	array => [ '[]', '22023' ],
	string => [ '"{\"bookmarks\": {}}"', '22023' ]);
for my $name (sort keys %broken)
{
	my ($bytes, $sqlstate) = @{ $broken{$name} };

	spew("$folder/$name.json", $bytes);
	fails_with($node,
		"SELECT singer_state.load_state('tap', '$folder/$name.json')",
		$sqlstate, undef, "a file that is broken: $name");
}
value_is($node, q{SELECT * FROM singer_state.state ORDER BY state_id},
	$before, 'broken files have changed nothing');
fails_with($node, "SELECT singer_state.load_state('tap', '$folder')",
	'42809', qr/not a regular file/, 'a directory');

# Who may
run_sql(
	$node, q{
	CREATE ROLE saver; CREATE ROLE loader; CREATE ROLE nobody;
	SELECT singer_state.grant_access(r, 'writer') FROM unnest('{saver,loader,nobody}'::regrole[]) r;
	GRANT pg_write_server_files TO saver;
	GRANT pg_read_server_files TO loader});
for my $role (qw(saver loader nobody))
{
	my %may = (
		"SELECT singer_state.save_state('tap', '$file')" => $role eq 'saver',
		"SELECT singer_state.load_state('tap', '$file')" => $role eq 'loader',
		"SELECT singer_state.load_state('tap', '/no/such/file')" =>
		  $role eq 'loader');

	for my $call (sort keys %may)
	{
		if ($may{$call})
		{
			ok(defined eval { run_sql($node, $call, as => $role) },
				"$role may call: $call");
		}
		else
		{
			fails_with($node, $call, '42501',
				qr/permission denied to \w+ a file of the server/,
				"$role may not call: $call", as => $role);
		}
	}
}

done_testing();
