-- What the store refuses, and with which words.
SET singer_state.namespace = 'regress_validation';

-- a state is a JSON object
SELECT singer_state.set('s', '[]');
SELECT singer_state.set('s', '1');
SELECT singer_state.set('s', 'null');
SELECT singer_state.merge('s', '[{"type": "STREAM"}]');
-- a JSON string that holds JSON was encoded twice
SELECT singer_state.set('s', '"{\"bookmarks\": {}}"');
SELECT singer_state.set('s', '{"singer_state": "{\"bookmarks\": {}}"}');
-- singer_state, if there, is an object
SELECT singer_state.set('s', '{"singer_state": null}');
SELECT singer_state.set('s', '{"singer_state": 1}');
SELECT singer_state.set('s', '{"singer_state": []}');
-- wrapped twice
SELECT singer_state.set('s', '{"singer_state": {"singer_state": {"bookmarks": {}}}}');
-- the message instead of its value
SELECT singer_state.set('s', '{"type": "STATE", "value": {"bookmarks": {}}}');
SELECT singer_state.merge('s', '{"type": "STATE", "value": {"bookmarks": {}}}');
SELECT singer_state.set('s', '{}', '{"type": "STATE", "value": {"bookmarks": {}}}');
SELECT singer_state.update('s', '{}', '{"type": "STATE", "value": {"bookmarks": {}}}');
-- the partial part is looked at as well
SELECT singer_state.set('s', '{}', '[]');
SELECT singer_state.update('s', '1');
-- nothing was stored
SELECT count(*) FROM singer_state.list();

-- validate => false stores any object or array
SELECT singer_state.set('s1', '[1, {"a": 2}]', validate => false);
SELECT singer_state.set('s2', '{"singer_state": null}', validate => false);
SELECT singer_state.merge('s3', '{"type": "STATE", "value": {}}', validate => false);
SELECT singer_state.merge('s4', '[]', validate => false);
SELECT state_id, singer_state.get(state_id) FROM singer_state.states
ORDER BY state_id COLLATE "C";
-- but no scalar
SELECT singer_state.set('s5', '1', validate => false);
SELECT singer_state.merge('s5', '"x"', validate => false);

-- SQL NULL where a document or an id is needed
\set VERBOSITY sqlstate
SELECT singer_state.set('s', NULL);
SELECT singer_state.set(NULL, '{}');
SELECT singer_state.merge('s', NULL);
SELECT singer_state.merge(NULL, '{}');
SELECT singer_state.update('s', NULL, NULL);
SELECT singer_state.import(NULL);
SELECT singer_state.clear_all(NULL);
SELECT singer_state.copy(NULL, 'a');
SELECT singer_state.move('a', NULL);
SELECT singer_state.merge_from(NULL, 'a');
SELECT singer_state.promote(NULL);
SELECT singer_state.clear(NULL);
SELECT singer_state.restore('s', NULL);

-- ids: 1 to 1024 bytes
SELECT singer_state.set('', '{}');
SELECT singer_state.set(repeat('x', 1025), '{}');
SELECT singer_state.merge('', '{}');
SELECT singer_state.update('', '{}');
SELECT singer_state.copy('s1', '');
SELECT singer_state.move('s1', repeat('x', 1025));
SELECT singer_state.merge_from('s1', '');
SELECT singer_state.import('{"": {"completed": {"a": 1}}}');
\set VERBOSITY default
-- bytes, not characters
SELECT singer_state.set(repeat(U&'\20AC', 342), '{}') AS too_long;

-- An empty state over one that has bookmarks is most likely a mistake.
SELECT singer_state.set('full', '{"bookmarks": {"users": {"id": 1}}}');
SELECT singer_state.set('full', '{}');
\set VERBOSITY sqlstate
SELECT singer_state.set('full', '{"bookmarks": {}}');
SELECT singer_state.set('full', '{"singer_state": {}}');
SELECT singer_state.set('full', '{"singer_state": {"bookmarks": {}}}');
\set VERBOSITY default
SELECT singer_state.get('full');
SELECT singer_state.set('full', '{}', allow_empty => true);
SELECT singer_state.get('full');
-- over an empty one it is none
SELECT singer_state.set('full', '{"bookmarks": {}}');
-- and merging an empty one clears nothing
SELECT singer_state.set('full', '{"bookmarks": {"users": {"id": 1}}}');
SELECT singer_state.merge('full', '{}');
SELECT singer_state.get('full');
-- but merging never fails, not even when it is bookmarks that a null replaces
SELECT singer_state.merge('full', '{"bookmarks": null}');
SELECT singer_state.get('full');
SELECT singer_state.set('full', '{}', '{"bookmarks": {"users": {"id": 1}}}');
SELECT singer_state.merge('full', '{"bookmarks": {"users": 1}}');
SELECT singer_state.merge('full', '{"bookmarks": 1}');
SELECT singer_state.get('full');
SELECT singer_state.set('full', '{}', '{"users": {"id": 1}}');
SELECT singer_state.merge('full', '{"singer_state": {}}');
SELECT singer_state.get('full');
-- bookmarks that are only partial count
SELECT singer_state.set('part', '{}', '{"bookmarks": {"users": {"id": 1}}}');
SELECT singer_state.set('part', '{}');
-- a state whose new partial part has them is not empty
SELECT singer_state.set('part', '{}', '{"bookmarks": {"users": {"id": 2}}}');
-- a flat document has bookmarks too
SELECT singer_state.set('flat', '{"users": {"last_id": 3}}');
SELECT singer_state.set('flat', '{}');

-- the size of a state: refused before anything is written
\set SHOW_CONTEXT never
SET singer_state.max_state_size = '1kB';
SELECT singer_state.set('big', jsonb_build_object('a', repeat('x', 900)));
SELECT singer_state.set('big', jsonb_build_object('a', repeat('x', 1024)));
\set VERBOSITY sqlstate
SELECT singer_state.set('big', '{"a": 1}', jsonb_build_object('a', repeat('x', 1024)));
SELECT singer_state.merge('big', jsonb_build_object('b', repeat('x', 1024)));
SELECT singer_state.update('big', jsonb_build_object('b', repeat('x', 1024)));
SELECT singer_state.import(jsonb_build_object('new', jsonb_build_object(
	'completed', jsonb_build_object('b', repeat('x', 1024)))));
-- it is the size as jsonb that counts, not the compressed one
UPDATE singer_state.state SET partial_state =
	jsonb_build_object('b', repeat('x', 1024))
WHERE namespace = 'regress_validation' AND state_id = 'big';
\set VERBOSITY default
SELECT version, length(completed_state ->> 'a') FROM singer_state.get_state('big');
-- two parts that are allowed can be too large in one
SELECT singer_state.merge('big', jsonb_build_object('b', repeat('x', 900)));
\set VERBOSITY sqlstate
SELECT singer_state.promote('big');
SELECT singer_state.merge('big', jsonb_build_object('c', repeat('x', 900)));
\set VERBOSITY default
SELECT version FROM singer_state.get_state('big');
RESET singer_state.max_state_size;
\set SHOW_CONTEXT errors

-- Numbers keep every digit.
SELECT singer_state.set('n', '{"a": 18446744073709551616, "b": 0.10, "c": 1e30, "d": -0.0}');
SELECT singer_state.get('n');

SELECT count(*) FROM singer_state.clear_all('*');
RESET singer_state.namespace;
