-- One state through its life: set, get, merge, update, promote, clear.
SET singer_state.namespace = 'regress_store';

-- an unknown state
SELECT singer_state.get('pipe') IS NULL AS unknown;
SELECT count(*) FROM singer_state.get_state('pipe');
SELECT count(*) FROM singer_state.history('pipe');
SELECT singer_state.clear('pipe');

-- the first write
SELECT singer_state.set('pipe', '{"bookmarks": {"users": {"id": 1}}}');
SELECT singer_state.get('pipe');
SELECT state_id, completed_state, partial_state, version
FROM singer_state.get_state('pipe');

-- set replaces both parts
SELECT singer_state.set('pipe', '{"bookmarks": {"users": {"id": 2}}}',
	'{"bookmarks": {"orders": {"id": 7}}}');
SELECT singer_state.get('pipe');
SELECT completed_state, partial_state, version
FROM singer_state.get_state('pipe');
SELECT singer_state.set('pipe', '{"bookmarks": {"users": {"id": 3}}}');
SELECT completed_state, partial_state, version
FROM singer_state.get_state('pipe');

-- merge works on the partial part alone, and creates a state
SELECT singer_state.merge('pipe', '{"bookmarks": {"users": {"id": 4}, "orders": {"id": 8}}}');
SELECT singer_state.merge('pipe', '{"bookmarks": {"users": {"page": [1, 2]}}}');
SELECT singer_state.merge('pipe', '{"bookmarks": {"users": {"page": [3]}}}');
SELECT completed_state, partial_state, version
FROM singer_state.get_state('pipe');
SELECT singer_state.get('pipe');
SELECT singer_state.merge('fresh', '{"bookmarks": {"users": {"id": 1}}}');
SELECT completed_state, partial_state, version
FROM singer_state.get_state('fresh');

-- merging is Meltano's: null overwrites, an empty object clears nothing, and
-- kinds that differ replace each other
SELECT singer_state.set('m', '{"a": {"b": 1}, "c": {"d": 1}, "e": 5, "f": {"g": 1}}');
SELECT singer_state.merge('m', '{"a": {"b": null}, "c": {}, "e": {"x": 1}, "f": 6}');
SELECT singer_state.get('m');
SELECT completed_state, partial_state FROM singer_state.get_state('m');

-- update: a completed state replaces both parts, otherwise the partial one
-- is merged
SELECT singer_state.update('pipe', '{"bookmarks": {"orders": {"id": 9}}}');
SELECT singer_state.update('pipe', '{"bookmarks": {"orders": {"id": 10}}}', '{}');
SELECT completed_state, partial_state, version
FROM singer_state.get_state('pipe');
SELECT singer_state.update('pipe', '{"bookmarks": {"orders": {"id": 11}}}',
	'{"bookmarks": {"users": {"id": 5}}}');
SELECT completed_state, partial_state, version
FROM singer_state.get_state('pipe');
SELECT singer_state.update('pipe', completed_state => '{"bookmarks": {"users": {"id": 6}}}',
	partial_state => NULL);
SELECT completed_state, partial_state, version
FROM singer_state.get_state('pipe');
SELECT singer_state.update('made', '{"bookmarks": {"users": {"id": 1}}}');
SELECT completed_state, partial_state, version
FROM singer_state.get_state('made');

-- promote: what was effective becomes completed
SELECT singer_state.merge('pipe', '{"bookmarks": {"orders": {"id": 12}}}');
SELECT singer_state.promote('pipe');
SELECT completed_state, partial_state, version
FROM singer_state.get_state('pipe');
-- nothing partial, nothing to do
SELECT singer_state.promote('pipe');
\set VERBOSITY sqlstate
SELECT singer_state.promote('unknown');
\set VERBOSITY default

-- the view
SELECT state_id, completed_state, partial_state, effective_state, version
FROM singer_state.states ORDER BY state_id COLLATE "C";

