# What scripts/check and scripts/quickstart share; sourced by bash, never run.
#
# Both work on a private copy of the server's installation, so that neither
# touches the installed one: PostgreSQL finds its libraries and shared files
# relative to its own program, wherever the tree of folders is put.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PATH=$PATH:/usr/sbin:/sbin
umask 022

die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# What the caller's session says about some other server is not meant for ours.
unset PGHOST PGHOSTADDR PGPORT PGUSER PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS
unset PGSSLMODE PGDATA PGTZ PGDATESTYLE PGCLIENTENCODING PGAPPNAME PSQLRC
unset LANGUAGE MAKEFLAGS MAKELEVEL
export LC_ALL=C

# ---------------------------------------------------------------------------
# Packages
# ---------------------------------------------------------------------------

missing=()

# need PACKAGE COMMAND...: the package is missing if the command fails.
need()
{
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || missing+=("$package")
}

has_header()
{
	echo "#include <$1>" | gcc -E - >/dev/null 2>&1
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# The newest server that is installed and that we support; nothing if none is.
installed_major()
{
	local major
	for major in 18 17 16 15 14 13; do
		if [ -x "/usr/lib/postgresql/$major/bin/postgres" ]; then
			echo "$major"
			return
		fi
	done
}

# Does the server of this pg_config come with headers of its very version?  A
# header package of a later minor version compiles well and may crash.
headers_match()
{
	local bindir header version
	bindir=$("$1" --bindir) && header=$("$1" --includedir-server)/pg_config.h || return
	version=$(sed -n 's/^#define PG_VERSION "\(.*\)"$/\1/p' "$header") || return
	[ -f "$("$1" --pgxs)" ] && [ "$("$bindir/postgres" -V)" = "postgres (PostgreSQL) $version" ]
}

# Choose PG_CONFIG, or note down the packages that it takes to have one.
find_server()
{
	local major
	if [ -n "${PG_CONFIG:-}" ]; then
		PG_CONFIG=$(command -v "$PG_CONFIG") || die "PG_CONFIG names no program"
		PG_CONFIG=$(cd "${PG_CONFIG%/*}" && pwd)/${PG_CONFIG##*/}
		headers_match "$PG_CONFIG" || die "$PG_CONFIG: the server has no headers of its own version"
		return
	fi
	major=$(installed_major)
	PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config
	if [ -z "$major" ]; then
		missing+=(postgresql)
	elif ! headers_match "$PG_CONFIG" 2>/dev/null; then
		# named together, the two are brought to one version
		missing+=("postgresql-$major" "postgresql-server-dev-$major")
	fi
}

apt()
{
	as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
		apt-get -qq -y -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$apt_log" 2>&1
}

# With these two in place, a package that is installed for its programs alone
# creates no cluster and starts no pgbouncer.  What was there before is left
# as it was.
cluster_conf=/etc/postgresql-common/createcluster.d/zz-singer-state.conf
start_policy=/usr/sbin/policy-rc.d

hold_services()
{
	as_root mkdir -p "${cluster_conf%/*}"
	echo 'create_main_cluster = false' | as_root tee "$cluster_conf" >/dev/null
	if [ ! -e $start_policy ]; then
		printf '#!/bin/sh\n# singer_state\n[ "$1" != pgbouncer ] || exit 101\n' |
			as_root tee $start_policy >/dev/null
		as_root chmod +x $start_policy
	fi
}

release_services()
{
	[ -e $cluster_conf ] || return 0
	as_root rm -f $cluster_conf
	dpkg -S "${cluster_conf%/*}" >/dev/null 2>&1 ||
		as_root rmdir --ignore-fail-on-non-empty -p "${cluster_conf%/*}"
	if grep -qs '^# singer_state$' $start_policy; then
		as_root rm -f $start_policy
	fi
}

# Install what need() and find_server() found missing, from Debian's archive.
# Call this before setting a trap of one's own.
install_missing()
{
	local major
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null || die "missing, and this is no Debian: ${missing[*]}"
	if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
		die "install these packages first, or run this as root: ${missing[*]}"
	fi
	apt_log=$(mktemp)
	trap 'release_services; rm -f "$apt_log"' EXIT
	apt update || { cat "$apt_log" >&2; die "apt-get update failed"; }
	if [[ " ${missing[*]} " = *" postgresql "* ]]; then
		major=$(apt-cache depends postgresql | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p')
		missing+=("postgresql-$major" "postgresql-server-dev-$major")
		PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config
	fi
	echo "Installing ${missing[*]}"
	hold_services
	apt install --no-install-recommends "${missing[@]}" ||
		{ cat "$apt_log" >&2; die "could not install ${missing[*]}"; }
	release_services
	rm -f "$apt_log"
	trap - EXIT
	headers_match "$PG_CONFIG" || die "$PG_CONFIG: the server and its headers differ in version"
}

# ---------------------------------------------------------------------------
# The unprivileged user, and what is done as that user
# ---------------------------------------------------------------------------

# PostgreSQL refuses to run as root: then it runs as postgres, or as nobody.
# "${as_owner[@]}" COMMAND... is how a command runs as that user.
find_owner()
{
	owner=$(id -un)
	as_owner=()
	if [ "$(id -u)" = 0 ]; then
		owner=postgres
		getent passwd postgres >/dev/null || owner=nobody
		as_owner=(setpriv --reuid="$owner" --regid="$(id -g "$owner")" --init-groups --)
	fi
}

# The files of the source tree, one a line, without what building leaves.
tree_files()
{
	if ! git -C "$top" ls-files --cached --others --exclude-standard 2>/dev/null; then
		(cd "$top" && find . -name .git -prune -o -type f \
			! -name '*.o' ! -name '*.so' ! -name '*.bc' -print | sed 's,^\./,,')
	fi | while IFS= read -r file; do
		[ ! -f "$top/$file" ] || printf '%s\n' "$file"
	done | sort
}

# copy_tree FOLDER: the source tree, for the owner to build in.
copy_tree()
{
	"${as_owner[@]}" mkdir -p "$1"
	tree_files | tar -C "$top" --no-recursion --files-from=- -cf - |
		"${as_owner[@]}" tar -C "$1" --no-same-owner -xf -
}

# copy_server FOLDER: a copy of the installation that PG_CONFIG belongs to,
# which the owner may install into.  Every folder keeps its full path below
# FOLDER.  PG_CONFIG then names the copy's.
copy_server()
{
	local bindir program dir
	bindir=$("$PG_CONFIG" --bindir)
	"${as_owner[@]}" mkdir -p "$1$bindir"
	# bindir may be /usr/bin, so take what is PostgreSQL's
	for program in "$bindir"/{postgres,postmaster,initdb,psql,pg_*,pgbench,createdb,createuser,dropdb,dropuser}; do
		[ ! -e "$program" ] || "${as_owner[@]}" cp -a "$program" "$1$bindir/"
	done
	for dir in --pkglibdir --sharedir --includedir-server; do
		dir=$("$PG_CONFIG" $dir)
		"${as_owner[@]}" mkdir -p "$1$dir"
		"${as_owner[@]}" cp -a "$dir/." "$1$dir/"
	done

	# Debian's pg_config of PostgreSQL 13 names the installed folders, wherever
	# it is itself.
	PG_CONFIG=$1$bindir/pg_config
	printf '#!/bin/sh\n"%s" "$@" | sed "s,^/,%s/,"\n' "$bindir/pg_config" "$1" |
		"${as_owner[@]}" sh -c 'rm -f "$1" && cat >"$1" && chmod +x "$1"' sh "$PG_CONFIG"
	[ -f "$("$PG_CONFIG" --pgxs)" ] || die "this installation of PostgreSQL cannot be copied: $bindir"
}
