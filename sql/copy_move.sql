-- Copies, moves, and merging one state into another.
SET singer_state.namespace = 'regress_copy';

SELECT singer_state.set('src', '{"bookmarks": {"a": {"id": 1}, "b": {"id": 1}}}', '{"bookmarks": {"b": {"id": 2}}}');

-- both parts
SELECT FROM singer_state.copy('src', 'dst');
SELECT completed_state, partial_state, version FROM singer_state.get_state('dst');
-- folded: the effective state is completed
SELECT FROM singer_state.copy('src', 'folded', fold => true);
SELECT completed_state, partial_state, version FROM singer_state.get_state('folded');

-- the target exists
SELECT FROM singer_state.copy('src', 'dst');
SELECT FROM singer_state.move('src', 'dst');
\set VERBOSITY sqlstate
SELECT FROM singer_state.copy('src', 'dst');
SELECT FROM singer_state.move('src', 'dst');
-- no source
SELECT FROM singer_state.copy('none', 'dst2');
SELECT FROM singer_state.copy('none', 'dst', overwrite => true);
SELECT FROM singer_state.move('none', 'dst2');
SELECT FROM singer_state.merge_from('none', 'dst2');
\set VERBOSITY default
SELECT singer_state.list();
SELECT singer_state.set('dst', '{"bookmarks": {"z": {"id": 9}}}');
SELECT FROM singer_state.copy('src', 'dst', overwrite => true);
SELECT completed_state, partial_state, version FROM singer_state.get_state('dst');
SELECT version, operation FROM singer_state.history('dst');

-- move
SELECT FROM singer_state.move('dst', 'moved');
SELECT singer_state.list();
SELECT completed_state, partial_state, version FROM singer_state.get_state('moved');
SELECT operation FROM singer_state.history('dst') LIMIT 1;
SELECT FROM singer_state.move('moved', 'folded', overwrite => true, fold => true);
SELECT completed_state, partial_state FROM singer_state.get_state('folded');
SELECT singer_state.list();

-- onto itself nothing happens
SELECT FROM singer_state.copy('src', 'src');
SELECT FROM singer_state.move('src', 'src');
SELECT FROM singer_state.move('src', 'src', overwrite => true);
SELECT FROM singer_state.copy('src', 'src', overwrite => true);
SELECT completed_state, partial_state, version FROM singer_state.get_state('src');
SELECT count(*) FROM singer_state.history('src');

-- the effective state of one, merged as partial into the other
SELECT singer_state.set('into', '{"bookmarks": {"a": {"id": 0}, "c": {"id": 3}}}', '{"bookmarks": {"d": {"id": 4}}}');
SELECT FROM singer_state.merge_from('src', 'into');
SELECT completed_state, partial_state, version FROM singer_state.get_state('into');
SELECT singer_state.get('into');
SELECT FROM singer_state.merge_from('src', 'into');
SELECT version FROM singer_state.get_state('into');
SELECT FROM singer_state.merge_from('src', 'made');
SELECT completed_state, partial_state, version FROM singer_state.get_state('made');

-- an empty state is copied like any other
SELECT singer_state.set('void', '{}');
SELECT FROM singer_state.copy('void', 'void2');
SELECT completed_state, partial_state, version FROM singer_state.get_state('void2');

SELECT count(*) FROM singer_state.clear_all('*');
RESET singer_state.namespace;
