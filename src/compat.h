/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Every difference between the PostgreSQL versions that we support.
 *
 * The code is written for the newest server; this file gives its names to
 * the older ones.  PG_VERSION_NUM appears nowhere else.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_COMPAT_H
#define SINGER_STATE_COMPAT_H

#if PG_VERSION_NUM < 130000 || PG_VERSION_NUM >= 190000
#error "singer_state supports PostgreSQL 13 to 18"
#endif

#include "utils/guc.h"

#if PG_VERSION_NUM < 150000
#define MarkGUCPrefixReserved(prefix) EmitWarningsOnPlaceholders(prefix)
#endif

#endif							/* SINGER_STATE_COMPAT_H */
