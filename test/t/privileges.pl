# Who may do what: nothing without a grant, each level no more than its own,
# and a history that those who write states can neither alter nor forge.
#
# The functions are taken from the catalog, so that none is forgotten.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use Test::More;

# What the store's functions do with states, each with a call that does it.
my %reads = (
	get => q{('a')},
	get_state => q{('a')},
	list => q{()},
	export => q{()},
	history => q{('a')},
	state_at => q{('a', 1)},
	diff => q{('a', 1, 2)});
my %writes = (
	set => q{('a', '{"b": 1}')},
	merge => q{('a', '{"b": 1}')},
	update => q{('a', '{"b": 1}')},
	promote => q{('a')},
	clear => q{('a')},
	clear_all => q{('*')},
	copy => q{('a', 'c')},
	move => q{('a', 'c')},
	merge_from => q{('a', 'b')},
	import => q{('{"c": {"completed": {"b": 1}}}')},
	restore => q{('a', 1)});
my %grants = (
	grant_access => q{('reader', 'writer')},
	revoke_access => q{('reader')},
	break_lock => q{('a')});

# Not immutable, and still no business of anybody's: the time of day.
my @public = qw(get_replication_key_signpost);

my $node = start_node('privileges');

run_sql(
	$node, q{
	CREATE ROLE nobody_special;
	CREATE ROLE reader;
	CREATE ROLE writer;
	CREATE ROLE administrator;
	SELECT singer_state.set('a', '{"bookmarks": {"users": {"id": 1}}}');
	SELECT singer_state.set('a', '{"bookmarks": {"users": {"id": 2}}}');
	SELECT singer_state.set('b', '{"bookmarks": {"users": {"id": 2}}}')});

# One call of every function, with an argument of each parameter's type.  The
# arguments come from a subquery that is not flattened: the planner would
# answer a strict call of a constant NULL without looking at privileges.
run_sql(
	$node, q{
CREATE FUNCTION sample(type oid) RETURNS text LANGUAGE sql AS $$
	SELECT CASE type::regtype::text
		WHEN 'text' THEN '''a'''
		WHEN 'jsonb' THEN '''{"bookmarks": {"users": {"id": 1}}}'''
		WHEN 'bigint' THEN '1'
		WHEN 'integer' THEN '1'
		WHEN 'boolean' THEN 'true'
		WHEN 'uuid' THEN '''00000000-0000-0000-0000-000000000001'''
		WHEN 'text[]' THEN '''{a}'''
		WHEN 'interval' THEN '''1 second'''
		WHEN 'timestamp with time zone' THEN '''2026-01-01T00:00:00Z'''
		WHEN 'regrole' THEN '''reader'''
		WHEN 'name' THEN '''reader'''
		ELSE 'NULL' END || '::' || type::regtype::text
$$;
CREATE VIEW calls AS
SELECT p.oid, p.proname, p.prokind, p.provolatile,
	p.oid::regprocedure::text AS signature,
	has_function_privilege('nobody_special', p.oid, 'EXECUTE') AS public,
	format('SELECT %s.%I(%s) FROM (SELECT %s OFFSET 0) AS s',
		'singer_state', p.proname,
		(SELECT coalesce(string_agg('s.a' || i, ', ' ORDER BY i), '')
			FROM generate_series(1, p.pronargs) i),
		(SELECT coalesce(string_agg(sample(p.proargtypes[i - 1]) || ' AS a' || i, ', ' ORDER BY i), '1')
			FROM generate_series(1, p.pronargs) i)) AS call
FROM pg_proc p
WHERE p.pronamespace = 'singer_state'::regnamespace
	AND p.prorettype <> 'trigger'::regtype});

sub rows
{
	my ($sql) = @_;
	return
	  map { [ split /\|/, $_, 2 ] } split /\n/, run_sql($node, $sql);
}

