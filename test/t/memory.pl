# No leak: many calls of each function in one session, some of them failing
# in a subtransaction, do not grow the backend.
#
# Each function is called CALLS times.  What the backend holds after the first
# half is compared with what it holds at the end.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use Test::More;

use constant CALLS => 100_000;

# Less than this for half of the calls is no leak: the smallest allocation
# there is takes more.
use constant TOLERANCE => CALLS / 2 * 8;

my $node = start_node('memory', conf => "autovacuum_naptime = 5s\n");
my $memory = backend_memory_sql($node);

run_sql(
	$node, q{
	SELECT singer_state.set('a', '{"bookmarks": {"users": {"id": 1}, "orders": {"id": 2}}}');
	SELECT singer_state.set('a', '{"bookmarks": {"users": {"id": 2}}}', '{"bookmarks": {"x": {"y": 1}}}');
	SELECT singer_state.set('b', '{"singer_state": {"bookmarks": {"users": {"id": 1}}}}')});

# What one call is; i counts up.  The second one fails.
my @calls = (
	[ 'get', q{PERFORM singer_state.get('a')} ],
	[ 'get_state', q{PERFORM FROM singer_state.get_state('a')} ],
	[
		'set', q{PERFORM singer_state.set('s', jsonb_build_object('i', i))},
		q{PERFORM singer_state.set('s', '{"type": "STATE", "value": {}}')}
	],
	[
		'set, unchanged', q{PERFORM singer_state.set('b', '{"singer_state": {"bookmarks": {"users": {"id": 1}}}}')},
		q{PERFORM singer_state.set('b', NULL)}
	],
	[
		'merge', q{PERFORM singer_state.merge('m', jsonb_build_object('i', i))},
		q{PERFORM singer_state.merge('m', '{"a": 1}', if_version => 0)}
	],
	[
		'merge by_context', q{PERFORM singer_state.merge('mc', jsonb_build_object('bookmarks', jsonb_build_object('s', jsonb_build_object('partitions',
			jsonb_build_array(jsonb_build_object('context', jsonb_build_object('id', i % 3), 'value', i))))), by_context => true)}
	],
	[
		'update', q{PERFORM singer_state.update('u', jsonb_build_object('i', i),
			CASE i % 2 WHEN 0 THEN jsonb_build_object('i', i) END)},
		q{PERFORM singer_state.update('u', '[]')}
	],
	[
		'promote', q{PERFORM singer_state.merge('p', jsonb_build_object('i', i)), singer_state.promote('p')},
		q{PERFORM singer_state.promote('none')}
	],
	[
		'clear', q{PERFORM singer_state.set('c', '{"a": 1}'), singer_state.clear('c')},
		q{PERFORM singer_state.clear(NULL)}
	],
	[
		'clear_all', q{PERFORM singer_state.clear_all('no*')},
		q{PERFORM singer_state.clear_all(NULL)}
	],
	[
		'copy', q{PERFORM singer_state.copy(CASE i % 2 WHEN 0 THEN 'a' ELSE 'b' END, 'd', overwrite => true)},
		q{PERFORM singer_state.copy('none', 'd')}
	],
	[
		'move', q{PERFORM singer_state.move(CASE i % 2 WHEN 0 THEN 'mv' ELSE 'mw' END, CASE i % 2 WHEN 0 THEN 'mw' ELSE 'mv' END)},
		q{PERFORM singer_state.move('a', 'b')}
	],
	[
		'merge_from', q{PERFORM singer_state.merge_from('b', 'mf')},
		q{PERFORM singer_state.merge_from('none', 'mf')}
	],
	[ 'list', q{PERFORM singer_state.list('[ab]')}, q{PERFORM singer_state.list(NULL)} ],
	[ 'export', q{PERFORM singer_state.export('[ab]')} ],
	[
		'import', q{PERFORM singer_state.import(jsonb_build_object('i', jsonb_build_object('completed', jsonb_build_object('i', i))), on_conflict => 'overwrite')},
		q{PERFORM singer_state.import('{"a": {"completed": {"a": 1}}}')}
	],
	[ 'history', q{PERFORM FROM singer_state.history('a')} ],
	[
		'state_at', q{PERFORM FROM singer_state.state_at('a', 1)},
		q{PERFORM FROM singer_state.state_at('a', 9)}
	],
	[
		'restore', q{PERFORM singer_state.restore('a', 2)},
		q{PERFORM singer_state.restore('a', 99)}
	],
	[
		'diff', q{PERFORM FROM singer_state.diff('a', 1, 2)},
		q{PERFORM FROM singer_state.diff('a', 1, 9)}
	],
	[ 'deep_merge', q{PERFORM singer_state.deep_merge('{"a": {"b": 1}}', jsonb_build_object('a', jsonb_build_object('c', i)))} ],
	[ 'a plain UPDATE', q{UPDATE singer_state.state SET partial_state = jsonb_build_object('i', i) WHERE state_id = 'b'},
		q{UPDATE singer_state.state SET partial_state = '1' WHERE state_id = 'b'} ],
	[ 'the views', q{PERFORM FROM singer_state.states WHERE effective_state IS NULL} ]);

run_sql($node, q{SELECT singer_state.set('mw', '{"a": 1}')});

# Every tenth call is one that fails.  The row versions of one transaction are
# commonly too many for a page, hence a commit now and then.
sub half
{
	my ($call, $failing) = @_;
	my $fails = defined $failing
	  ? qq{IF i % 10 = 0 THEN
				BEGIN
					$failing;
					RAISE 'no error';
				EXCEPTION WHEN OTHERS THEN
					IF SQLERRM = 'no error' THEN
						RAISE;
					END IF;
				END;
			END IF;}
	  : '';

	return sprintf(
		q{
		DO $do$
		BEGIN
			FOR i IN 1 .. %d LOOP
				%s;
				%s
				IF i %% 50 = 0 THEN
					COMMIT;
				END IF;
			END LOOP;
		END $do$;
		%s;
		},
		CALLS / 2, $call, $fails, $memory);
}

foreach my $case (@calls)
{
	my ($name, $call, $failing) = @$case;
	my $start = time();
	my $half = half($call, $failing);
	my ($middle, $end) = split /\n/, run_sql($node, $half . $half);

	note(sprintf('%s: %d calls in %d s, %d kB after half, %d kB at the end',
			$name, CALLS, time() - $start, $middle / 1024, $end / 1024));
	cmp_ok($end - $middle, '<', TOLERANCE, "$name does not leak");
}

# every function of the store was called
my @missing = grep {
	my $function = $_;
	!grep { $_->[1] =~ /singer_state\.\Q$function\E\(/ } @calls
} qw(get get_state set merge update promote clear clear_all copy move
  merge_from list export import history state_at restore diff);
is_deeply(\@missing, [], 'none was forgotten');

$node->stop;
done_testing();
