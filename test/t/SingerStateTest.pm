# What the TAP tests share: a server with the extension, ways to ask it, and
# the place of the test data.
package SingerStateTest;

use strict;
use warnings;

use Exporter 'import';
use File::Spec;
use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(start_node data_path source_path run_sql value_is
  fails_with sqlstate_of read_jsonl install_reference backend_memory_sql);

# psql sends what the test files hold, whatever the locale of the person who
# runs them.
$ENV{PGCLIENTENCODING} = 'UTF8';

# A running server whose database postgres has the extension.  Options:
# conf (lines for postgresql.conf), bare (no CREATE EXTENSION), and what
# PostgreSQL::Test::Cluster's init takes.
sub start_node
{
	my ($name, %option) = @_;
	my $conf = delete $option{conf} // '';
	my $bare = delete $option{bare};
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(extra => [ '--encoding=UTF8', '--locale=C' ], %option);
	$node->append_conf('postgresql.conf', $conf) if $conf ne '';
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION singer_state')
	  unless $bare;
	return $node;
}

# Absolute path of a file below test/data.
sub data_path
{
	return source_path('test', 'data', @_);
}

# Absolute path of a file of the source tree.
sub source_path
{
	return File::Spec->catfile($FindBin::RealBin, '..', '..', @_);
}

# Runs SQL, dies when it fails, answers the output.  Options: db, and as (a
# role that the session becomes first).
sub run_sql
{
	my ($node, $sql, %option) = @_;

	$sql = "SET SESSION AUTHORIZATION $option{as};\n$sql"
	  if defined $option{as};
	return $node->safe_psql($option{db} // 'postgres', $sql);
}

# Tests that a query answers a value.
sub value_is
{
	my ($node, $sql, $expected, $name, %option) = @_;
	my $got = eval { run_sql($node, $sql, %option) };

	$got = "error: $@" unless defined $got;
	return is($got, $expected, $name);
}

# Runs SQL that may fail; answers SQLSTATE ('' when it succeeds) and all that
# the server said.
sub sqlstate_of
{
	my ($node, $sql, %option) = @_;
	my ($stdout, $stderr);

	$sql = "SET SESSION AUTHORIZATION $option{as};\n$sql"
	  if defined $option{as};
	$node->psql(
		$option{db} // 'postgres',
		"\\set VERBOSITY verbose\n$sql",
		stdout => \$stdout,
		stderr => \$stderr);
	return ($1, $stderr)
	  if $stderr =~ /(?:ERROR|FATAL|PANIC):\s+([0-9A-Z]{5}):/;
	return ($stderr =~ /connection to server was lost/ ? 'crash' : '',
		$stderr);
}

# Tests that SQL fails with a SQLSTATE and, when given, words that the error
# (with its detail and hint) must hold.
sub fails_with
{
	my ($node, $sql, $sqlstate, $like, $name, %option) = @_;
	my ($got, $said) = sqlstate_of($node, $sql, %option);

	return subtest $name => sub {
		is($got, $sqlstate, 'SQLSTATE');
		like($said, $like, 'message') if defined $like;
		diag("server said: $said") if $got ne $sqlstate;
	};
}

# Loads a file of JSON lines into a table (line integer, doc jsonb).
sub read_jsonl
{
	my ($node, $table, $path) = @_;

	$path = File::Spec->rel2abs($path);
	$path =~ s/'/''/g;
	run_sql(
		$node, qq{
		CREATE TABLE $table AS
		SELECT line::integer, doc::jsonb
		FROM regexp_split_to_table(pg_read_file('$path'), E'\\n')
			WITH ORDINALITY AS s (doc, line)
		WHERE doc <> ''});
	return;
}

# Creates reference_merge(base, patch), Meltano's rule made total, written
# without the extension: an empty object clears nothing, whatever it meets.
sub install_reference
{
	my ($node) = @_;

	run_sql(
		$node, q{
		CREATE FUNCTION reference_merge(base jsonb, patch jsonb)
		RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
		DECLARE
			member record;
		BEGIN
			IF jsonb_typeof(patch) <> 'object' THEN
				RETURN patch;
			END IF;
			IF patch = '{}' AND base IS NOT NULL THEN
				RETURN base;
			END IF;
			IF base IS NULL OR jsonb_typeof(base) <> 'object' THEN
				base := '{}';
			END IF;
			FOR member IN SELECT key, value FROM jsonb_each(patch) LOOP
				base := base || jsonb_build_object(member.key,
					reference_merge(base -> member.key, member.value));
			END LOOP;
			RETURN base;
		END $$});
	return;
}

# A query for the bytes that the backend has in use: its memory contexts
# where the server can tell (14 and later), else its resident pages.
sub backend_memory_sql
{
	my ($node) = @_;
	my $has_view = run_sql($node,
		q{SELECT to_regclass('pg_catalog.pg_backend_memory_contexts') IS NOT NULL}
	);

	return 'SELECT sum(total_bytes) FROM pg_catalog.pg_backend_memory_contexts'
	  if $has_view eq 't';
	return q{SELECT (regexp_match(pg_read_file('/proc/self/status', 0, 100000),
		'VmRSS:\s+(\d+)'))[1]::bigint * 1024};
}

1;
