# singer_state: built by PGXS for whatever server PG_CONFIG names

EXTENSION = singer_state
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" singer_state.control)

MODULE_big = singer_state
OBJS = \
	src/access.o \
	src/args.o \
	src/bookmark.o \
	src/bulk.o \
	src/claim.o \
	src/compare.o \
	src/context.o \
	src/diff.o \
	src/document.o \
	src/glob.o \
	src/history.o \
	src/inspect.o \
	src/json.o \
	src/lease.o \
	src/lock_holder.o \
	src/merge.o \
	src/message.o \
	src/module.o \
	src/plans.o \
	src/progress.o \
	src/row_probe.o \
	src/run.o \
	src/run_counts.o \
	src/run_lock.o \
	src/run_session.o \
	src/run_tally.o \
	src/scan.o \
	src/settings.o \
	src/state_calls.o \
	src/state_file.o \
	src/state_id.o \
	src/store.o \
	src/stored_bookmarks.o \
	src/trigger.o \
	src/validate.o
PGFILEDESC = "singer_state - state of Singer pipelines"

DATA = $(wildcard sql/singer_state--*.sql)

REGRESS = \
	copy_move \
	documents \
	export_import \
	forms \
	history \
	leases \
	locks \
	messages \
	namespaces \
	patterns \
	runs \
	search_path \
	settings \
	store \
	validation \
	versions
REGRESS_OPTS = --load-extension=singer_state

# See below: not every server can run them
ISOLATION_SPECS = \
	bulk-bulk \
	clear-create \
	different-ids \
	lock-deadlock \
	lock-lease \
	lock-lock \
	lock-write \
	merge-clear \
	merge-import \
	merge-merge \
	merge-move \
	merge-new-state \
	run-counts \
	run-run \
	set-if-version \
	write-write
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=singer_state

TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl

PG_CPPFLAGS = -DSINGER_STATE_VERSION='"$(EXTVERSION)"'
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers -Wshadow=compatible-local

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)

# PostgreSQL 13 installs no isolation tester
ifneq ($(wildcard $(dir $(PGXS))../test/isolation/isolationtester),)
ISOLATION = $(ISOLATION_SPECS)
endif

include $(PGXS)

# PGXS tracks no headers
$(OBJS): $(wildcard src/*.h)

# Benchmarks, on the server that PGHOST, PGPORT, ... name; test/bench/bench
# starts one for them
.PHONY: bench
bench:
	@for run in test/bench/run-*; do \
		test -x "$$run" || continue; \
		echo "== $${run##*/}"; PATH="$(bindir):$$PATH" "$$run" || exit; \
	done
