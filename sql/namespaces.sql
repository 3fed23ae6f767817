-- Namespaces: the same state id in two projects are two states.
SELECT singer_state.set('regress ns', '{"in": "default"}');
SELECT namespace FROM singer_state.state WHERE state_id = 'regress ns';
SET singer_state.namespace = 'regress a';
SELECT singer_state.get('regress ns') IS NULL AS apart;
SELECT singer_state.set('regress ns', '{"in": "a"}');
SELECT singer_state.set('only a', '{"in": "a"}');
SET singer_state.namespace = 'regress b';
SELECT singer_state.merge('regress ns', '{"in": "b"}');
SELECT singer_state.get('regress ns');
SELECT singer_state.list();
SELECT singer_state.export();
SELECT state_id, effective_state FROM singer_state.states;
SELECT singer_state.get('only a') IS NULL AS apart;
\set VERBOSITY sqlstate
SELECT singer_state.copy('only a', 'x');
SELECT singer_state.move('only a', 'x');
SELECT singer_state.merge_from('only a', 'x');
SELECT singer_state.restore('only a', 1);
\set VERBOSITY default
SELECT singer_state.clear('only a');
SELECT singer_state.clear_all('*');
SET singer_state.namespace = 'regress a';
SELECT singer_state.list();
SELECT singer_state.get('regress ns');
SELECT version FROM singer_state.history('regress ns');

-- a namespace is opaque text as well
SET singer_state.namespace = 'Regress A';
SELECT singer_state.list();
SET singer_state.namespace = 'regress *';
SELECT singer_state.list();

-- within a transaction
BEGIN;
SET LOCAL singer_state.namespace = 'regress a';
SELECT singer_state.get('only a');
COMMIT;
SELECT singer_state.get('only a') IS NULL AS apart;

-- from the table, an administrator sees them all
SELECT namespace, state_id, completed_state FROM singer_state.state
WHERE namespace LIKE 'regress%' OR state_id = 'regress ns'
ORDER BY namespace COLLATE "C", state_id COLLATE "C";

SET singer_state.namespace = 'regress a';
SELECT singer_state.clear_all('*');
RESET singer_state.namespace;
SELECT singer_state.clear('regress ns');
