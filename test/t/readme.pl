# Every SQL statement of the README runs: each block by itself, in a database
# that has what the README takes for granted.  An error counts unless it is
# one that the store documents (a state that exists already, say); moving.pl
# runs the recipes for moving on data of their own.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

# The answers to data, of the README's table of errors.
my %documented = map { $_ => 1 } qw(02000 23505 40001 55P03);

my $readme = slurp_file(source_path('README.md'));
my @blocks;
foreach my $chapter (split /^(?=## )/m, $readme)
{
	next if $chapter =~ /\A## Moving/;
	push @blocks, $1 while $chapter =~ /^```sql\n(.*?)^```$/msg;
}
cmp_ok(scalar(@blocks), '>=', 8, 'the README has SQL');

my $node = start_node('readme');

# what the README takes for granted
run_sql(
	$node, q{
	CREATE TABLE source AS SELECT id, id * 2 AS value FROM generate_series(1, 99) id;
	CREATE TABLE target (LIKE source);
	CREATE TABLE orders_api AS SELECT id::bigint, id::numeric AS total
		FROM generate_series(1, 250) id;
	CREATE ROLE analyst;
	CREATE ROLE orchestrator;
	CREATE ROLE operator;
	SELECT singer_state.set('prod:orders', jsonb_build_object('bookmarks',
			jsonb_build_object('orders', jsonb_build_object('replication_key_value', i))))
		FROM generate_series(1, 7) i;
	SELECT singer_state.set('dev:orders', '{"bookmarks": {"orders": {"id": 1}}}')});

my $number = 0;
foreach my $block (@blocks)
{
	my $db = 'block_' . ++$number;
	my $template =
	  $block =~ /CREATE EXTENSION/ ? 'template0' : 'postgres';
	my ($first) = split /\n/, $block;
	my ($stdout, $stderr);

	run_sql($node, "CREATE DATABASE $db TEMPLATE $template",
		db => 'template1');
	$node->psql(
		$db, "\\set VERBOSITY verbose\n$block",
		stdout => \$stdout,
		stderr => \$stderr,
		on_error_stop => 0);
	my @wrong = grep { !$documented{$_} }
	  $stderr =~ /(?:ERROR|FATAL|PANIC):\s+([0-9A-Z]{5}):/g;
	ok(!@wrong, "runs: $first") or diag($stderr);
}

$node->stop;
done_testing();
