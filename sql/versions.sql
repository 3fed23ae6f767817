-- Versions: what moves them, what does not, and writes that depend on them.
SET singer_state.namespace = 'regress_versions';

CREATE FUNCTION pg_temp.place(id text) RETURNS text LANGUAGE sql AS $$
	SELECT s.xmin::text || ' ' || s.ctid::text || ' ' || s.version || ' ' || s.updated_at
	FROM singer_state.state s
	WHERE s.namespace = 'regress_versions' AND s.state_id = id $$;

-- A write that changes nothing writes nothing: same xmin and ctid, no version,
-- no history.
SELECT singer_state.set('s', '{"bookmarks": {"users": {"id": 1, "name": "x"}}}', '{"bookmarks": {"users": {"id": 2}}}');
SELECT pg_temp.place('s') AS place \gset
SELECT singer_state.set('s', '{"bookmarks": {"users": {"name": "x", "id": 1}}}', '{"bookmarks": {"users": {"id": 2}}}');
SELECT singer_state.merge('s', '{"bookmarks": {"users": {"id": 2}}}');
SELECT singer_state.merge('s', '{"bookmarks": {}}');
SELECT singer_state.merge('s', '{}');
SELECT singer_state.update('s', '{"bookmarks": {"users": {"id": 2}}}');
SELECT singer_state.merge('s', '{"bookmarks": {"users": {"id": 2}}}', if_version => 1);
UPDATE singer_state.state SET completed_state = completed_state
WHERE namespace = 'regress_versions';
UPDATE singer_state.state SET version = version + 5
WHERE namespace = 'regress_versions';
SELECT pg_temp.place('s') = :'place' AS untouched;
SELECT count(*) FROM singer_state.history('s');
-- so does importing or copying what is there already
SELECT singer_state.import(singer_state.export(), on_conflict => 'overwrite') IS NOT NULL AS imported;
SELECT FROM singer_state.copy('s', 's');
SELECT FROM singer_state.copy('s', 'twin');
SELECT FROM singer_state.copy('s', 'twin', overwrite => true);
SELECT version FROM singer_state.get_state('twin');
SELECT pg_temp.place('s') = :'place' AS untouched;
SELECT count(*) FROM singer_state.history('twin');

-- Numbers that are equal may be written differently: jsonb says they are the
-- same, yet the digits are what was asked for.
SELECT singer_state.set('n', '{"a": 1.0}');
SELECT singer_state.set('n', '{"a": 1.0}');

-- every other write moves the version by one
SELECT singer_state.set('s', '{"bookmarks": {"users": {"id": 3}}}');
SELECT singer_state.merge('s', '{"bookmarks": {"users": {"id": 4}}}');
SELECT singer_state.promote('s');
SELECT version, updated_at > now() - interval '1 day' AS recent FROM singer_state.get_state('s');

-- within one transaction too, and updated_at never goes back
BEGIN;
SELECT singer_state.merge('s', jsonb_build_object('i', i)) FROM generate_series(1, 5) i;
SELECT version, partial_state FROM singer_state.get_state('s');
COMMIT;
SELECT bool_and(updated_at >= before) AS advances
FROM (SELECT updated_at, lag(updated_at) OVER (ORDER BY version) AS before
	FROM (SELECT version, updated_at FROM singer_state.state_history
			WHERE namespace = 'regress_versions' AND state_id = 's'
		UNION ALL
		SELECT version, updated_at FROM singer_state.get_state('s')) v) w;

-- if_version
SELECT singer_state.set('v', '{"a": 1}', if_version => 0);
SELECT singer_state.set('v', '{"a": 2}', if_version => 1);
SELECT singer_state.merge('v', '{"b": 2}', if_version => 2);
SELECT singer_state.promote('v', if_version => 3);
SELECT singer_state.update('v', '{"c": 3}', if_version => 4);
-- what another writer did in between is named
SELECT singer_state.set('v', '{"a": 3}', if_version => 4);
\set VERBOSITY sqlstate
SELECT singer_state.set('v', '{"a": 3}', if_version => 0);
SELECT singer_state.merge('v', '{"a": 3}', if_version => 6);
SELECT singer_state.update('v', '{"a": 3}', if_version => 1);
SELECT singer_state.promote('v', if_version => 1);
SELECT singer_state.set('absent', '{"a": 3}', if_version => 1);
SELECT singer_state.merge('absent', '{"a": 3}', if_version => 1);
-- the same document does not make a wrong version right
SELECT singer_state.set('v', '{"a": 2, "b": 2}', '{"c": 3}', if_version => 1);
\set VERBOSITY default
SELECT version, completed_state, partial_state FROM singer_state.get_state('v');
SELECT singer_state.get('absent') IS NULL AS absent;

-- An administrator's own statements obey the same rules.
SET singer_state.history_limit = -1;
SELECT singer_state.set('admin', '{"a": 1}');
UPDATE singer_state.state SET completed_state = '{"a": 2}', partial_state = '{"b": 1}'
WHERE namespace = 'regress_versions' AND state_id = 'admin'
RETURNING version;
UPDATE singer_state.state SET partial_state = '{"b": 2}', version = 100, updated_at = '2000-01-01'
WHERE namespace = 'regress_versions' AND state_id = 'admin'
RETURNING version, updated_at > '2001-01-01' AS now;
-- an empty part is NULL
UPDATE singer_state.state SET partial_state = '{}'
WHERE namespace = 'regress_versions' AND state_id = 'admin'
RETURNING version, partial_state IS NULL AS empty;
SELECT version, operation, completed_state, partial_state
FROM singer_state.history('admin');
SELECT version, changed_by = session_user AS by_me,
	application_name = current_setting('application_name') AS by_this,
	changed_at <= clock_timestamp() AS at_a_time
FROM singer_state.state_history
WHERE namespace = 'regress_versions' AND state_id = 'admin'
ORDER BY version;
-- documents are checked
\set VERBOSITY sqlstate
UPDATE singer_state.state SET completed_state = '1'
WHERE namespace = 'regress_versions' AND state_id = 'admin';
UPDATE singer_state.state SET state_id = ''
WHERE namespace = 'regress_versions' AND state_id = 'admin';
INSERT INTO singer_state.state (namespace, state_id, completed_state)
VALUES ('regress_versions', 'new', '"text"');
INSERT INTO singer_state.state (namespace, state_id, completed_state)
VALUES ('regress_versions', '', '{"a": 1}');
INSERT INTO singer_state.state (namespace, state_id, completed_state)
VALUES ('', 'new', '{"a": 1}');
INSERT INTO singer_state.state (namespace, state_id, completed_state)
VALUES ('regress_versions', repeat('x', 1025), '{"a": 1}');
INSERT INTO singer_state.state (namespace, state_id, completed_state)
VALUES ('regress_versions', 'admin', '{"a": 1}');
\set VERBOSITY default
INSERT INTO singer_state.state (namespace, state_id, completed_state, partial_state)
VALUES ('regress_versions', 'new', '{"a": 1}', '{}')
RETURNING version, updated_at IS NOT NULL AS dated, partial_state IS NULL AS empty;
SELECT singer_state.get('new');
DELETE FROM singer_state.state
WHERE namespace = 'regress_versions' AND state_id = 'admin'
RETURNING version;
SELECT version, operation FROM singer_state.history('admin');
-- and a state made again by hand counts on
INSERT INTO singer_state.state (namespace, state_id, completed_state)
VALUES ('regress_versions', 'admin', '{"a": 9}')
RETURNING version;
RESET singer_state.history_limit;

SELECT count(*) FROM singer_state.clear_all('*');
RESET singer_state.namespace;