# PUBLIC
my $public_names = join(', ', map { "'$_'" } @public);
value_is(
	$node,
	qq{SELECT signature FROM calls
		WHERE public AND provolatile <> 'i' AND proname NOT IN ($public_names)},
	'', 'PUBLIC may execute nothing but pure functions');

my @private = rows(q{SELECT proname, call FROM calls WHERE NOT public
	ORDER BY signature});
my %seen = map { $_->[0] => 1 } @private;

is_deeply([ grep { !$seen{$_} } keys %reads, keys %writes ],
	[], 'every function of the store is among those to be tested');
foreach my $call (@private)
{
	my ($got) = sqlstate_of($node, $call->[1], as => 'nobody_special');
	is($got, '42501', "without a grant: $call->[0]");
}

value_is(
	$node, q{
	SELECT c.relname, p.privilege FROM pg_class c,
		unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE',
			'REFERENCES', 'TRIGGER']) AS p (privilege)
	WHERE c.relnamespace = 'singer_state'::regnamespace
		AND c.relkind IN ('r', 'v') AND has_table_privilege('nobody_special', c.oid, p.privilege)
	ORDER BY 1, 2},
	'', 'PUBLIC has no privilege on a table or view');
value_is(
	$node, q{
	SELECT relname FROM pg_class
	WHERE relnamespace = 'singer_state'::regnamespace
		AND CASE relkind WHEN 'S' THEN
			has_sequence_privilege('nobody_special', oid, 'USAGE, SELECT, UPDATE') END},
	'', 'nor on a sequence');
value_is(
	$node, q{
	SELECT oid::regprocedure FROM pg_proc
	WHERE pronamespace = 'singer_state'::regnamespace AND prosecdef},
	'', 'no function runs with the rights of another');
fails_with($node, 'SELECT * FROM singer_state.states',
	'42501', undef, 'the views ask for privileges too',
	as => 'nobody_special');

# Levels
run_sql(
	$node, q{
	SELECT singer_state.grant_access('reader', 'reader');
	SELECT singer_state.grant_access('writer', 'writer');
	SELECT singer_state.grant_access('administrator', 'admin')});

# A call as a role, in a transaction that is rolled back.
sub tried
{
	my ($role, $call) = @_;
	my ($got) = sqlstate_of($node,
		"BEGIN; SELECT singer_state.$call; ROLLBACK", as => $role);
	return $got;
}

foreach my $name (sort keys %reads)
{
	is(tried($_, "$name$reads{$name}"), '', "$_ may call $name")
	  foreach 'reader', 'writer', 'administrator';
}
foreach my $name (sort keys %writes)
{
	is(tried('reader', "$name$writes{$name}"),
		'42501', "reader may not call $name");
	is(tried($_, "$name$writes{$name}"), '', "$_ may call $name")
	  foreach 'writer', 'administrator';
}
foreach my $name (grep { $seen{$_} } sort keys %grants)
{
	is(tried($_, "$name$grants{$name}"), '42501', "$_ may not call $name")
	  foreach 'reader', 'writer';
}

