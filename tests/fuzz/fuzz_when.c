/*
 * Dates and durations of any text: no crash, no overflow, and what is accepted lies within the
 * calendar and reads back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_point(int64_t ms)
{
	char text[WHEN_TEXT];
	int64_t again;

	check(when_to_date(ms).year >= 1 && when_to_date(ms).year <= 9999);
	when_format_iso(ms, text);
	check(when_parse_stamp(text, strlen(text), &again) && again == ms);
	when_format(ms, text);
	check(when_parse_stamp(text, strlen(text), &again) && again <= ms && again > ms - 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int64_t now = 1774958400000;
	struct error error;
	int64_t ms, again;
	char back[WHEN_TEXT];
	char *text = malloc(size + 1);

	check(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	if (when_parse_stamp(text, size, &ms))
		check_point(ms);
	if (when_parse(text, now, &ms, &error))
		check_point(ms);
	if (when_parse_ahead(text, now, &ms, &error) && ms != WHEN_NEVER) {
		check(ms > now);
		check_point(ms);
	}
	if (when_parse_duration(text, &ms, &error)) {
		check(ms >= 0);
		when_format_duration(ms, back);
		check(when_parse_duration(back, &again, &error) && again == ms);
	}
	free(text);
	return 0;
}
