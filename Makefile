# singer_state: built by PGXS for whatever server PG_CONFIG names

EXTENSION = singer_state
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" singer_state.control)

MODULE_big = singer_state
OBJS = \
	src/bookmark.o \
	src/compare.o \
	src/context.o \
	src/diff.o \
	src/document.o \
	src/json.o \
	src/merge.o \
	src/module.o \
	src/progress.o \
	src/settings.o
PGFILEDESC = "singer_state - state of Singer pipelines"

DATA = $(wildcard sql/singer_state--*.sql)

REGRESS = \
	settings
REGRESS_OPTS = --load-extension=singer_state

TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl

PG_CPPFLAGS = -DSINGER_STATE_VERSION='"$(EXTVERSION)"'
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers -Wshadow=compatible-local

EXTRA_CLEAN = test/isolation/results test/isolation/output_iso

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# PGXS tracks no headers
$(OBJS): $(wildcard src/*.h)
