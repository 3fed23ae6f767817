-- The store works with no search_path, and with one that is hostile: whatever
-- is planted there is never called.
SET client_min_messages = warning;
SET singer_state.namespace = 'regress_path';

CREATE SCHEMA regress_hostile;
CREATE FUNCTION regress_hostile.trap() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'a planted object was used' USING ERRCODE = 'XX001';
END $$;

-- functions of the names that an extension's statements use
DO $$
DECLARE
	planted text;
BEGIN
	FOREACH planted IN ARRAY ARRAY[
		'jsonb_typeof(pg_catalog.jsonb)', 'now()', 'clock_timestamp()',
		'count(pg_catalog.int8)', 'coalesce_(pg_catalog.jsonb)',
		'current_setting(pg_catalog.text)',
		'current_setting(pg_catalog.text, pg_catalog.bool)',
		'pg_column_size(pg_catalog.jsonb)', 'length(pg_catalog.text)',
		'octet_length(pg_catalog.text)', 'hashtextextended(pg_catalog.text, pg_catalog.int8)',
		'pg_notify(pg_catalog.text, pg_catalog.text)', 'txid_current()',
		'pg_current_xact_id()', 'jsonb_build_object(pg_catalog.text, pg_catalog.jsonb)',
		'jsonb_object_agg(pg_catalog.text, pg_catalog.jsonb)',
		'jsonb_each(pg_catalog.jsonb)', 'jsonb_object_keys(pg_catalog.jsonb)',
		'unnest(pg_catalog._text)', 'max(pg_catalog.int8)', 'min(pg_catalog.int8)',
		'greatest_(pg_catalog.int8)', 'set_config(pg_catalog.text, pg_catalog.text, pg_catalog.bool)',
		'deep_merge(pg_catalog.jsonb, pg_catalog.jsonb)', 'get(pg_catalog.text)',
		'history(pg_catalog.text)', 'format(pg_catalog.text)', 'starts_with(pg_catalog.text, pg_catalog.text)',
		'pg_try_advisory_xact_lock(pg_catalog.int8)', 'pg_advisory_xact_lock(pg_catalog.int8)']
	LOOP
		EXECUTE pg_catalog.format(
			'CREATE FUNCTION regress_hostile.%s RETURNS pg_catalog.jsonb LANGUAGE sql VOLATILE AS '
			'$f$ SELECT pg_catalog.to_jsonb(regress_hostile.trap()) $f$', planted);
	END LOOP;
END $$;

-- operators on the types of our columns
DO $$
DECLARE
	operator text;
	argument text;
BEGIN
	FOREACH argument IN ARRAY ARRAY['jsonb', 'text', 'int8', 'timestamptz', 'name', 'char'] LOOP
		EXECUTE pg_catalog.format(
			'CREATE FUNCTION regress_hostile.planted(pg_catalog.%1$I, pg_catalog.%1$I) '
			'RETURNS boolean LANGUAGE sql VOLATILE AS $f$ SELECT regress_hostile.trap() $f$', argument);
		FOREACH operator IN ARRAY ARRAY['=', '<>', '<', '>', '<=', '>=', '||', '+', '-', '~', '~~'] LOOP
			EXECUTE pg_catalog.format(
				'CREATE OPERATOR regress_hostile.%2$s (LEFTARG = pg_catalog.%1$I, '
				'RIGHTARG = pg_catalog.%1$I, FUNCTION = regress_hostile.planted)', argument, operator);
		END LOOP;
	END LOOP;
	FOREACH argument IN ARRAY ARRAY['text', 'int8', 'int4'] LOOP
		EXECUTE pg_catalog.format(
			'CREATE FUNCTION regress_hostile.planted(pg_catalog.jsonb, pg_catalog.%1$I) '
			'RETURNS boolean LANGUAGE sql VOLATILE AS $f$ SELECT regress_hostile.trap() $f$', argument);
		FOREACH operator IN ARRAY ARRAY['->', '->>', '?', '-'] LOOP
			EXECUTE pg_catalog.format(
				'CREATE OPERATOR regress_hostile.%2$s (LEFTARG = pg_catalog.jsonb, '
				'RIGHTARG = pg_catalog.%1$I, FUNCTION = regress_hostile.planted)', argument, operator);
		END LOOP;
	END LOOP;
	EXECUTE 'CREATE FUNCTION regress_hostile.planted(pg_catalog.int8, pg_catalog.int4) '
		'RETURNS boolean LANGUAGE sql VOLATILE AS $f$ SELECT regress_hostile.trap() $f$';
	FOREACH operator IN ARRAY ARRAY['=', '<>', '<', '>', '<=', '>=', '+', '-'] LOOP
		EXECUTE pg_catalog.format(
			'CREATE OPERATOR regress_hostile.%s (LEFTARG = pg_catalog.int8, '
			'RIGHTARG = pg_catalog.int4, FUNCTION = regress_hostile.planted)', operator);
	END LOOP;
