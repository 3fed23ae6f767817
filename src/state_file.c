/*-------------------------------------------------------------------------
 *
 * state_file.c
 *	  States in files of the server: save_state and load_state.
 *
 * A file is written beside its place and then moved there, so that it is the
 * old one or the new one, whole, whatever happens.  Files hold UTF-8.
 *
 *-------------------------------------------------------------------------
 */
#include "singer_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "catalog/pg_authid.h"
#include "document.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "plans.h"
#include "storage/fd.h"
#include "store.h"
#include "utils/acl.h"
#include "utils/memutils.h"
#include "validate.h"

PG_FUNCTION_INFO_V1(singer_state_save_state);
PG_FUNCTION_INFO_V1(singer_state_load_state);

#define FILE_MODE 0644
#define DIRECTORY_MODE 0755

/* What the server's own functions on paths take */
#define MAX_PATH (MAXPGPATH - 1)

/*
 * The path that a function was given: absolute, since the server's current
 * directory means nothing to the caller.
 */
static char *
path_arg(FunctionCallInfo fcinfo, int argno)
{
	char	   *path;

	ss_require_arg(fcinfo, argno, "path");
	path = text_to_cstring(PG_GETARG_TEXT_PP(argno));
	canonicalize_path(path);
	if (!is_absolute_path(path))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("path \"%s\" is not absolute", path)));
	if (strlen(path) > MAX_PATH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("path is longer than %d bytes", MAX_PATH)));
	return path;
}

static void
check_role(Oid role, const char *name, const char *action)
{
	if (!has_privs_of_role(GetUserId(), role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to %s a file of the server", action),
				 errdetail("Only members of role \"%s\" may do so.", name)));
}

/*
 * The server's umask keeps what it creates to itself; a state file is there
 * for the tap, which may run as another user of the system.
 */
static void
open_to_readers(const char *path, mode_t mode)
{
	if (chmod(path, mode) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not set permissions of \"%s\": %m", path)));
}

/*
 * Create the directories that a path leads through, as far as they are
 * missing.
 */
static void
create_directories(const char *path)
{
	char	   *directory = pstrdup(path);
	int			result;

	get_parent_directory(directory);
	if (*directory == '\0')
		return;

	result = mkdir(directory, DIRECTORY_MODE);
	if (result != 0 && errno == ENOENT)
	{
		create_directories(directory);
		result = mkdir(directory, DIRECTORY_MODE);
	}
	if (result == 0)
		open_to_readers(directory, DIRECTORY_MODE);
	else if (errno != EEXIST)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not create directory \"%s\": %m", directory)));
}

static void
write_bytes(int fd, const char *path, const char *bytes, size_t length)
{
	while (length > 0)
	{
		ssize_t		written;

		CHECK_FOR_INTERRUPTS();
		errno = 0;
		written = write(fd, bytes, Min(length, 1024 * 1024));
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
		{
			/* a write that wrote nothing and says no error is a full disk */
			if (errno == 0)
				errno = ENOSPC;
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not write file \"%s\": %m", path)));
		}
		bytes += written;
		length -= written;
	}
}

/*
 * Create the temporary file, which must not be there: nobody can have us
 * write through a link that they have put in its place.
 */
static int
create_temporary(const char *path)
{
	int			fd = OpenTransientFilePerm(path,
										   O_WRONLY | O_CREAT | O_EXCL | PG_BINARY,
										   FILE_MODE);

	if (fd < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not create file \"%s\": %m", path)));
	open_to_readers(path, FILE_MODE);
	return fd;
}

/*
 * Replace a file by these bytes, as a whole or not at all.
 */
