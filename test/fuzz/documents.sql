-- Random documents through every document function; see run-documents.
SET client_min_messages = warning;

-- Random JSON that looks like a state here and there: keys are often the ones
-- that mean something, so that these meet values of every type.
CREATE OR REPLACE FUNCTION pg_temp.random_key() RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT CASE WHEN random() < 0.8 THEN
		(ARRAY['bookmarks', 'singer_state', 'partitions', 'context', 'a', 'b', 'k',
			'progress_markers', 'replication_key', 'replication_key_value', 'offset',
			'replication_key_signpost', 'starting_replication_value', 'activate_versions',
			'currently_syncing'])[1 + floor(random() * 15)::int]
	ELSE repeat(chr(97 + floor(random() * 3)::int), floor(random() * 40)::int) END
$$;

CREATE OR REPLACE FUNCTION pg_temp.random_scalar() RETURNS jsonb LANGUAGE sql VOLATILE AS $$
	SELECT (ARRAY['null', 'true', 'false', '0', '1', '1.0', '-3', '1.50', '12345678901234567890123',
		'1e-30', '""', '"a"', '"é"', '"k"', '"2021-05-17T20:41:16Z"', '"2021-05-17"',
		'"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"', '{}', '[]']::jsonb[])[1 + floor(random() * 19)::int]
$$;

CREATE OR REPLACE FUNCTION pg_temp.random_json(depth int) RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	kind float := random();
	children int := floor(random() * CASE WHEN random() < 0.05 THEN 70 ELSE 6 END);
	result jsonb;
BEGIN
	IF depth <= 0 OR kind < 0.2 THEN
		RETURN pg_temp.random_scalar();
	END IF;
	IF children > 10 THEN
		depth := 1;
	END IF;
	IF kind < 0.85 THEN
		SELECT coalesce(jsonb_object_agg(pg_temp.random_key() ||
			CASE WHEN children > 10 THEN n::text ELSE '' END, pg_temp.random_json(depth - 1)), '{}')
		INTO result FROM generate_series(1, children) n;
	ELSE
		SELECT coalesce(jsonb_agg(pg_temp.random_json(depth - 1)), '[]')
		INTO result FROM generate_series(1, children) n;
	END IF;
	RETURN result;
END $$;

-- A document, often with a state around it.
CREATE OR REPLACE FUNCTION pg_temp.random_document() RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	kind float := random();
	document jsonb := pg_temp.random_json(5);
BEGIN
	IF kind < 0.6 THEN
		document := jsonb_build_object('bookmarks', CASE WHEN random() < 0.7 THEN
			jsonb_build_object('a', jsonb_build_object('partitions', CASE WHEN random() < 0.7 THEN
				jsonb_build_array(jsonb_build_object('context', pg_temp.random_json(1), 'x', pg_temp.random_json(2)),
					jsonb_build_object('context', pg_temp.random_scalar(), 'progress_markers', pg_temp.random_json(2)),
					document)
				ELSE document END) || CASE jsonb_typeof(document) WHEN 'object' THEN document ELSE '{}' END)
			ELSE document END);
	END IF;
	IF kind > 0.4 AND kind < 0.8 THEN
		document := jsonb_build_object('singer_state', document);
	END IF;
	RETURN document;
END $$;

