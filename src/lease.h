/*-------------------------------------------------------------------------
 *
 * lease.h
 *	  Leases: run locks that live in a table.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_LEASE_H
#define SINGER_STATE_LEASE_H

pg_noreturn extern void ss_lease_refuse(text *state_id, const char *action);
extern void ss_lease_end(text *state_id);
extern void ss_lease_init(void);

#endif							/* SINGER_STATE_LEASE_H */
