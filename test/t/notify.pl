# singer_state.notify: one notification for each change, when it is committed.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use Test::More;

my $node = start_node('notify');

# Runs SQL in a session that listens; answers the payloads as rows
# "namespace|state_id|version".
sub heard
{
	my ($sql, $on) = @_;
	my $output = run_sql(
		$node, "LISTEN singer_state;\nSET singer_state.notify = "
		  . ($on ? 'on' : 'off')
		  . ";\n$sql");
	my @payloads =
	  $output =~ /notification "singer_state" with payload "(.*)" received/g;

	return join("\n",
		map {
			s/'/''/g;
			run_sql($node,
				"SELECT j ->> 'namespace', j ->> 'state_id', j ->> 'version' FROM (SELECT '$_'::jsonb) AS s (j)"
			)
		} @payloads);
}

run_sql($node, q{SELECT singer_state.set('old', '{"a": 1}', '{"b": 1}')});

is(heard(q{SELECT singer_state.set('off', '{"a": 1}');}, 0),
	'', 'off: nothing');
is( heard(q{SELECT singer_state.set('a', '{"a": 1}');
		SELECT singer_state.merge('a', '{"a": 2}');}, 1),
	"meltano|a|1\nmeltano|a|2",
	'each change');
is( heard(q{SELECT singer_state.set('a', '{"a": 1}', '{"a": 2}');}, 1),
	'', 'a write that changes nothing');
is( heard(q{BEGIN;
		SELECT singer_state.set('a', '{"a": 3}');
		ROLLBACK;}, 1),
	'', 'a write that is rolled back');
is( heard(q{BEGIN;
		SELECT singer_state.set('a', '{"a": 3}');
		SAVEPOINT s;
		SELECT singer_state.set('a', '{"a": 4}');
		ROLLBACK TO s;
		SELECT singer_state.set('b', '{"a": 4}');
		COMMIT;}, 1),
	"meltano|a|3\nmeltano|b|1",
	'what a savepoint took back is not told');
is( heard(q{SET singer_state.namespace = 'team "x"';
		SELECT singer_state.set('it''s \ "q" ' || U&'\00E4', '{"a": 3}');}, 1),
	qq{team "x"|it's \\ "q" \xc3\xa4|1},
	'names are quoted as JSON wants');
is( heard(q{UPDATE singer_state.state SET partial_state = '{"c": 1}'
		WHERE state_id = 'old';}, 1),
	'meltano|old|2', 'a plain UPDATE');
is( heard(q{SELECT singer_state.promote('old');
		SELECT singer_state.restore('old', 1);
		SELECT singer_state.import('{"i": {"completed": {"a": 1}}}');
		SELECT singer_state.copy('i', 'j');}, 1),
	"meltano|old|3\nmeltano|old|4\nmeltano|i|1\nmeltano|j|1",
	'the other writers');
like(
	heard(q{SELECT singer_state.move('i', 'k');
		SELECT singer_state.clear('j');}, 1),
	qr/meltano\|k\|1.*meltano\|j\|/s,
	'a state that goes');

# the longest names there are, each character of them escaped
like(
	heard(
		q{SET singer_state.namespace = '}
		  . "\x01" x 255
		  . q{'; SELECT singer_state.set(repeat(chr(1), 1024), '{"a": 1}');}, 1),
	qr/\|1$/,
	'the longest names fit');

$node->stop;
done_testing();
