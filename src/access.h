/*-------------------------------------------------------------------------
 *
 * access.h
 *	  Privileges: who may lock a state, and the levels that are granted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SINGER_STATE_ACCESS_H
#define SINGER_STATE_ACCESS_H

extern void ss_access_require_write(text *state_id);

#endif							/* SINGER_STATE_ACCESS_H */
