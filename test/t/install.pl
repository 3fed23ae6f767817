# CREATE EXTENSION: by whom, over what, and what it leaves behind.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SingerStateTest;
use Test::More;

my $node = start_node('install', bare => 1);

# Somebody was there before.
foreach my $planted (
	'CREATE SCHEMA singer_state',
	'CREATE SCHEMA singer_state AUTHORIZATION intruder',
	q{CREATE SCHEMA singer_state
		CREATE TABLE state (namespace text, state_id text)},
	q{CREATE SCHEMA singer_state;
	CREATE FUNCTION singer_state.get(text) RETURNS jsonb LANGUAGE sql
		AS 'SELECT NULL::jsonb'})
{
	run_sql($node, q{
		DROP DATABASE IF EXISTS planted;
		DROP ROLE IF EXISTS intruder;
		CREATE ROLE intruder;
	});
	run_sql($node, 'CREATE DATABASE planted');
	run_sql($node, $planted, db => 'planted');
	fails_with($node, 'CREATE EXTENSION singer_state',
		'42P06', undef, "not adopted: $planted", db => 'planted');
	fails_with($node, 'CREATE EXTENSION IF NOT EXISTS singer_state',
		'42P06', undef, 'nor with IF NOT EXISTS', db => 'planted');
	value_is($node, 'SELECT count(*) FROM pg_extension WHERE extname = $$singer_state$$',
		'0', 'nothing was installed', db => 'planted');
}

# Traps on the search_path of the one who installs: each raises an error.
run_sql($node, 'CREATE DATABASE trapped');
run_sql(
	$node, q{
	CREATE SCHEMA traps;
	CREATE FUNCTION traps.trap() RETURNS boolean LANGUAGE plpgsql AS $$
		BEGIN RAISE 'a planted object was used'; END $$;
	CREATE FUNCTION traps.now() RETURNS timestamptz LANGUAGE sql
		AS 'SELECT NULL::timestamptz FROM traps.trap()';
	CREATE FUNCTION traps.clock_timestamp() RETURNS timestamptz LANGUAGE sql
		AS 'SELECT NULL::timestamptz FROM traps.trap()';
	CREATE FUNCTION traps.current_setting(text) RETURNS text LANGUAGE sql
		AS 'SELECT NULL::text FROM traps.trap()';
	CREATE FUNCTION traps.current_setting(text, boolean) RETURNS text
		LANGUAGE sql AS 'SELECT NULL::text FROM traps.trap()';
	CREATE FUNCTION traps.pg_extension_config_dump(regclass, text)
		RETURNS void LANGUAGE sql AS 'SELECT FROM traps.trap()';
	CREATE FUNCTION traps.equal(text, text) RETURNS boolean LANGUAGE sql
		AS 'SELECT traps.trap()';
	CREATE OPERATOR traps.= (LEFTARG = text, RIGHTARG = text,
		FUNCTION = traps.equal);
	CREATE DOMAIN traps.jsonb AS text CHECK (traps.trap());
	CREATE DOMAIN traps.text AS integer CHECK (traps.trap());
	CREATE DOMAIN traps.bigint AS text CHECK (traps.trap());
	CREATE DOMAIN traps.timestamptz AS text CHECK (traps.trap());
	ALTER DATABASE trapped SET search_path = traps, pg_catalog}, db => 'trapped');
run_sql($node, 'CREATE EXTENSION singer_state', db => 'trapped');
value_is(
	$node, q{
	SELECT a.attrelid::pg_catalog.regclass, a.attname, a.atttypid::pg_catalog.regtype
	FROM pg_catalog.pg_attribute a, pg_catalog.pg_class c, pg_catalog.pg_type t
	WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid
		AND c.relnamespace OPERATOR(pg_catalog.=) 'singer_state'::pg_catalog.regnamespace
		AND a.atttypid OPERATOR(pg_catalog.=) t.oid
		AND t.typnamespace OPERATOR(pg_catalog.=) 'traps'::pg_catalog.regnamespace},
	'', 'no column has a planted type', db => 'trapped');
value_is(
	$node, q{
	SELECT singer_state.set('a', '{"b": 1}');
	SELECT singer_state.merge('a', '{"b": 2}');
	SELECT singer_state.get('a');
	SELECT effective_state FROM singer_state.states;
	SELECT operation FROM singer_state.history('a')},
	qq{1\n2\n{"b": 2}\n{"b": 2}\nmerge}, 'and nothing planted is called',
	db => 'trapped');

# A database owner who is no superuser
run_sql(
	$node, q{
	CREATE ROLE owner;
	CREATE ROLE pipeline});
