# The recipes for moving in and out, as they are printed for people: each SQL
# block below the headings "Moving in" and "Moving out" is run as it stands.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Cwd;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

# The document that holds the recipes.
use constant DOCUMENT => 'README.md';

# SQL blocks by heading, the heading of the chapter in front.
my %recipe;
my ($chapter, $section, $block) = ('', '', undef);
foreach my $line (split /\n/, slurp_file(source_path(DOCUMENT)))
{
	if (defined $block)
	{
		if ($line =~ /^```/)
		{
			$recipe{"$chapter: $section"} .= $block;
			undef $block;
			next;
		}
		$block .= "$line\n";
	}
	elsif ($line =~ /^## (.*)/) { ($chapter, $section) = ($1, ''); }
	elsif ($line =~ /^### (.*)/) { $section = $1; }
	elsif ($line =~ /^```sql$/ && $chapter =~ /^Moving (?:in|out)$/)
	{
		$block = '';
	}
}

my %tested;
my $node = start_node('moving');
my $here = getcwd();

# Recipes read and write files of the directory they are run in.
my $dir = PostgreSQL::Test::Utils::tempdir();
chdir $dir or die "could not enter $dir: $!";

# What follows in SQL is run in a database of its own, after a setup.
sub recipe_gives
{
	my ($heading, $setup, $query, $expected, $name) = @_;
	my $db = 'recipe_' . (1 + keys %tested) . '_' . int(rand(1e9));

	$tested{$heading} = 1;
	ok(defined $recipe{$heading}, "there is a recipe: $heading") or return;
	run_sql($node, "CREATE DATABASE $db");
	run_sql($node, "CREATE EXTENSION singer_state;\n$setup", db => $db);
	value_is($node,
		"\\o recipe.out\n\\set QUIET on\n$recipe{$heading}\\o\n$query",
		$expected, $name // $heading, db => $db);
	return;
}

sub write_file
{
	my ($name, $text) = @_;
	unlink $name;
	append_to_file($name, $text);
	return;
}

my $states = q{SELECT state_id, nullif(completed_state, '{}'),
		nullif(partial_state, '{}')
	FROM singer_state.states ORDER BY state_id COLLATE "C"};

# Meltano's table, with columns of either kind
foreach my $type ('varchar', 'text', 'json', 'jsonb')
{
	recipe_gives(
		q{Moving in: From Meltano's system database}, qq{
		CREATE TABLE state (
			state_id varchar(900) PRIMARY KEY,
			updated_at timestamp,
			partial_state $type,
			completed_state $type);
		INSERT INTO state (state_id, completed_state, partial_state) VALUES
			('dev:tap-a-to-target-b', '{"singer_state": {"bookmarks": {"users": {"id": 1}}}}', '{}'),
			('dev:tap-a-to-target-c', NULL, '{"singer_state": {"bookmarks": {"x\\"y": {"id": 18446744073709551616}}}}'),
			('dev:tap-a-to-target-d', NULL, NULL),
			('dev:tap-a-to-target-e', '{"singer_state": {}}', '{"singer_state": {"bookmarks": {"users": null}}}')},
		$states,
		join("\n",
			'dev:tap-a-to-target-b|{"singer_state": {"bookmarks": {"users": {"id": 1}}}}|',
			'dev:tap-a-to-target-c||{"singer_state": {"bookmarks": {"x\"y": {"id": 18446744073709551616}}}}',
			'dev:tap-a-to-target-d||',
			'dev:tap-a-to-target-e|{"singer_state": {}}|{"singer_state": {"bookmarks": {"users": null}}}'),
		"from Meltano's table, columns $type");
}

recipe_gives(
	'Moving in: From meltano-state-backend-postgresql', q{
	CREATE SCHEMA meltano;
	CREATE TABLE meltano.state (
		state_id varchar(900) PRIMARY KEY,
		partial_state text,
		completed_state text,
		updated_at timestamp DEFAULT now());
	INSERT INTO meltano.state (state_id, completed_state, partial_state) VALUES
		('a', '{"singer_state": {"bookmarks": {"users": {"id": 1}}}}', NULL),
		('b', '{}', '{"singer_state": {"bookmarks": {"users": {"id": 2}}}}'),
		('c', '', '')},
	$states,
	join("\n",
		'a|{"singer_state": {"bookmarks": {"users": {"id": 1}}}}|',
		'b||{"singer_state": {"bookmarks": {"users": {"id": 2}}}}', 'c||'));

write_file('states.json', q({
  "dev:tap-a-to-target-b": {
    "completed": {"singer_state": {"bookmarks": {"it's": {"id": 1}}}},
    "partial": {}
  },
  "dev:tap-a-to-target-c:\u00e4": {"completed": null, "partial": {"singer_state": {"bookmarks": {}}}}
}
));
recipe_gives(
	'Moving in: From a file of `meltano state export`', '',
	$states,
	join("\n",
		q(dev:tap-a-to-target-b|{"singer_state": {"bookmarks": {"it's": {"id": 1}}}}|),
		qq(dev:tap-a-to-target-c:\xc3\xa4||{"singer_state": {"bookmarks": {}}})));

write_file('state.json',
	qq({"bookmarks": {"issues": {"since": "2022-06-22T13:32:42Z"}},\n "currently_syncing": null}\n)
);
recipe_gives(
	'Moving in: From a plain Singer state file', '',
	$states,
	'prod:tap-github-to-target-postgres|{"bookmarks": {"issues": {"since": "2022-06-22T13:32:42Z"}}, "currently_syncing": null}|'
);

# Out: what a recipe wrote, another one reads.
my $some = q{
	SELECT singer_state.set('a', '{"singer_state": {"bookmarks": {"it''s": {"id": 1}}}}', '{"singer_state": {"bookmarks": {"x": {"id": 2}}}}');
	SELECT singer_state.set('b', '{"singer_state": {"bookmarks": {"users": {"id": 18446744073709551616}}}}');
	SELECT singer_state.merge('c', '{"singer_state": {"bookmarks": {"users": {"id": 3}}}}')};
my $some_states = join("\n",
	q(a|{"singer_state": {"bookmarks": {"it's": {"id": 1}}}}|{"singer_state": {"bookmarks": {"x": {"id": 2}}}}),
	'b|{"singer_state": {"bookmarks": {"users": {"id": 18446744073709551616}}}}|',
	'c||{"singer_state": {"bookmarks": {"users": {"id": 3}}}}');

unlink 'states.json';
recipe_gives('Moving out: To a file for `meltano state import`', $some,
	'SELECT count(*) FROM singer_state.states', '3');
recipe_gives('Moving in: From a file of `meltano state export`', '',
	$states, $some_states, 'exported, then imported elsewhere');
like(slurp_file('states.json'), qr/\A\{.*\}\n?\z/s,
	'the file holds one document and nothing else');

# Meltano's table again, with columns of either kind; for json the recipe
# says what to replace.
my $out = q{Moving out: To Meltano's system database};
foreach my $type ('varchar', 'json')
{
	local $recipe{$out} = $recipe{$out};
	$recipe{$out} =~ s/::text/::json/g if $type eq 'json';
	recipe_gives(
		$out,
		"$some;" . qq{
		CREATE TABLE state (
			state_id varchar PRIMARY KEY,
			updated_at timestamp,
			partial_state $type,
			completed_state $type);
		INSERT INTO state (state_id, completed_state)
		VALUES ('a', '{}'), ('z', '{"mine": 1}')},
		q{SELECT state_id, completed_state::jsonb, partial_state::jsonb,
			updated_at IS NOT NULL
		FROM state ORDER BY 1},
		join("\n",
			q(a|{"singer_state": {"bookmarks": {"it's": {"id": 1}}}}|{"singer_state": {"bookmarks": {"x": {"id": 2}}}}|t),
			'b|{"singer_state": {"bookmarks": {"users": {"id": 18446744073709551616}}}}|{}|t',
			'c|{}|{"singer_state": {"bookmarks": {"users": {"id": 3}}}}|t',
			'z|{"mine": 1}||f'),
		"to Meltano's table, columns $type");
}

foreach my $case (
	[ '{"singer_state": {"bookmarks": {"users": {"id": 1}}}}', 'payload' ],
	[ '{"bookmarks": {"users": {"id": 1}}}', 'tap state' ])
{
	unlink 'state.json';
	recipe_gives(
		'Moving out: To a plain Singer state file',
		"SELECT singer_state.set('prod:tap-github-to-target-postgres', '$case->[0]')",
		'SELECT count(*) FROM singer_state.states',
		'1',
		"to a plain file, from a $case->[1]");
	is(slurp_file('state.json'), qq({"bookmarks": {"users": {"id": 1}}}\n),
		'the file holds the tap state');
}

is_deeply([ sort keys %recipe ],
	[ sort keys %tested ], 'every recipe was run');

chdir $here;
$node->stop;
done_testing();
