# Many clients at once: no key is lost, no call deadlocks, and what a state
# has been through is in its history without a gap.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use SingerStateTest;
use Test::More;

use constant CLIENTS => 8;
use constant TRANSACTIONS => 150;

my $node = start_node('concurrent', conf => "singer_state.history_limit = -1\n");

run_sql(
	$node, q{
	CREATE SEQUENCE number;
	CREATE TABLE written (id text, key text)});

# Runs pgbench; each script is one transaction, chosen at random.  A client
# that sees an error ends, and so does the test.
sub bench
{
	my ($name, @scripts) = @_;
	my @files;

	foreach my $script (@scripts)
	{
		my $file = $node->basedir . "/$name" . @files . '.sql';
		append_to_file($file, $script);
		push @files, '-f', $file;
	}
	return command_ok(
		[
			'pgbench', '-n', '-c', CLIENTS, '-j', 2,
			'-t', TRANSACTIONS, @files, $node->connstr('postgres')
		],
		$name);
}

# one state, made by whoever comes first
my $merge = q{WITH w AS (INSERT INTO written
	VALUES ('shared', 'k' || nextval('number')) RETURNING id, key)
SELECT singer_state.%s(id, jsonb_build_object('bookmarks', jsonb_build_object(key, 1))) FROM w;
};
bench(
	'one state',
	sprintf($merge, 'merge'),
	sprintf($merge, 'update'),
	q{SELECT singer_state.promote('shared') FROM singer_state.list('shared');
});
value_is(
	$node, q{
	SELECT count(*), count(*) FILTER (WHERE NOT singer_state.get('shared') -> 'bookmarks' ? key)
	FROM written},
	run_sql($node, 'SELECT count(*) FROM written') . '|0',
	'every key that was written is there');
cmp_ok(run_sql($node, 'SELECT count(*) FROM written'),
	'>', CLIENTS * TRANSACTIONS / 3, 'and they were many');
value_is(
	$node, q{
	SELECT s.version - count(*), min(h.version), s.version - max(h.version)
	FROM singer_state.get_state('shared') s, singer_state.history('shared') h
	GROUP BY s.version},
	'1|1|1', 'each version but the last is in the history');

# Single and bulk calls over the same few states.  A state that is gone or
# there already is no fault; a deadlock is.
my $expected = q{EXCEPTION WHEN SQLSTATE '02000' OR unique_violation THEN NULL; END $$;
};
bench(
	'single and bulk calls',
	q{\set i random(1, 5)
SELECT singer_state.merge('s' || :i, jsonb_build_object('a', :i));
},
	q{SELECT singer_state.import(jsonb_object_agg('s' || i, jsonb_build_object(
	'completed', jsonb_build_object('b', random()))), on_conflict => 'overwrite')
FROM generate_series(1, 5) i;
},
	q{SELECT singer_state.import(jsonb_object_agg('s' || i, jsonb_build_object(
	'completed', jsonb_build_object('c', i))), on_conflict => 'skip')
FROM generate_series(5, 1, -1) i;
},
	q{SELECT count(*) FROM singer_state.clear_all('s*');
},
	q{\set i random(1, 5)
SELECT singer_state.clear('s' || :i);
},
	qq{DO \$\$ BEGIN PERFORM singer_state.move('s1', 's5', overwrite => true); $expected},
	qq{DO \$\$ BEGIN PERFORM singer_state.move('s5', 's1', overwrite => true); $expected},
	qq{DO \$\$ BEGIN PERFORM singer_state.copy('s2', 's3', overwrite => random() < 0.5); $expected},
	qq{DO \$\$ BEGIN PERFORM singer_state.merge_from('s4', 's2'); $expected},
	q{SELECT count(*) FROM jsonb_object_keys(singer_state.export());
});
value_is(
	$node, q{
	SELECT count(*) FROM (
		SELECT state_id, version FROM singer_state.state_history
		UNION ALL SELECT state_id, version FROM singer_state.state) v
	GROUP BY state_id HAVING count(*) <> max(version) - min(version) + 1},
	'', 'no version is missing or doubled');

# if_version: of all who read a version, one writes the next.
bench(
	'counting with if_version',
	q{DO $$
DECLARE
	s record;
BEGIN
	SELECT version, completed_state -> 'n' AS n INTO s
	FROM singer_state.get_state('counter');
	PERFORM singer_state.set('counter', jsonb_build_object('n', coalesce(s.n::bigint, 0) + 1),
		if_version => coalesce(s.version, 0));
	INSERT INTO written VALUES ('counter', NULL);
EXCEPTION WHEN serialization_failure THEN
	NULL;
END $$;
});
value_is(
	$node, q{
	SELECT (singer_state.get('counter') -> 'n')::bigint - count(*)
	FROM written WHERE id = 'counter'},
	'0', 'every success counted once');

$node->stop;
done_testing();
