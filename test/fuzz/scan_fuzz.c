/*-------------------------------------------------------------------------
 *
 * scan_fuzz.c
 *	  Fuzzes the line scanner, or prints what it makes of each line.
 *
 * With libFuzzer, from the top folder, for as long as you like:
 *
 *	  clang -g -O1 -fsanitize=fuzzer,address,undefined -Isrc \
 *		  test/fuzz/scan_fuzz.c src/scan.c -o /tmp/scan_fuzz
 *	  /tmp/scan_fuzz -max_total_time=300 /tmp/corpus test/fuzz/corpus
 *
 * Without (any compiler), as the filter that compare_scan.py drives:
 *
 *	  cc -g -O1 -DSTAND_ALONE -fsanitize=address,undefined -Isrc \
 *		  test/fuzz/scan_fuzz.c src/scan.c -o /tmp/scan_lines
 *	  /tmp/scan_lines < messages.jsonl
 *
 * Whatever the input, the scanner must stay within it, make progress, end
 * each line at its newline, and see the same in a line that stands alone.
 *
 *-------------------------------------------------------------------------
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scan.h"

static void
check_slice(SsSlice slice, const char *start, const char *end)
{
	if (slice.data == NULL)
		return;
	assert(slice.data >= start && slice.data + slice.length <= end);
	assert(memchr(slice.data, '\n', slice.length) == NULL);
}

static void
check_line(const SsLine *line, const char *start, const char *end)
{
	check_slice(line->text, start, end);
	check_slice(line->state, start, end);
	for (int i = 0; i < SS_MEMBERS; i++)
		check_slice(line->member[i], start, end);

	assert((line->kind == SS_LINE_INVALID) == (line->problem != NULL));
	if (line->kind == SS_LINE_STATE || line->kind == SS_LINE_BARE_STATE)
		assert(line->state.length > 0);
	if (line->problem != NULL)
		assert(line->problem_at <= line->text.length);
	if (ss_line_kind_name(line->kind) != NULL && line->kind != SS_LINE_STATE)
	{
		SsSlice		stream = line->member[SS_MEMBER_STREAM];
		char	   *name = malloc(stream.length);

		assert(ss_string_unescape(stream, name) <= stream.length);
		free(name);
	}
}

/* Scan a copy that ends where its allocation does, so that overruns show. */
static void
check_alone(const SsLine *line, const char *start, size_t length)
{
	char	   *copy = malloc(length);
	SsLine		alone;

	memcpy(copy, start, length);
	assert(ss_line_scan(copy, copy + length, &alone) == copy + length);
	assert(alone.kind == line->kind && alone.problem_at == line->problem_at);
	assert(alone.state.length == line->state.length);
	free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *) data;
	const char *end = p + size;

	while (p < end)
	{
		SsLine		line;
		const char *next = ss_line_scan(p, end, &line);
		const char *newline = memchr(p, '\n', end - p);

		assert(next == (newline == NULL ? end : newline + 1));
		check_line(&line, p, newline == NULL ? end : newline);
		check_alone(&line, p, (newline == NULL ? end : newline) - p);
		p = next;
	}
	return 0;
}

#ifdef STAND_ALONE

/* One line of output per line: kind, stream, state, separated by tabs. */
static void
print_line(const SsLine *line)
{
	const char *name = ss_line_kind_name(line->kind);
	SsSlice		stream = line->member[SS_MEMBER_STREAM];

	if (line->kind == SS_LINE_EMPTY)
		name = "empty";
	else if (line->kind == SS_LINE_INVALID)
		name = line->problem;
	else if (line->kind == SS_LINE_BARE_STATE)
		name = "bare state";
	printf("%d\t%s\t%.*s\t%.*s\n", (int) line->kind, name,
		   (int) stream.length, stream.data == NULL ? "" : stream.data,
		   (int) line->state.length,
		   line->state.data == NULL ? "" : line->state.data);
}

int
main(void)
{
	char	   *text = NULL;
	size_t		size = 0;
	ssize_t		length;

	while ((length = getline(&text, &size, stdin)) > 0)
	{
		SsLine		line;

		LLVMFuzzerTestOneInput((const uint8_t *) text, length);
		ss_line_scan(text, text + length, &line);
		print_line(&line);
	}
	free(text);
	return 0;
}

#endif							/* STAND_ALONE */