-- Every call of a document function with these inputs.
CREATE OR REPLACE FUNCTION pg_temp.calls() RETURNS text[] LANGUAGE sql AS $$
	SELECT ARRAY[
		'singer_state.deep_merge($1, $2)', 'singer_state.deep_merge($1, $2, true)',
		'singer_state.get_bookmark($1, $3, $4, $5)', 'singer_state.set_bookmark($1, $3, $4, $6, $5)',
		'singer_state.clear_bookmark($1, $3, $4, $5)', 'singer_state.reset_stream($1, $3)',
		'singer_state.clear_stream($1, $3)', 'singer_state.rename_stream($1, $3, $4)',
		'singer_state.get_offset($1, $3)', 'singer_state.set_offset($1, $3, $4, $6)',
		'singer_state.clear_offset($1, $3)', 'to_jsonb(singer_state.get_currently_syncing($1))',
		'singer_state.set_currently_syncing($1, $3)', 'singer_state.clear_currently_syncing($1)',
		'singer_state.get_version($1, $3)', 'singer_state.set_version($1, $3, $6)',
		'singer_state.clear_version($1, $3)', 'singer_state.stream_state($1, $3, $5)',
		'singer_state.partitions($1, $3)', 'singer_state.partition_context($5, ARRAY[$3, $4])',
		'singer_state.write_starting_replication_value($1, $3, ''INCREMENTAL'', $4, ''2021-01-01'', true, $5)',
		'singer_state.get_starting_replication_value($1, $3, context => $5)',
		'to_jsonb(singer_state.get_starting_timestamp($1, $3, context => $5))',
		'singer_state.write_replication_key_signpost($1, $3, $6, $5)',
		'singer_state.increment_state($1, $3, jsonb_build_object($4, $6), $4, true, true, $5)',
		'singer_state.increment_state($1, $3, jsonb_build_object($4, $6), $4, false, true, $5, ARRAY[$4])',
		'singer_state.increment_state($1, $3, $2, $4, is_timestamp => true)',
		'singer_state.finalize_state_progress_markers($1)',
		'singer_state.finalize_state_progress_markers($1, $3, $5)',
		'singer_state.reset_state_progress_markers($1)',
		'singer_state.reset_state_progress_markers($1, $3, $5)',
		'to_jsonb(singer_state.is_state_non_resumable($1, $3, context => $5))',
		'(SELECT jsonb_agg(to_jsonb(d)) FROM singer_state.diff_states($1, $2) d)',
		'(SELECT jsonb_agg(to_jsonb(b)) FROM singer_state.bookmarks($1) b)',
		'(SELECT jsonb_agg(to_jsonb(c)) FROM singer_state.check_state($1) c)',
		'(SELECT singer_state.deep_merge_agg(s) FROM unnest(ARRAY[$1, $2, $6]) s)']
$$;

-- One round.  An answer must be what the server itself would build from its
-- text, byte for byte; readers may refuse only a doubled context and a value
-- that is no timestamp.
CREATE OR REPLACE FUNCTION pg_temp.round() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	a jsonb := pg_temp.random_document();
	b jsonb := CASE WHEN random() < 0.5 THEN pg_temp.random_document() ELSE pg_temp.random_json(4) END;
	stream text := pg_temp.random_key();
	key text := pg_temp.random_key();
	context jsonb := CASE WHEN random() < 0.3 THEN NULL WHEN random() < 0.5 THEN
		a #> '{bookmarks,a,partitions,0,context}' ELSE pg_temp.random_json(1) END;
	value jsonb := pg_temp.random_json(2);
	call text;
	answer jsonb;
BEGIN
	IF random() < 0.7 THEN
		stream := 'a';
	END IF;
	FOREACH call IN ARRAY pg_temp.calls() LOOP
		BEGIN
			EXECUTE 'SELECT ' || call INTO answer USING a, b, stream, key, context, value;
			IF NOT record_image_eq(ROW(answer), ROW(answer::text::jsonb)) THEN
				RAISE EXCEPTION 'not canonical: %', call USING ERRCODE = 'XX000';
			END IF;
			IF call LIKE '%deep_merge(%' THEN
				EXECUTE 'SELECT ' || call INTO STRICT b USING answer, b, stream, key, context, value;
				IF NOT record_image_eq(ROW(answer), ROW(b)) THEN
					RAISE EXCEPTION 'not idempotent: %', call USING ERRCODE = 'XX000';
				END IF;
			END IF;
		EXCEPTION WHEN SQLSTATE '22023' OR SQLSTATE '42804' OR SQLSTATE 'SS001' THEN
			IF call ~ 'deep_merge|diff_states|bookmarks|check_state' THEN
				RAISE;
			END IF;
		WHEN OTHERS THEN
			RAISE EXCEPTION '% (%): % for $1 = %, $2 = %, $3 = %, $4 = %, $5 = %, $6 = %',
				SQLERRM, SQLSTATE, call, a, b, stream, key, context, value;
		END;
	END LOOP;
END $$;

SELECT setseed(:seed);
SELECT count(pg_temp.round()) AS rounds FROM generate_series(1, :rounds);
