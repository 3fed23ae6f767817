# Row-level security that an administrator puts on the tables holds through
# every function: two writers, each with policies for ids of its own.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use Test::More;

my $node =
  start_node('row_security', conf => 'max_prepared_transactions = 2');

run_sql(
	$node, q{
	CREATE ROLE alice;
	CREATE ROLE bob;
	SELECT singer_state.grant_access('alice', 'writer');
	SELECT singer_state.grant_access('bob', 'writer');
	ALTER TABLE singer_state.state ENABLE ROW LEVEL SECURITY;
	ALTER TABLE singer_state.state_history ENABLE ROW LEVEL SECURITY;
	CREATE POLICY own ON singer_state.state
		USING (state_id LIKE current_user || ':%');
	CREATE POLICY own ON singer_state.state_history
		USING (state_id LIKE current_user || ':%')});

# Each fills its own.
foreach my $role ('alice', 'bob')
{
	value_is(
		$node, qq{
		SELECT singer_state.set('$role:x', '{"owner": "$role"}');
		SELECT singer_state.merge('$role:x', '{"more": 1}');
		SELECT singer_state.set('$role:y', '{"owner": "$role", "y": 1}')},
		"1\n2\n1", "$role writes its own", as => $role);
}
my $before = run_sql($node,
	q{SELECT * FROM singer_state.state WHERE state_id LIKE 'bob:%'
	ORDER BY state_id});
my $history_before = run_sql($node,
	q{SELECT * FROM singer_state.state_history WHERE state_id LIKE 'bob:%'});
like($history_before, qr/merge/, 'history is written under the policies');

# What alice can read
foreach my $case (
	[ q{singer_state.get('bob:x') IS NULL}, 't' ],
	[ q{singer_state.get('alice:x')}, '{"more": 1, "owner": "alice"}' ],
	[ q{count(*) FROM singer_state.get_state('bob:x')}, '0' ],
	[ q{array_agg(l) FROM singer_state.list() l}, '{alice:x,alice:y}' ],
	[ q{array_agg(l) FROM singer_state.list('bob:*') l}, '' ],
	[ q{array_agg(k) FROM jsonb_object_keys(singer_state.export()) k},
		'{alice:x,alice:y}' ],
	[ q{count(*) FROM singer_state.history('bob:x')}, '0' ],
	[ q{count(*) FROM singer_state.history('alice:x')}, '1' ],
	[ q{array_agg(state_id) FROM singer_state.states}, '{alice:x,alice:y}' ],
	[ q{array_agg(c) FROM singer_state.clear_all('bob:*') c}, '' ],
	[ q{array_agg(c) FROM singer_state.clear_all('*', dry_run => true) c},
		'{alice:x,alice:y}' ],
	[ q{singer_state.clear('bob:x')}, 'f' ])
{
	value_is($node, "SELECT $case->[0]", $case->[1],
		"alice: $case->[0]", as => 'alice');
}

# What she cannot: a state that is not hers is unknown as a source, and
# forbidden as a target.
foreach my $case (
	[ q{singer_state.state_at('bob:x', 1)}, '02000' ],
	[ q{singer_state.diff('bob:x', 1, 2)}, '02000' ],
	[ q{singer_state.restore('bob:x', 1)}, '02000' ],
	[ q{singer_state.promote('bob:x')}, '02000' ],
	[ q{singer_state.copy('bob:x', 'alice:z')}, '02000' ],
	[ q{singer_state.move('bob:x', 'alice:z')}, '02000' ],
	[ q{singer_state.merge_from('bob:x', 'alice:z')}, '02000' ],
	[ q{singer_state.set('bob:x', '{"owner": "alice"}')}, '42501' ],
	[ q{singer_state.set('bob:new', '{"owner": "alice"}')}, '42501' ],
	[ q{singer_state.merge('bob:x', '{"owner": "alice"}')}, '42501' ],
	[ q{singer_state.merge('bob:new', '{"owner": "alice"}')}, '42501' ],
	[ q{singer_state.update('bob:x', '{"a": 1}', '{"b": 1}')}, '42501' ],
	[ q{singer_state.copy('alice:x', 'bob:new')}, '42501' ],
	[ q{singer_state.copy('alice:x', 'bob:x', overwrite => true)}, '42501' ],
	[ q{singer_state.move('alice:x', 'bob:new')}, '42501' ],
	[ q{singer_state.merge_from('alice:x', 'bob:x')}, '42501' ],
	[ q{singer_state.import('{"bob:new": {"completed": {"a": 1}}}')},
		'42501' ],
	[ q{singer_state.import('{"bob:x": {"completed": {"a": 1}}}', on_conflict => 'overwrite')},
		'42501' ])
{
	fails_with($node, "SELECT $case->[0]", $case->[1], undef,
		"alice: $case->[0]", as => 'alice');
}

# skip must not tell her that there is something, nor write
my ($skipped) = sqlstate_of($node,
	q{SELECT singer_state.import('{"bob:x": {"completed": {"a": 1}}}', on_conflict => 'skip')},
	as => 'alice');
like($skipped, qr/^(?:42501)?$/, 'alice skips what she may not see');

is( run_sql(
		$node,
		q{SELECT * FROM singer_state.state WHERE state_id LIKE 'bob:%'
		ORDER BY state_id}),
	$before, q{bob's states are as they were});
is( run_sql(
		$node,
		q{SELECT * FROM singer_state.state_history WHERE state_id LIKE 'bob:%'}
	),
	$history_before, 'and so is their history');

# Clearing everything clears one's own.
value_is(
	$node,
	q{SELECT array_agg(c) FROM singer_state.clear_all('*') c},
	'{alice:x,alice:y}', 'alice clears all', as => 'alice');
value_is($node, q{SELECT array_agg(l) FROM singer_state.list() l},
	'{bob:x,bob:y}', 'bob has everything', as => 'bob');
value_is(
	$node, q{
	SELECT singer_state.restore('alice:x', 2) > 2;
	SELECT singer_state.get('alice:x')},
	qq{t\n{"more": 1, "owner": "alice"}},
	'alice restores what she cleared', as => 'alice');

# To find out whether a state may be locked waits for nobody.
run_sql($node, q{SELECT singer_state.set('bob:x', '{"owner": "bob"}')},
	as => 'bob');
run_sql(
	$node, q{
	BEGIN;
	SELECT singer_state.merge('bob:x', '{"a": 1}');
	PREPARE TRANSACTION 'changed';
	BEGIN;
	SELECT singer_state.merge('bob:new', '{"a": 1}');
	PREPARE TRANSACTION 'created'}, as => 'bob');
foreach my $state_id ('bob:x', 'bob:new')
{
	value_is(
		$node, qq{
		SET statement_timeout = '60s';
		SELECT singer_state.try_acquire_lock('$state_id')},
		'f', "$state_id is being written", as => 'bob');
	fails_with(
		$node, qq{
		SET statement_timeout = '60s';
		SELECT singer_state.try_acquire_lock('$state_id')},
		'42501', undef, "and it is none of alice's business", as => 'alice');
}
run_sql(
	$node, q{
	ROLLBACK PREPARED 'changed';
	ROLLBACK PREPARED 'created'});
value_is(
	$node, q{
	SELECT singer_state.try_acquire_lock('bob:x');
	SHOW lock_timeout},
	"t\n0", 'no longer', as => 'bob');

$node->stop;
done_testing();
