# Messages that are large, many, or cut off.

use strict;
use warnings;

use Cwd qw(abs_path);
use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

my $node = start_node('messages');
my $copy =
  q{COPY singer_state.messages FROM %s WITH (FORMAT csv, DELIMITER E'\x02', QUOTE E'\x01')};
my $folder = abs_path(PostgreSQL::Test::Utils::tempdir());

# Runs SQL after begin_run in one session; :'run' is the run.
sub in_run
{
	my ($state_id, $sql) = @_;

	return run_sql($node,
		"SELECT singer_state.begin_run('$state_id') AS run \\gset\n$sql");
}

sub copy_from
{
	my ($path) = @_;

	return sprintf($copy, "'$path'");
}

# Lines of 64 MB: one string, and a million small members.
my $string = 64 * 1024 * 1024;
is( in_run(
		'long', qq{
		SELECT singer_state.process_message(:'run', '{"type":"RECORD","stream":"a","record":{"x":"' || repeat('x', $string) || '"}}');
		SELECT singer_state.process_message(:'run', '{"type":"RECORD","stream":"a","record":{"x":[' || repeat('{"a":1,"b":[]},', $string / 15) || '0]}}');
		SELECT singer_state.process_messages(:'run', '{"type":"RECORD","stream":"a","record":{"x":"' || repeat('x', $string) || E'"}}\\n{"bookmarks":{"a":1}}');
		SELECT message_counts FROM singer_state.finish_run(:'run')}),
	qq{RECORD\nRECORD\n2\n{"STATE": 1, "RECORD": 3}},
	'lines of 64 MB');

# By how much SQL makes the peak memory of its session grow, in kB.
sub growth
{
	my ($sql) = @_;
	my ($before, $after) = split /\n/, in_run(
		'memory', qq{
		CREATE FUNCTION pg_temp.peak() RETURNS bigint LANGUAGE sql AS
			\$\$ SELECT substring(pg_read_file('/proc/self/status', 0, 100000) FROM 'VmHWM:\\s+(\\d+)')::bigint \$\$;
		INSERT INTO singer_state.messages VALUES ('{"bookmarks":{}}');
		SELECT pg_temp.peak();
		$sql \\g /dev/null
		SELECT pg_temp.peak();
		SELECT FROM singer_state.finish_run(:'run') \\g /dev/null
		});

	return $after - $before;
}

# A record costs no memory beyond its line, whatever is in it: 64 MB of small
# members take no more than 64 MB of one string.
sub growth_by_record
{
	my ($value) = @_;
	my ($head, $tail) = ('{"type":"RECORD","stream":"a","record":{"x":', '}}');

	return growth(
		"SELECT singer_state.process_message(:'run', '$head' || $value || '$tail')");
}

SKIP:
{
	skip 'no /proc here', 1 unless -r '/proc/self/status';
	my $plain = growth_by_record(qq{'"' || repeat('x', $string) || '"'});
	my $rich = growth_by_record(
		qq{'[' || repeat('{"a":1,"b":[]},', $string / 15) || '0]'});

	cmp_ok($rich, '<', $plain * 1.1 + 1024,
		'memory follows the length of a record, not its structure');
}

# COPY does not keep what it has counted.
my $lines = 300_000;
open(my $fh, '>', "$folder/many.jsonl") or die $!;
for my $n (1 .. $lines)
{
	printf $fh '{"type":"RECORD","stream":"s%d","record":{"id":%d,"text":"%s"}}' . "\n",
	  $n % 3, $n, 'x' x 200;
	printf $fh '{"type":"STATE","value":{"bookmarks":{"s":{"id":%d}}}}' . "\n", $n
	  if $n % 1000 == 0;
}
close $fh;
SKIP:
{
	skip 'no /proc here', 1 unless -r '/proc/self/status';

	cmp_ok(growth(copy_from("$folder/many.jsonl")),
		'<', 16 * 1024, "COPY of $lines lines keeps less than 16 MB");
}
value_is(
	$node, q{
	SELECT messages_processed, states_processed, stream_counts #>> '{s1,RECORD}', last_state
	FROM singer_state.runs WHERE state_id = 'memory' ORDER BY started_at DESC LIMIT 1},
	($lines * 1.001 + 1) . '|'
	  . ($lines / 1000 + 1) . '|'
	  . $lines / 3
	  . qq{|{"bookmarks": {"s": {"id": $lines}}}},
	'all of them are counted');

# An error names the line, and what came before is not kept.
open($fh, '>', "$folder/bad.jsonl") or die $!;
print $fh qq{{"bookmarks":{"s":{"id":1}}}\r\n\r\n} x 500,
  qq{{"type":"STATE","value":{"bookmarks":{"s":"\\u0000"}}}\r\n};
close $fh;
my ($sqlstate, $said) = sqlstate_of($node,
		"SELECT singer_state.begin_run('memory') AS run \\gset\n"
	  . copy_from("$folder/bad.jsonl"));
is($sqlstate, '22P05', 'a state that jsonb cannot hold');
like($said, qr/message in line 1001\b/, 'its line is named');
like($said, qr/COPY messages, line 1001\b/, 'by COPY too');
value_is($node, q{SELECT singer_state.get('memory')},
	qq{{"bookmarks": {"s": {"id": $lines}}}},
	'the last good state stays');

# A client that goes away in the middle of COPY
my $psql = IPC::Run::start(
	[ 'psql', '-X', '-q', '-d', $node->connstr('postgres') ],
	'<', \my $in,
	'>', \my $out,
	'2>', \my $err);
$in .= join("\n",
	q{SET application_name = 'cut off';},
	q{SELECT singer_state.begin_run('memory');},
	sprintf($copy, 'STDIN') . ';',
	(q{{"bookmarks":{"s":{"id":1}}}}) x 10_000, '');
$psql->pump while $in ne '';
$node->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'cut off' AND query LIKE 'COPY%'}
) or die 'COPY does not begin';
$psql->kill_kill;
$node->poll_query_until('postgres',
	q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'cut off'}
) or die 'COPY does not end';
value_is($node, q{SELECT singer_state.get('memory')},
	qq{{"bookmarks": {"s": {"id": $lines}}}},
	'a COPY that was cut off leaves the state as it was');

done_testing();
