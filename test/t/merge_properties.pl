# Merging is total and idempotent, and the effective state is the partial one
# merged over the completed one: properties over random pairs of documents.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

use constant PAIRS => 2000;
use constant SEED => 20261129;

# Names that states use or that could confuse a reader of them, few enough
# that two documents share most of them.
my @names = (
	'bookmarks', 'singer_state', 'users', 'orders', 'a.b', 'a/b', '',
	'replication_key', 'replication_key_value', 'partitions', 'context',
	'x\"y', '\u00e4', '\ud83d\ude00');
my @scalars = (
	'null', 'true', 'false', '0', '-1', '1.50', '1e-7',
	'18446744073709551616', '""', '"2026-01-01T00:00:00Z"', '"null"',
	'"{\"a\": 1}"', '"\u00e9\n"');

sub pick { return $_[ int(rand(@_)) ]; }

sub random_array
{
	my ($depth) = @_;
	return '[' . join(', ', map { random_value($depth) } 1 .. int(rand(4)))
	  . ']';
}

sub random_object
{
	my ($depth) = @_;
	my %member = map { pick(@names) => 1 } 1 .. int(rand(5));

	return '{'
	  . join(', ',
		map { qq("$_": ) . random_value($depth) } sort keys %member)
	  . '}';
}

sub random_value
{
	my ($depth) = @_;
	my $kind = rand();

	return pick(@scalars) if $depth <= 0 || $kind < 0.3;
	return random_array($depth - 1) if $kind < 0.45;
	return random_object($depth - 1);
}

srand(SEED);
my $lines = '';
foreach (1 .. PAIRS)
{
	$lines .= sprintf(
		qq({"any_a": %s, "any_b": %s, "a": %s, "b": %s}\n),
		random_value(3), random_value(3),
		random_object(4), random_object(4));
}

my $node = start_node('properties');
my $path = $node->basedir . '/pairs.jsonl';
append_to_file($path, $lines);
install_reference($node);
read_jsonl($node, 'pairs', $path);

value_is($node, 'SELECT count(*) FROM pairs', PAIRS, 'pairs were read');

foreach my $pair ([ 'any_a', 'any_b' ], [ 'a', 'b' ])
{
	my ($base, $patch) = map { "doc -> '$_'" } @$pair;

	value_is(
		$node, qq{
		SELECT count(*) FROM pairs
		WHERE singer_state.deep_merge($base, $patch)
			IS DISTINCT FROM reference_merge($base, $patch)},
		'0', "deep_merge of @$pair answers what the rule says");
	value_is(
		$node, qq{
		SELECT count(*) FROM pairs
		WHERE singer_state.deep_merge(
				singer_state.deep_merge($base, $patch), $patch)
			IS DISTINCT FROM singer_state.deep_merge($base, $patch)},
		'0', "deep_merge of @$pair twice is deep_merge once");
}

# In the store: a is completed, b is partial; then b is merged in again.
value_is(
	$node, q{
	SELECT count(*) FILTER (WHERE v IS NULL) FROM (
		SELECT singer_state.set(line::text, doc -> 'a', doc -> 'b',
			validate => false, allow_empty => true) AS v FROM pairs) s},
	'0', 'any pair of objects is stored');
value_is(
	$node, q{
	SELECT count(*) FROM pairs
	WHERE singer_state.get(line::text) IS DISTINCT FROM
		singer_state.deep_merge(doc -> 'a', doc -> 'b')},
	'0', 'the effective state is partial merged over completed');
value_is(
	$node, q{
	SELECT count(*) FROM pairs p JOIN singer_state.states s
		ON s.state_id = p.line::text
	WHERE s.effective_state IS DISTINCT FROM singer_state.get(p.line::text)},
	'0', 'the view states shows the same');
value_is(
	$node, q{
	SELECT count(*) FROM pairs
	WHERE singer_state.merge(line::text, doc -> 'b', validate => false) <> 1},
	'0', 'merging the partial state again writes nothing');
value_is(
	$node, q{
	SELECT count(*) FROM singer_state.state_history},
	'0', 'and leaves no history');
run_sql($node,
	q{SELECT singer_state.merge(line::text, doc -> 'a', validate => false)
	FROM pairs});
value_is(
	$node, q{
	SELECT count(*) FROM pairs
	WHERE singer_state.get(line::text) IS DISTINCT FROM
		reference_merge(doc -> 'a',
			reference_merge(doc -> 'b', doc -> 'a'))},
	'0', 'merging another document lands in the partial state');
value_is(
	$node, q{
	SELECT count(*) FROM pairs p, singer_state.get_state(p.line::text) s
	WHERE s.completed_state IS DISTINCT FROM p.doc -> 'a'},
	'0', 'the completed state is untouched');

$node->stop;
done_testing();
