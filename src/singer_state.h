/*-------------------------------------------------------------------------
 *
 * singer_state.h
 *	  Names, limits and error codes that every file of singer_state shares.
 *
 * Conventions: SQL-callable functions are called singer_state_<sqlname>,
 * helpers that other files use ss_<noun>_<verb>, macros SS_<NAME>; what a
 * single file needs is static and has a bare name.
 *
 * Lock order, for whoever takes more than one: queue lock of a state id, run
 * lock of a state id, row of state_lock, row of state.  State ids are taken
 * in byte order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_H
#define SINGER_STATE_H

#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "compat.h"

/* The schema that the install script creates; relocation is not offered. */
#define SS_SCHEMA "singer_state"

/* Limits on names, in bytes; together they must fit an index tuple. */
#define SS_MAX_STATE_ID 1024
#define SS_MAX_NAMESPACE 255

/* SQLSTATE SS001: unsorted data in a stream that is declared sorted */
#define ERRCODE_SS_UNSORTED_DATA MAKE_SQLSTATE('S', 'S', '0', '0', '1')

#endif							/* SINGER_STATE_H */
