# State documents as taps, Meltano, Airbyte and others leave them: each goes
# in and comes out equal, or is refused with words that help.

use strict;
use warnings;

use File::Basename;
use File::Spec;
use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use Test::More;

# What validation refuses, and what the refusal must name.
my %refused = (
	'51_meltano_double_wrapped' => qr/singer_state.*(?:twice|double|wrap|nest)/is,
	'52_meltano_singer_state_null' => qr/singer_state.*null/is,
	'54_meltano_double_encoded' => qr/string/i,
	'57_airbyte_per_stream' => qr/object/i,
	'58_airbyte_stream_blob_missing' => qr/object/i,
	'60_airbyte_google_ads_accounts' => qr/object/i,
	'64_planetscale_shards' => qr/object/i,
	'95_raw_state_message' => qr/STATE.*HINT.*value/s);

# What jsonb itself does not take.
my %unreadable = (
	'90_raw_nan' => '22P02',
	'91_raw_nul_escape' => '22P05',
	'92_raw_lone_surrogate' => '22P02',
	'94_raw_concatenated' => '22P02',
	'96_raw_empty_file' => '22P02');

my $node = start_node('samples');
my @files = sort glob(data_path('states', '*.json'));

cmp_ok(scalar(@files), '>=', 80, 'the sample documents are there');

sub document_sql
{
	my ($file) = @_;
	my $path = File::Spec->rel2abs($file);

	$path =~ s/'/''/g;
	return "pg_read_file('$path')::jsonb";
}

# Stores a document, reads it back, and writes what was read.
sub round_trip
{
	my ($name, $doc, $flags) = @_;

	return run_sql(
		$node, qq{
		SELECT singer_state.set('$name', $doc$flags);
		SELECT singer_state.get('$name') = $doc;
		SELECT completed_state = $doc FROM singer_state.get_state('$name');
		SELECT xmin, ctid FROM singer_state.state
			WHERE state_id = '$name' \\gset before_
		SELECT singer_state.set('$name', singer_state.get('$name')$flags);
		SELECT xmin = :'before_xmin'::xid AND ctid = :'before_ctid'::tid
			FROM singer_state.state WHERE state_id = '$name';
		SELECT count(*) FROM singer_state.history('$name')});
}

foreach my $file (@files)
{
	my $name = basename($file, '.json');
	my $doc = document_sql($file);
	my $flags = '';

	if (my $sqlstate = $unreadable{$name})
	{
		fails_with($node,
			"SELECT singer_state.set('$name', $doc, validate => false)",
			$sqlstate, undef, "$name: PostgreSQL refuses the text");
		value_is($node, "SELECT singer_state.get('$name') IS NULL",
			't', "$name: nothing was stored");
		next;
	}
	if (my $like = $refused{$name})
	{
		$flags = ', validate => false';
		foreach my $function ('set', 'merge')
		{
			fails_with($node, "SELECT singer_state.$function('$name', $doc)",
				'22023', $like, "$name: $function refuses it");
		}
		value_is($node, "SELECT singer_state.get('$name') IS NULL",
			't', "$name: nothing was stored");
	}
	is( round_trip($name, $doc, $flags),
		"1\nt\nt\n1\nt\n0",
		"$name: stored, read back, written again");
}

# Numbers keep every digit, not only their value.
value_is(
	$node,
	q{SELECT singer_state.get('72_big_numbers') #>> '{bookmarks,s,lsn}',
		singer_state.get('72_big_numbers') #>> '{bookmarks,s,id}',
		singer_state.get('72_big_numbers') #>> '{bookmarks,s,f}'},
	'18446744073709551615|9007199254740993|10000000000000000000000',
	'big numbers keep their digits');
value_is(
	$node,
	q{SELECT singer_state.get('93_raw_duplicate_keys')},
	'{"bookmarks": {"s": {"v": 2}}}',
	'of duplicate keys the last one counts');

# All of them at once, out and in again.
value_is(
	$node, q{
	CREATE TEMP TABLE before AS SELECT singer_state.export() AS doc;
	CREATE TEMP TABLE cleared AS SELECT singer_state.clear_all('*');
	SELECT singer_state.export();
	SELECT singer_state.import(doc) = (SELECT count(*) FROM cleared)
		FROM before;
	SELECT singer_state.export() = doc FROM before},
	"{}\nt\nt", 'export and import are inverse of each other');

# What is no document at all, whatever the caller asks for.
foreach my $scalar ('1', 'true', 'null', '"text"', '"{\"bookmarks\": {}}"')
{
	foreach my $flags ('', ', validate => false')
	{
		fails_with($node,
			"SELECT singer_state.set('scalar', '$scalar'$flags)",
			'22023', qr/object|JSON string/, "$scalar$flags is refused");
	}
}

# Both wrongs in one document, and a STATE message whose value is wrapped.
fails_with(
	$node,
	q{SELECT singer_state.set('m', '{"type": "STATE", "value": {"singer_state": {}}}')},
	'22023', qr/HINT.*value/s, 'a STATE message with a payload');
fails_with(
	$node,
	q{SELECT singer_state.set('m', '{"singer_state": [1]}')},
	'22023', qr/singer_state.*object/s, 'singer_state must be an object');
value_is(
	$node,
	q{SELECT singer_state.set('m', '{"type": {"id": 1}, "value": {"id": 2}}')},
	'1', 'streams named type and value are no STATE message');

$node->stop;
done_testing();