run_sql($node, 'CREATE DATABASE owned OWNER owner');
run_sql($node, 'CREATE EXTENSION singer_state', db => 'owned', as => 'owner');
value_is(
	$node, q{
	SELECT singer_state.set('a', '{"b": 1}');
	SELECT singer_state.merge('a', '{"b": 2}');
	SELECT singer_state.update('a', '{"b": 3}');
	SELECT singer_state.promote('a');
	SELECT singer_state.get('a');
	SELECT FROM singer_state.copy('a', 'b');
	SELECT FROM singer_state.move('b', 'c');
	SELECT FROM singer_state.merge_from('a', 'c');
	SELECT count(*) FROM singer_state.list();
	SELECT count(*) FROM singer_state.history('a');
	SELECT singer_state.restore('a', 1);
	SELECT singer_state.import(singer_state.export(), on_conflict => 'skip');
	SELECT count(*) FROM singer_state.state;
	SELECT count(*) FROM singer_state.state_history WHERE state_id = 'a';
	SELECT count(*) FROM singer_state.states;
	SELECT singer_state.clear('c');
	SELECT count(*) FROM singer_state.clear_all('*')},
	join("\n", 1, 2, 3, 4, '{"b": 3}', 2, 3, 5, 0, 2, 4, 2, 't', 1),
	'the owner of the database uses the whole store',
	db => 'owned', as => 'owner');
value_is(
	$node, q{
	SELECT FROM singer_state.grant_access('pipeline', 'writer');
	SET SESSION AUTHORIZATION pipeline;
	SELECT singer_state.set('p', '{"b": 1}')},
	'1', 'and hands out access', db => 'owned', as => 'owner');
value_is(
	$node, q{
	SELECT count(*) FROM pg_class
	WHERE relnamespace = 'singer_state'::regnamespace AND relkind IN ('r', 'v', 'S')
		AND pg_get_userbyid(relowner) = 'owner'},
	'0', 'the tables are not the owner\'s to alter', db => 'owned');
value_is(
	$node, q{
	SELECT d.privilege, c.relname FROM pg_class c,
		unnest(ARRAY['SELECT', 'INSERT']) AS d (privilege)
	WHERE relnamespace = 'singer_state'::regnamespace AND relkind = 'r'
		AND NOT has_table_privilege('owner', c.oid, d.privilege)},
	'', 'but to read, dump and restore', db => 'owned');
value_is(
	$node, q{
	SELECT singer_state.set('before', '{"a": 1}');
	SELECT singer_state.merge('before', '{"a": 2}');
	DROP EXTENSION singer_state;
	SELECT count(*) FROM pg_namespace WHERE nspname = 'singer_state';
	CREATE EXTENSION singer_state;
	SELECT count(*) FROM singer_state.list();
	SELECT singer_state.set('a', '{"a": 1}');
	SELECT singer_state.merge('a', '{"a": 2}');
	SELECT singer_state.clear('a')},
	"1\n2\n0\n0\n1\n2\nt", 'dropped with all that it made, and made again',
	db => 'owned', as => 'owner');

# What the catalog says of every object
value_is(
	$node, q{
	SELECT oid::regprocedure FROM pg_proc
	WHERE pronamespace = 'singer_state'::regnamespace
		AND obj_description(oid, 'pg_proc') IS NULL
	UNION ALL
	SELECT NULL FROM pg_class c
	WHERE relnamespace = 'singer_state'::regnamespace
		AND relkind IN ('r', 'v', 'S') AND obj_description(oid, 'pg_class') IS NULL
	UNION ALL
	SELECT NULL FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid
	WHERE relnamespace = 'singer_state'::regnamespace
		AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
		AND col_description(c.oid, attnum) IS NULL
	UNION ALL
	SELECT NULL FROM pg_namespace
	WHERE nspname = 'singer_state' AND obj_description(oid, 'pg_namespace') IS NULL},
	'', 'everything has a comment', db => 'owned');
value_is(
	$node, q{
	SELECT oid::regprocedure, argument FROM pg_proc
		CROSS JOIN LATERAL unnest(proargnames) argument
		JOIN pg_get_keywords() ON word = argument AND catcode = 'R'
	WHERE pronamespace = 'singer_state'::regnamespace},
	'', 'no argument is named by a reserved word', db => 'owned');
value_is(
	$node, q{
	SELECT indexrelid::regclass FROM pg_index
	WHERE indrelid = 'singer_state.state'::regclass AND NOT indisprimary},
	'', 'the primary key is the only index of states', db => 'owned');

# Documents are compressed with lz4 where the server can.
SKIP:
{
	skip 'no choice of compression', 1
	  if run_sql($node, 'SHOW server_version_num') < 140000;
	my ($no_lz4) = sqlstate_of($node,
		'SET default_toast_compression = lz4', db => 'owned');
	skip 'server was built without lz4', 1 if $no_lz4;
	value_is(
		$node, q{
		SELECT DISTINCT attcompression FROM pg_attribute
		WHERE attrelid IN ('singer_state.state'::regclass,
				'singer_state.state_history'::regclass)
			AND atttypid = 'jsonb'::regtype},
		'l', 'documents are compressed with lz4', db => 'owned');
}

# Nobody else's settings under our name
SKIP:
{
	skip 'prefixes cannot be reserved', 1
	  if run_sql($node, 'SHOW server_version_num') < 150000;
	fails_with(
		$node, q{
		LOAD 'singer_state';
		SET singer_state.name_space = 'typo'},
		'42602', undef, 'a misspelt setting is an error', db => 'owned');
}

$node->stop;
done_testing();
