-- History: what writes replaced, how much of it stays, and going back.
SET singer_state.namespace = 'regress_history';

SELECT singer_state.set('s', '{"bookmarks": {"users": {"id": 1}}}');
SELECT singer_state.merge('s', '{"bookmarks": {"users": {"id": 2}}}');
SELECT singer_state.update('s', '{"bookmarks": {"orders": {"id": 3}}}');
SELECT singer_state.promote('s');
SELECT singer_state.set('s', '{"bookmarks": {"users": {"id": 5}}}');
SELECT version, operation, completed_state, partial_state
FROM singer_state.history('s');

-- who, with what, when, in which transaction
SET application_name = 'regress history';
SELECT singer_state.set('s', '{"bookmarks": {"users": {"id": 6}}}');
SELECT version, operation, changed_by = session_user AS by_me,
	application_name, changed_at IS NOT NULL AS dated
FROM singer_state.history('s') LIMIT 1;
RESET application_name;

-- the effective state of a version, the current one too
SELECT singer_state.state_at('s', 1);
SELECT singer_state.state_at('s', 3);
SELECT singer_state.state_at('s', 6);
\set VERBOSITY sqlstate
SELECT singer_state.state_at('s', 7);
SELECT singer_state.state_at('s', 0);
SELECT singer_state.state_at('unknown', 1);
SELECT singer_state.state_at('s', NULL) IS NULL;
\set VERBOSITY default

-- differences
SELECT * FROM singer_state.diff('s', 1, 3);
SELECT * FROM singer_state.diff('s', 3, 1);
SELECT * FROM singer_state.diff('s', 1, 6);
SELECT * FROM singer_state.diff('s', 3, 4);
SELECT * FROM singer_state.diff('s', 2, 2);
SELECT singer_state.set('p', '{"bookmarks": {"s": {"partitions": [
	{"context": {"id": 1}, "replication_key_value": 1},
	{"context": {"id": 2}, "replication_key_value": 2}]}, "t": {"a": 1}}}');
SELECT singer_state.set('p', '{"bookmarks": {"s": {"partitions": [
	{"context": {"id": 2}, "replication_key_value": 3},
	{"context": {"id": 1}, "replication_key_value": 1},
	{"context": {"id": 4}, "replication_key_value": 4}]}, "t": {"b": null}}}');
SELECT * FROM singer_state.diff('p', 1, 2);
\set VERBOSITY sqlstate
SELECT * FROM singer_state.diff('p', 1, 3);
\set VERBOSITY default

-- restoring writes a new version
SELECT singer_state.restore('s', 3);
SELECT version, completed_state, partial_state FROM singer_state.get_state('s');
SELECT version, operation FROM singer_state.history('s') LIMIT 2;
-- what is there already is not written again
SELECT singer_state.restore('s', 7);
SELECT version FROM singer_state.get_state('s');

-- history_limit, per state
SET singer_state.history_limit = 3;
SELECT singer_state.set('s', jsonb_build_object('i', i)) FROM generate_series(1, 4) i;
SELECT version, completed_state FROM singer_state.history('s');
SELECT count(*) FROM singer_state.history('p');
-- a write that changes nothing leaves it alone
SELECT singer_state.set('s', '{"i": 4}');
SELECT version FROM singer_state.history('s');
-- versions that are gone: the error names those there are
SELECT singer_state.restore('s', 2);
SELECT singer_state.restore('s', 99);
SELECT singer_state.restore('unknown', 1);
\set VERBOSITY sqlstate
SELECT singer_state.restore('s', 2);
\set VERBOSITY default
SELECT singer_state.restore('s', 9);
SELECT version, completed_state FROM singer_state.get_state('s');

-- lower it, and the next write forgets
SET singer_state.history_limit = 1;
SELECT singer_state.set('s', '{"i": 5}');
SELECT version FROM singer_state.history('s');
SET singer_state.history_limit = 0;
SELECT singer_state.set('s', '{"i": 6}');
SELECT count(*) FROM singer_state.history('s');
SELECT singer_state.set('s', '{"i": 7}');
SELECT count(*) FROM singer_state.history('s');
SELECT version FROM singer_state.get_state('s');
SET singer_state.history_limit = -1;
SELECT singer_state.set('all', jsonb_build_object('i', i)) FROM generate_series(1, 30) i;
SELECT count(*), min(version), max(version) FROM singer_state.history('all');
RESET singer_state.history_limit;

-- a cleared state can be brought back
SELECT singer_state.set('gone', '{"bookmarks": {"users": {"id": 1}}}', '{"bookmarks": {"users": {"id": 2}}}');
SELECT singer_state.clear('gone');
SELECT version, operation FROM singer_state.history('gone');
SELECT singer_state.state_at('gone', 1);
SELECT singer_state.restore('gone', 1) > 1 AS counts_on;
SELECT completed_state, partial_state FROM singer_state.get_state('gone');

-- each function's name
SELECT singer_state.set('op', '{"a": 1}');
SELECT singer_state.merge('op', '{"b": 1}');
SELECT singer_state.update('op', '{"b": 2}');
SELECT singer_state.promote('op');
SELECT FROM singer_state.merge_from('gone', 'op');
SELECT FROM singer_state.copy('gone', 'op', overwrite => true);
SELECT singer_state.restore('op', 1);
SELECT singer_state.import('{"op": {"completed": {"z": 1}}}', on_conflict => 'overwrite');
SELECT singer_state.clear_all('op');
SELECT singer_state.set('op', '{"a": 2}') IS NOT NULL AS set;
SELECT FROM singer_state.move('op', 'op2');
SELECT singer_state.set('op', '{"a": 3}') IS NOT NULL AS set;
SELECT singer_state.clear('op');
SET singer_state.history_limit = -1;
SELECT operation FROM singer_state.history('op');
RESET singer_state.history_limit;

-- no history of what does not exist, nor across namespaces
SELECT count(*) FROM singer_state.history('unknown');
SET singer_state.namespace = 'regress_history_other';
SELECT count(*) FROM singer_state.history('op');
SELECT singer_state.set('op', '{"a": 1}');
SELECT singer_state.clear('op');
SET singer_state.namespace = 'regress_history';

SELECT count(*) > 0 AS cleared FROM singer_state.clear_all('*');
RESET singer_state.namespace;
