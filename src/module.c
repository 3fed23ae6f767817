/*-------------------------------------------------------------------------
 *
 * module.c
 *	  Entry point of the shared library.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include "lease.h"
#include "run_session.h"
#include "run_tally.h"
#include "settings.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	ss_settings_init();
	ss_lease_init();
	ss_run_session_init();
	ss_tally_init();
}
