# A psql session that stays open: SQL goes in, what it answers comes back, and
# in between the test may do something else.
package LockSession;

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;

# Options: dsn (instead of the node's own), as (a role).
sub new
{
	my ($class, $node, %option) = @_;
	my $self = bless { in => '', out => '', sent => 0, answered => 0 }, $class;

	$self->{run} = IPC::Run::start(
		[
			'psql', '-XAtq', '-d',
			$option{dsn} // $node->connstr('postgres'), '-f', '-'
		],
		'<', \$self->{in}, '>&', \$self->{out},
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default // 180));
	$self->ask("SET SESSION AUTHORIZATION $option{as};")
	  if defined $option{as};
	$self->{pid} = $self->ask('SELECT pg_backend_pid();');
	return $self;
}

# Sends SQL; what it says comes with answer().
sub send
{
	my ($self, $sql) = @_;

	$self->{sent}++;
	$self->{in} .= "$sql\n\\echo done $self->{sent}\n";
	$self->{run}->pump_nb;
	return;
}

# Waits for the answer to what was sent.
sub answer
{
	my ($self) = @_;
	my $number = ++$self->{answered};

	$self->{run}->pump until $self->{out} =~ s/\A(.*?)^done $number\n//ms;
	my $answer = $1;
	chomp $answer;
	return $answer;
}

sub ask
{
	my ($self, $sql) = @_;

	$self->send($sql);
	return $self->answer;
}

sub pid
{
	return $_[0]->{pid};
}

# Ends the client as a crash would.
sub kill
{
	my ($self) = @_;

	$self->{run}->kill_kill(grace => 0);
	return;
}

sub quit
{
	my ($self) = @_;

	$self->{in} .= "\\q\n";
	$self->{run}->finish;
	return;
}

# Waits until the session waits: for a lock, or for a lease to end.
sub wait_until_blocked
{
	my ($self, $node) = @_;

	return $node->poll_query_until(
		'postgres', qq{
		SELECT wait_event_type IN ('Lock', 'Extension')
		FROM pg_stat_activity WHERE pid = $self->{pid}});
}

1;
