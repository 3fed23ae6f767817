# The store against the recorded behaviour of Meltano's state stores: whole
# sequences of calls, glob patterns and deep merges.
#
# A sequence runs in a namespace of its own.  Where the store is stricter than
# Meltano on purpose, the parity call is made: fold and overwrite for copies,
# allow_empty for writes, and for the copy of a missing state, an error here,
# what Meltano does then.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use Test::More;

my $node = start_node('vectors');

install_reference($node);
read_jsonl($node, 'sequences', data_path('vectors', 'store_sequences.jsonl'));
read_jsonl($node, 'globs', data_path('vectors', 'glob.jsonl'));
read_jsonl($node, 'merges', data_path('vectors', 'meltano_merge.jsonl'));

# One operation of a sequence; answers what the store says, in the vector's
# words.
run_sql(
	$node, q{
-- Meltano copies an empty state, or none, by merging {} into the target.
CREATE FUNCTION copied(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	source text := op ->> 'from';
	target text := op ->> 'to';
	effective jsonb := singer_state.get(source);
BEGIN
	IF effective = '{}' AND op ->> 'op' <> 'merge_from' THEN
		PERFORM singer_state.merge(target, '{}');
		IF op ->> 'op' = 'move' THEN
			PERFORM singer_state.clear(source);
		END IF;
		RETURN 'null';
	END IF;
	CASE op ->> 'op'
		WHEN 'copy' THEN
			PERFORM singer_state.copy(source, target,
				overwrite => true, fold => true);
		WHEN 'move' THEN
			PERFORM singer_state.move(source, target,
				overwrite => true, fold => true);
		WHEN 'merge_from' THEN
			PERFORM singer_state.merge_from(source, target);
	END CASE;
	RETURN 'null';
EXCEPTION WHEN SQLSTATE '02000' THEN
	IF effective IS NOT NULL THEN
		RAISE;
	END IF;
	PERFORM singer_state.merge(target, '{}');
	RETURN 'null';
END $$;

CREATE FUNCTION written(op jsonb, use_update boolean) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
	id text := op ->> 'state_id';
	completed jsonb := coalesce(nullif(op -> 'completed_state', 'null'), '{}');
	partial jsonb := coalesce(nullif(op -> 'partial_state', 'null'), '{}');
BEGIN
	IF op ->> 'op' = 'set' THEN
		PERFORM singer_state.set(id, completed, partial, allow_empty => true);
	ELSIF op ->> 'op' = 'update_partial' AND NOT use_update THEN
		PERFORM singer_state.merge(id, partial);
	ELSE
		PERFORM singer_state.update(id, partial_state => partial,
			completed_state => completed, allow_empty => true);
	END IF;
	RETURN 'null';
END $$;

CREATE FUNCTION answered(op jsonb, use_update boolean) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
	id text := op ->> 'state_id';
	answer jsonb;
BEGIN
	CASE op ->> 'op'
		WHEN 'set', 'update_partial', 'update_complete' THEN
			RETURN written(op, use_update);
		WHEN 'copy', 'move', 'merge_from' THEN
			RETURN copied(op);
		WHEN 'delete' THEN
			PERFORM singer_state.clear(id);
			RETURN 'null';
		WHEN 'clear_all' THEN
			SELECT to_jsonb(count(*)) INTO answer
			FROM singer_state.clear_all('*');
		WHEN 'get' THEN
			SELECT jsonb_build_object('completed_state', s.completed_state,
				'partial_state', s.partial_state) INTO answer
			FROM singer_state.get_state(id) s;
		WHEN 'merged' THEN
			answer := singer_state.get(id);
			IF answer IS NULL THEN
				RETURN '{}';
			END IF;
			answer := jsonb_build_object('out', answer);
		WHEN 'list' THEN
			SELECT coalesce(jsonb_agg(l), '[]') INTO answer
			FROM singer_state.list(coalesce(op ->> 'pattern', '*')) l;
		WHEN 'export' THEN
			answer := singer_state.export();
		WHEN 'dump' THEN
			SELECT coalesce(jsonb_object_agg(s.state_id, jsonb_build_object(
				'completed_state', s.completed_state,
				'partial_state', s.partial_state)), '{}') INTO answer
			FROM singer_state.state s
			WHERE s.namespace = current_setting('singer_state.namespace');
	END CASE;
	RETURN coalesce(answer, 'null');
END $$;

-- the first disagreement of a sequence, or NULL
CREATE FUNCTION replayed(line integer, ops jsonb, use_update boolean)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	op jsonb;
	answer jsonb;
BEGIN
	PERFORM set_config('singer_state.namespace',
		format('sequence %s %s', line, use_update), true);
	FOR op IN SELECT jsonb_array_elements(ops) LOOP
		answer := answered(op, use_update);
		IF answer IS DISTINCT FROM coalesce(op -> 'out', 'null') THEN
			RETURN format('line %s: %s answered %s', line, op, answer);
		END IF;
	END LOOP;
	RETURN NULL;
EXCEPTION WHEN OTHERS THEN
	RETURN format('line %s: %s failed: %s %s', line, op, SQLSTATE, SQLERRM);
END $$;
});

# Prints how many lines agree, and the first few that do not.
sub lines_agree
{
	my ($name, $lines, $sql) = @_;
	my @wrong = split /\n/, run_sql($node, $sql);
	my $total = run_sql($node, "SELECT count(*) FROM $lines");

	note(sprintf('%s: %d of %d lines agree', $name, $total - @wrong, $total));
	diag($_) foreach @wrong;
	cmp_ok($total, '>', 20, "$name: the file was read");
	return is(scalar(@wrong), 0, "$name: every line agrees");
}

lines_agree('sequences, partial states through merge', 'sequences', q{
	SELECT problem FROM (SELECT line, replayed(line, doc -> 'ops', false)
		AS problem FROM sequences) s
	WHERE problem IS NOT NULL ORDER BY line});

lines_agree('sequences, partial states through update', 'sequences', q{
	SELECT problem FROM (SELECT line, replayed(line, doc -> 'ops', true)
		AS problem FROM sequences) s
	WHERE problem IS NOT NULL ORDER BY line});

# Globs through every function that takes one.  No state id is empty, so the
# empty name of the vectors cannot be stored.
run_sql(
	$node, q{
CREATE FUNCTION globbed(line integer, doc jsonb) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	pattern text := doc ->> 'pattern';
	expected text[];
	listed text[];
	exported text[];
	previewed text[];
	cleared text[];
	left_over text[];
BEGIN
	PERFORM set_config('singer_state.namespace', format('glob %s', line), true);
	PERFORM singer_state.set(id, '{"a": 1}')
	FROM jsonb_array_elements_text(doc -> 'ids') id WHERE id <> '';

	expected := ARRAY(SELECT id FROM jsonb_array_elements_text(doc -> 'out') id
		WHERE id <> '' ORDER BY id COLLATE "C");
	listed := ARRAY(SELECT l FROM singer_state.list(pattern) l);
	exported := ARRAY(SELECT k FROM
		jsonb_object_keys(singer_state.export(pattern)) k
		ORDER BY k COLLATE "C");
	previewed := ARRAY(SELECT c FROM
		singer_state.clear_all(pattern, dry_run => true) c
		ORDER BY c COLLATE "C");
	cleared := ARRAY(SELECT c FROM singer_state.clear_all(pattern) c
		ORDER BY c COLLATE "C");
	left_over := ARRAY(SELECT l FROM singer_state.list() l);

	IF listed IS DISTINCT FROM expected
		OR exported IS DISTINCT FROM expected
		OR previewed IS DISTINCT FROM expected
		OR cleared IS DISTINCT FROM expected
		OR left_over && expected
		OR cardinality(left_over) + cardinality(expected) <>
			(SELECT count(*) FROM jsonb_array_elements_text(doc -> 'ids') id
			 WHERE id <> '')
	THEN
		RETURN format('line %s: %s expected %s, list %s, export %s, '
			'dry run %s, cleared %s', line, pattern, expected, listed,
			exported, previewed, cleared);
	END IF;
	RETURN NULL;
EXCEPTION WHEN OTHERS THEN
	RETURN format('line %s: %s failed: %s %s', line, pattern, SQLSTATE,
		SQLERRM);
END $$;
});

lines_agree('globs', 'globs', q{
	SELECT problem FROM (SELECT line, globbed(line, doc) AS problem
		FROM globs) s
	WHERE problem IS NOT NULL ORDER BY line});

# Where Meltano's merge raises, ours replaces: the reference says by what.
lines_agree('deep merge', 'merges', q{
	SELECT format('line %s: %s', line,
		singer_state.deep_merge(doc -> 'dest', doc -> 'src'))
	FROM merges
	WHERE singer_state.deep_merge(doc -> 'dest', doc -> 'src')
		IS DISTINCT FROM coalesce(doc -> 'out',
			reference_merge(doc -> 'dest', doc -> 'src'))
	ORDER BY line});

# the reference itself, so that what it says of the lines above counts
value_is(
	$node, q{
	SELECT count(*) FROM merges
	WHERE doc ? 'out' AND reference_merge(doc -> 'dest', doc -> 'src')
		IS DISTINCT FROM doc -> 'out'},
	'0', 'the reference merge agrees with Meltano');

$node->stop;
done_testing();