static void
replace_file(const char *path, const char *bytes, size_t length)
{
	char	   *temporary = psprintf("%s.%d.tmp", path, MyProcPid);

	create_directories(path);

	/* what a crash has left of a process that had our number */
	if (unlink(temporary) != 0 && errno != ENOENT)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", temporary)));

	PG_TRY();
	{
		int			fd = create_temporary(temporary);

		write_bytes(fd, temporary, bytes, length);
		if (CloseTransientFile(fd) != 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not close file \"%s\": %m", temporary)));
		(void) durable_rename(temporary, path, ERROR);
	}
	PG_CATCH();
	{
		(void) unlink(temporary);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/*
 * The effective state of a state id as the tap state that a tap reads.
 */
static Jsonb *
read_tap_state(text *state_id)
{
	MemoryContext context = CurrentMemoryContext;
	MemoryContext old;
	SsState		state;
	Jsonb	   *document;
	Datum		model = DirectFunctionCall1(jsonb_in,
											CStringGetDatum("{\"bookmarks\": {}}"));

	SPI_connect();
	ss_state_read(state_id, true, &state);
	if (!state.exists)
		ss_state_missing(state_id);

	old = MemoryContextSwitchTo(context);
	document = ss_state_effective(&state);
	if (document == NULL)
		document = ss_document_empty();
	document = ss_document_conform(document, DatumGetJsonbP(model));
	document = DatumGetJsonbPCopy(JsonbPGetDatum(document));
	MemoryContextSwitchTo(old);
	SPI_finish();
	return document;
}

/*
 * save_state(state_id, path): writes the effective state to a file; answers
 * how many bytes.
 */
Datum
singer_state_save_state(PG_FUNCTION_ARGS)
{
	text	   *state_id = ss_state_id_arg(fcinfo, 0);
	char	   *path = path_arg(fcinfo, 1);
	StringInfoData json;
	char	   *utf8;
	Jsonb	   *document;

	check_role(ROLE_PG_WRITE_SERVER_FILES, "pg_write_server_files", "write");
	document = read_tap_state(state_id);

	initStringInfo(&json);
	(void) JsonbToCString(&json, &document->root, VARSIZE(document));
	appendStringInfoChar(&json, '\n');
	utf8 = pg_server_to_any(json.data, json.len, PG_UTF8);
	if (utf8 != json.data)
		json.len = strlen(utf8);
	replace_file(path, utf8, json.len);
	PG_RETURN_INT64(json.len);
}

static void
report_unreadable(const char *path)
{
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not read file \"%s\": %m", path)));
}

/*
 * Check that a path leads to a file that we can hold; answers its size, or -1
 * if there is none.  Opening anything else, a pipe say, could block.
 */
static off_t
file_size(const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0)
	{
		if (errno == ENOENT)
			return -1;
		report_unreadable(path);
	}
	if (!S_ISREG(status.st_mode))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a regular file", path)));
	if (status.st_size >= MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("file \"%s\" is too large", path)));
	return status.st_size;
}

/*
 * Read a file, as text in the server's encoding; NULL if there is none.
 */
static char *
read_file(const char *path)
{
	off_t		size = file_size(path);
	FILE	   *file;
	char	   *bytes;
	size_t		length;

	if (size < 0)
		return NULL;
	file = AllocateFile(path, PG_BINARY_R);
	if (file == NULL)
		report_unreadable(path);
	bytes = palloc(size + 1);
	length = fread(bytes, 1, size, file);
	if (ferror(file))
		report_unreadable(path);
	FreeFile(file);
	bytes[length] = '\0';

	if (length >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
	{
		bytes += 3;
		length -= 3;
	}
	return pg_any_to_server(bytes, length, PG_UTF8);
}

static void
add_file_context(void *arg)
{
	errcontext("state file \"%s\"", (char *) arg);
}

/*
 * The state in a file; NULL if there is no file.
 */
static Jsonb *
read_state(char *path)
{
	ErrorContextCallback callback;
	char	   *json = read_file(path);
	Jsonb	   *document;

	if (json == NULL)
		return NULL;

	callback.callback = add_file_context;
	callback.arg = path;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	document = DatumGetJsonbP(DirectFunctionCall1(jsonb_in,
												  CStringGetDatum(json)));
	ss_document_check_kind(document);
	ss_document_validate(document);
	error_context_stack = callback.previous;
	return document;
}

/*
 * Put a document in place of a state, in the form that the state has.
 */
static void
edit_load(SsState *state, void *arg)
{
	Jsonb	   *document = arg;
	struct varlena *model = state->completed;

	if (model == NULL)
		model = state->partial;
	if (model != NULL)
		document = ss_document_conform(document, ss_state_part(model));
	state->completed = (struct varlena *) ss_document_normalize(document);
	state->partial = NULL;
}

/*
 * load_state(state_id, path): replaces a state by that in a file; false if
 * there is no file.
 */
Datum
singer_state_load_state(PG_FUNCTION_ARGS)
{
	text	   *state_id = ss_state_id_arg(fcinfo, 0);
	char	   *path = path_arg(fcinfo, 1);
	Jsonb	   *document;
	SsWrite		write;

	check_role(ROLE_PG_READ_SERVER_FILES, "pg_read_server_files", "read");
	document = read_state(path);
	if (document == NULL)
		PG_RETURN_BOOL(false);

	ss_write_init(&write, "load_state", state_id);
	(void) ss_store_write(&write, edit_load, document);
	PG_RETURN_BOOL(true);
}