END $$;

-- types and tables
CREATE DOMAIN regress_hostile.jsonb AS pg_catalog.text CHECK (regress_hostile.trap());
CREATE DOMAIN regress_hostile.text AS pg_catalog.int4 CHECK (regress_hostile.trap());
CREATE DOMAIN regress_hostile."char" AS pg_catalog.text CHECK (regress_hostile.trap());
CREATE DOMAIN regress_hostile.int8 AS pg_catalog.text CHECK (regress_hostile.trap());
CREATE DOMAIN regress_hostile.timestamptz AS pg_catalog.text CHECK (regress_hostile.trap());
CREATE TABLE regress_hostile.state (planted pg_catalog.text);
CREATE TABLE regress_hostile.state_history (planted pg_catalog.text);
CREATE VIEW regress_hostile.states AS SELECT regress_hostile.trap();

-- the trap works
SET search_path = regress_hostile, pg_catalog;
SELECT now();
SELECT 'a'::pg_catalog.text = 'b'::pg_catalog.text;

-- access is granted by statements of our own, too
CREATE ROLE regress_path_role;
SELECT singer_state.grant_access('regress_path_role', 'reader');
SELECT singer_state.grant_access('regress_path_role', 'admin');
SELECT singer_state.revoke_access('regress_path_role');
DROP ROLE regress_path_role;

-- one round through the store
\set round 'SELECT singer_state.set($$a$$, $${"bookmarks": {"x": {"id": 1}}}$$, $${"bookmarks": {"y": {"id": 2}}}$$); SELECT singer_state.set($$a$$, $${"bookmarks": {"x": {"id": 2}}}$$, $${"bookmarks": {"y": {"id": 2}}}$$, if_version => 1); SELECT singer_state.merge($$a$$, $${"bookmarks": {"x": {"id": 3}}}$$); SELECT singer_state.update($$a$$, $${"bookmarks": {"x": {"id": 4}}}$$); SELECT singer_state.promote($$a$$); SELECT singer_state.get($$a$$); SELECT version FROM singer_state.get_state($$a$$); SELECT FROM singer_state.copy($$a$$, $$b$$); SELECT FROM singer_state.move($$b$$, $$c$$); SELECT FROM singer_state.merge_from($$a$$, $$c$$); SELECT singer_state.list($$[abc]*$$); SELECT singer_state.list($$a*$$); SELECT singer_state.export(); SELECT singer_state.import($${"d": {"completed": {"n": 1}}}$$); SELECT singer_state.import($${"d": {"completed": {"n": 2}}}$$, on_conflict => $$overwrite$$); SELECT version, operation FROM singer_state.history($$a$$); SELECT singer_state.state_at($$a$$, 2); SELECT stream, key, old_value, new_value FROM singer_state.diff($$a$$, 1, 3); SELECT singer_state.restore($$a$$, 2); SELECT state_id, version, effective_state FROM singer_state.states ORDER BY state_id; UPDATE singer_state.state SET partial_state = $${"hand": 1}$$ WHERE namespace OPERATOR(pg_catalog.=) pg_catalog.current_setting($$singer_state.namespace$$) AND state_id OPERATOR(pg_catalog.=) $$a$$ RETURNING version; SELECT singer_state.clear($$d$$); SELECT singer_state.clear_all($$*$$, dry_run => true); SELECT singer_state.clear_all($$*$$);'
SET singer_state.notify = on;
:round

SET singer_state.namespace = 'regress_path_2';
SET search_path = '';
:round

-- a search_path of names that do not exist, and a temporary table that
-- shadows ours
RESET search_path;
CREATE TEMP TABLE state (planted text);
CREATE TEMP TABLE state_history (planted text);
SET search_path = no_such_schema, pg_temp;
SET singer_state.namespace = 'regress_path_3';
:round

RESET search_path;
RESET singer_state.notify;
RESET singer_state.namespace;
DROP TABLE pg_temp.state, pg_temp.state_history;
DROP SCHEMA regress_hostile CASCADE;