-- writes in a transaction that is rolled back never were
BEGIN;
SELECT singer_state.set('pipe', '{"bookmarks": {"users": {"id": 99}}}');
SELECT singer_state.get('pipe');
SAVEPOINT s;
SELECT singer_state.clear('pipe');
SELECT singer_state.get('pipe') IS NULL AS cleared;
ROLLBACK TO s;
SELECT singer_state.get('pipe');
ROLLBACK;
SELECT singer_state.get('pipe');

-- clear
SELECT singer_state.clear('pipe');
SELECT singer_state.clear('pipe');
SELECT singer_state.get('pipe') IS NULL AS unknown;
SELECT count(*) FROM singer_state.get_state('pipe');
-- made again, it goes on counting where it was: nobody who remembers an old
-- version takes the new state for it
SELECT version AS last_version FROM singer_state.history('pipe') LIMIT 1 \gset
SELECT singer_state.set('pipe', '{"bookmarks": {}}') > :last_version AS counts_on;

-- an empty state is a state
SELECT singer_state.set('empty', '{}');
SELECT singer_state.get('empty');
SELECT completed_state, partial_state, version
FROM singer_state.get_state('empty');
SELECT completed_state IS NULL AS c, partial_state IS NULL AS p
FROM singer_state.state
WHERE namespace = 'regress_store' AND state_id = 'empty';

-- ids are opaque: neither trimmed nor folded
SELECT singer_state.set(id, jsonb_build_object('id', id))
FROM unnest(ARRAY['Pipe', ' pipe', 'pipe ', 'pi''pe', 'pi"pe', 'pi\pe', 'pi%pe', repeat('x', 1024)]) id;
SELECT count(*) FROM singer_state.list('*[Pp]i*pe*');
SELECT singer_state.get('Pipe'), singer_state.get(' pipe'), singer_state.get('pi''pe');
SELECT singer_state.get(repeat('x', 1024)) IS NOT NULL AS longest;

-- set, update and list are words of SQL; qualified they parse, so do they
-- with named arguments
SELECT singer_state.set(state_id => 'named', completed_state => '{"a": 1}',
	partial_state => '{"b": 2}', if_version => NULL, token => NULL,
	validate => true, allow_empty => false);
SELECT singer_state.merge(state_id => 'named', partial_state => '{"b": 3}',
	if_version => 1, token => NULL, validate => true, by_context => false);
SELECT singer_state.get(state_id => 'named');

-- by_context: partitions match on their context, not on their place
SELECT singer_state.set('parts', '{}', '{"bookmarks": {"s": {"partitions": [
	{"context": {"id": 1}, "replication_key_value": 1},
	{"context": {"id": 2}, "replication_key_value": 2}]}}}');
SELECT singer_state.merge('parts', '{"bookmarks": {"s": {"partitions": [
	{"context": {"id": 2}, "replication_key_value": 20},
	{"context": {"id": 3}, "replication_key_value": 30}]}}}', by_context => true);
SELECT jsonb_array_elements(
	singer_state.get('parts') #> '{bookmarks,s,partitions}')
	AS partition ORDER BY 1;
SELECT singer_state.merge('parts', '{"bookmarks": {"s": {"partitions": [
	{"context": {"id": 4}}]}}}');
SELECT singer_state.get('parts');

-- A write that a trigger makes during a write, when DDL has made the plans of
-- both invalid.
CREATE FUNCTION pg_temp.write_inner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF new.state_id = 'outer' THEN
		GRANT SELECT ON singer_state.state TO CURRENT_USER;
		PERFORM singer_state.merge('inner', new.partial_state);
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER write_inner AFTER INSERT OR UPDATE ON singer_state.state
	FOR EACH ROW EXECUTE FUNCTION pg_temp.write_inner();
SELECT singer_state.merge('outer', '{"a": 1}');
SELECT singer_state.merge('outer', '{"a": 2}');
SELECT singer_state.merge('outer', '{"a": 3}');
SELECT version, partial_state FROM singer_state.get_state('inner');
SELECT version, partial_state FROM singer_state.get_state('outer');
DROP TRIGGER write_inner ON singer_state.state;

SELECT count(*) FROM singer_state.clear_all('*');
RESET singer_state.namespace;