value_is($node, q{SELECT singer_state.get('a') #> '{bookmarks,users,id}'},
	'2', 'a reader reads', as => 'reader');
value_is($node, q{SELECT count(*) FROM singer_state.states},
	'2', 'and sees the view', as => 'reader');
value_is($node,
	q{SELECT singer_state.merge('a', '{"bookmarks": {"users": {"id": 3}}}')},
	'3', 'a writer writes', as => 'writer');

# The history of a writer
value_is(
	$node, q{
	SELECT version, operation, changed_by FROM singer_state.history('a')
	LIMIT 1}, '2|merge|writer', 'history names the writer');
foreach my $role ('reader', 'writer')
{
	foreach my $sql (
		q{UPDATE singer_state.state_history SET changed_by = 'postgres'},
		q{DELETE FROM singer_state.state_history},
		q{TRUNCATE singer_state.state_history},
		q{INSERT INTO singer_state.state_history
			SELECT * FROM singer_state.state_history LIMIT 1},
		q{ALTER TABLE singer_state.state DISABLE TRIGGER USER},
		q{ALTER TABLE singer_state.state_history DROP COLUMN changed_by})
	{
		fails_with($node, $sql, '42501', undef, "$role: $sql", as => $role);
	}
}
foreach my $setting ('history_limit = 0', q{max_state_size = '1kB'})
{
	fails_with($node, "SELECT singer_state.get('a'); SET singer_state.$setting",
		'42501', undef, "writer may not SET $setting", as => 'writer');
}
# nor before the library is there to refuse it
value_is(
	$node, q{
	SET singer_state.history_limit = 0;
	SELECT singer_state.merge('a', '{"bookmarks": {"users": {"id": 4}}}');
	SELECT version FROM singer_state.history('a') LIMIT 1},
	"4\n3", 'a limit that a writer sets early does not count', as => 'writer');
fails_with($node, 'TRUNCATE singer_state.state',
	'42501', undef, 'a writer may not empty the table unseen',
	as => 'writer');

# What a writer does by hand leaves its trace.
run_sql(
	$node, q{
	UPDATE singer_state.state SET completed_state = '{"by": "hand"}',
		updated_at = '2000-01-01', version = 1
	WHERE state_id = 'b'}, as => 'writer');
value_is(
	$node, q{
	SELECT s.version, s.updated_at > '2001-01-01', h.operation, h.changed_by,
		h.completed_state
	FROM singer_state.get_state('b') s, singer_state.history('b') h},
	'2|t|UPDATE|writer|{"bookmarks": {"users": {"id": 2}}}',
	'a plain UPDATE is recorded');
run_sql($node, q{DELETE FROM singer_state.state WHERE state_id = 'b'},
	as => 'writer');
value_is(
	$node, q{
	SELECT version, operation, changed_by FROM singer_state.history('b')
	LIMIT 1}, '2|DELETE|writer', 'a plain DELETE is recorded');

# Mistakes in granting
fails_with($node, q{SELECT singer_state.grant_access('reader', 'owner')},
	'22023', qr/reader.*writer.*admin/s, 'no such level');
fails_with($node, q{SELECT singer_state.grant_access('nobody_at_all', 'reader')},
	'42704', undef, 'no such role');
# Nor does he choose the version of a row: with the last one that there is,
# the state could never be changed again.
value_is(
	$node, q{
	INSERT INTO singer_state.state (namespace, state_id, version)
	VALUES ('meltano', 'last', 9223372036854775807) RETURNING version;
	SELECT singer_state.merge('last', '{"a": 1}');
	SELECT singer_state.clear('last')},
	"1\n2\nt", 'a writer does not choose the version', as => 'writer');
value_is(
	$node, q{
	INSERT INTO singer_state.state (namespace, state_id, version)
	VALUES ('meltano', 'restored', 7) RETURNING version;
	SELECT singer_state.clear('restored')},
	"7\nt", 'who restores a dump does');

fails_with($node, q{SELECT singer_state.grant_access('writer', 'admin')},
	'42501', undef, 'nobody grants to himself', as => 'writer');

# And back
run_sql(
	$node, q{
	SELECT singer_state.revoke_access('reader');
	SELECT singer_state.revoke_access('writer');
	SELECT singer_state.revoke_access('administrator')});
foreach my $role ('reader', 'writer', 'administrator')
{
	my @left = grep {
		my ($got) = sqlstate_of($node, "BEGIN; $_->[1]; ROLLBACK",
			as => $role);
		$got ne '42501'
	} @private;
	is_deeply([ map { $_->[0] } @left ], [], "$role: nothing is left");
}
value_is($node, q{DROP ROLE reader, writer, administrator, nobody_special},
	'', 'the roles can be dropped');

$node->stop;
done_testing();
