-- Document functions against plain SQL and PL/pgSQL; see run-documents.
SET client_min_messages = warning;
SET jit = off;

CREATE TEMP TABLE documents (name text PRIMARY KEY, state jsonb, patch jsonb);
INSERT INTO documents
SELECT count || ' streams',
	jsonb_build_object('bookmarks', jsonb_object_agg('stream_' || n, jsonb_build_object(
		'replication_key', 'updated_at', 'replication_key_value', '2021-01-01T00:00:00Z' || md5(n::text), 'version', n))),
	jsonb_build_object('bookmarks', jsonb_object_agg('stream_' || n, jsonb_build_object(
		'replication_key', 'updated_at', 'replication_key_value', '2022-01-01T00:00:00Z' || md5(n::text))))
FROM unnest(ARRAY[10, 1000]) count, generate_series(1, count) n GROUP BY count;
INSERT INTO documents
SELECT count || ' partitions',
	jsonb_build_object('bookmarks', jsonb_build_object('stream_1', jsonb_build_object('partitions',
		jsonb_agg(jsonb_build_object('context', jsonb_build_object('repository', md5(n::text), 'organization', 'acme'),
			'replication_key', 'updated_at', 'replication_key_value', '2021-01-01T00:00:00Z') ORDER BY n)))),
	'{"bookmarks": {"stream_2": {"replication_key_value": 1}}}'
FROM unnest(ARRAY[10000, 20000]) count, generate_series(1, count) n GROUP BY count;

CREATE FUNCTION pg_temp.sql_merge(base jsonb, patch jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	changes jsonb;
BEGIN
	IF jsonb_typeof(base) <> 'object' OR jsonb_typeof(patch) <> 'object' THEN
		RETURN patch;
	END IF;
	SELECT jsonb_object_agg(p.key, CASE WHEN jsonb_typeof(p.value) = 'object' AND base ? p.key
		THEN pg_temp.sql_merge(base -> p.key, p.value) ELSE p.value END)
	INTO changes FROM jsonb_each(patch) p;
	RETURN base || coalesce(changes, '{}');
END $$;

CREATE FUNCTION pg_temp.sql_get_partition(state jsonb, context jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
	SELECT p -> 'replication_key_value' FROM jsonb_array_elements(state #> '{bookmarks,stream_1,partitions}') p
	WHERE p -> 'context' = context
$$;

CREATE FUNCTION pg_temp.sql_set_partition(state jsonb, context jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
	SELECT jsonb_set(state, ARRAY['bookmarks', 'stream_1', 'partitions', (n - 1)::text, 'replication_key_value'], '"x"')
	FROM jsonb_array_elements(state #> '{bookmarks,stream_1,partitions}') WITH ORDINALITY p (value, n)
	WHERE value -> 'context' = context
$$;

-- Median time of an expression on one document, in microseconds.
CREATE FUNCTION pg_temp.median_time(expression text, document text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	repeats int := CASE WHEN document LIKE '%partitions' THEN 9 ELSE 101 END;
	times numeric[] := '{}';
	started timestamptz;
	answer int;
BEGIN
	FOR i IN 1 .. repeats LOOP
		started := clock_timestamp();
		EXECUTE format('SELECT length(jsonb_typeof(%s)) FROM documents WHERE name = %L', expression, document) INTO answer;
		times := times || (extract(epoch FROM clock_timestamp() - started) * 1000000)::numeric;
	END LOOP;
	RETURN (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY t) FROM unnest(times) t);
END $$;

CREATE TEMP TABLE contests (label text, documents text, ours text, theirs text);
INSERT INTO contests VALUES
	('deep_merge / PL/pgSQL', '%', 'singer_state.deep_merge(state, patch)', 'pg_temp.sql_merge(state, patch)'),
	('deep_merge / ||', '%', 'singer_state.deep_merge(state, patch)', '((state -> ''bookmarks'') || (patch -> ''bookmarks''))'),
	('deep_merge / floor', '%', 'singer_state.deep_merge(state, patch)', 'CASE WHEN jsonb_typeof(patch) = ''object'' THEN state END'),
	('set_bookmark / jsonb_set', '%streams', 'singer_state.set_bookmark(state, ''stream_7'', ''replication_key_value'', ''"x"'')',
		'jsonb_set(state, ''{bookmarks,stream_7,replication_key_value}'', ''"x"'')'),
	('get_bookmark / #>', '%streams', 'singer_state.get_bookmark(state, ''stream_7'', ''replication_key_value'')',
		'state #> ''{bookmarks,stream_7,replication_key_value}'''),
	('increment_state / jsonb_set', '%streams', 'singer_state.increment_state(state, ''stream_7'', ''{"updated_at": "2030-01-01"}'', ''updated_at'', true)',
		'CASE WHEN state #>> ''{bookmarks,stream_7,replication_key_value}'' <= ''2030-01-01'' COLLATE "C" THEN jsonb_set(state, ''{bookmarks,stream_7,replication_key_value}'', ''"2030-01-01"'') END'),
	('get_bookmark / SQL', '%partitions', format('singer_state.get_bookmark(state, ''stream_1'', ''replication_key_value'', %L)', jsonb_build_object('repository', md5('5000'), 'organization', 'acme')),
		format('pg_temp.sql_get_partition(state, %L)', jsonb_build_object('repository', md5('5000'), 'organization', 'acme'))),
	('set_bookmark / SQL', '%partitions', format('singer_state.set_bookmark(state, ''stream_1'', ''replication_key_value'', ''"x"'', %L)', jsonb_build_object('repository', md5('5000'), 'organization', 'acme')),
		format('pg_temp.sql_set_partition(state, %L)', jsonb_build_object('repository', md5('5000'), 'organization', 'acme'))),
	('set_bookmark / floor', '%partitions', format('singer_state.set_bookmark(state, ''stream_1'', ''replication_key_value'', ''"x"'', %L)', jsonb_build_object('repository', md5('5000'), 'organization', 'acme')),
		'state');

\echo 'function / rival | document | ours (us) | rival (us) | ours / rival'
SELECT label, name, round(ours), round(theirs), round(ours / theirs, 3)
FROM (SELECT label, name, pg_temp.median_time(ours, name) AS ours, pg_temp.median_time(theirs, name) AS theirs
	FROM contests, documents WHERE name LIKE documents OFFSET 0) r
ORDER BY label, name;

\echo 'increment_agg over 1,000,000 records, ms | max(), ms'
CREATE TEMP TABLE records AS SELECT jsonb_build_object('id', n, 'name', md5(n::text)) AS record FROM generate_series(1, 1000000) n;
ANALYZE records;
CREATE FUNCTION pg_temp.time_of(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	started timestamptz := clock_timestamp();
	answer text;
BEGIN
	EXECUTE query INTO answer;
	RETURN round((extract(epoch FROM clock_timestamp() - started) * 1000)::numeric);
END $$;
SELECT pg_temp.time_of('SELECT singer_state.increment_agg(record, ''id'') FROM records'),
	pg_temp.time_of('SELECT max((record ->> ''id'')::numeric) FROM records');
