/*
 * The checker: Slack's rules for the blocks that we use, counted in characters, and that no text
 * holds markup but links to pages and dates.
 */
#ifndef TESTS_SLACK_PAYLOAD_H
#define TESTS_SLACK_PAYLOAD_H

#include <jansson.h>
#include <string.h>

static inline size_t slack_characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += (*text & 0xc0) != 0x80;
	return count;
}

/* A link, a date or a user without markup within; returns its last character. */
static inline const char *slack_check_link(const char *at)
{
	const char *end = strchr(at, '>');

	assert_non_null(end);
	if (strncmp(at, "<@", 2) == 0) /* a user */
		assert_int_equal(
			strspn(at + 2, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), end - at - 2);
	else
		assert_true(strncmp(at, "<https://", 9) == 0 || strncmp(at, "<!date^", 7) == 0);
	assert_true(at[1] == '@' || memchr(at, '|', (size_t)(end - at)));
	assert_null(memchr(at + 1, '<', (size_t)(end - at) - 1));
	return end;
}

static inline size_t slack_check_text(const json_t *object, const char *type, size_t most)
{
	const char *text = json_string_value(json_object_get(object, "text"));
	bool marked = strcmp(type, "mrkdwn") == 0;
	size_t count;

	assert_int_equal(json_object_size(object), marked ? 3 : 2);
	if (marked) /* else Slack makes links and mentions of names */
		assert_true(json_is_true(json_object_get(object, "verbatim")));
	assert_string_equal(json_string_value(json_object_get(object, "type")), type);
	assert_non_null(text);
	count = slack_characters(text);
	assert_in_range(count, 1, most);
	for (const char *at = text; *at; at++) {
		assert_true((unsigned char)*at >= 0x20 || *at == '\n');
		if (*at == '<')
			at = slack_check_link(at);
		else
			assert_int_not_equal(*at, '>');
		if (*at == '&')
			assert_true(strncmp(at, "&amp;", 5) == 0 || strncmp(at, "&lt;", 4) == 0 ||
				    strncmp(at, "&gt;", 4) == 0);
	}
	return count;
}

static inline size_t slack_check_section(const json_t *block)
{
	const json_t *fields = json_object_get(block, "fields"), *field;
	size_t count = 0, i;

	assert_int_equal(json_object_size(block), 2);
	if (!fields)
		return slack_check_text(json_object_get(block, "text"), "mrkdwn", 3000);
	assert_in_range(json_array_size(fields), 1, 10);
	json_array_foreach(fields, i, field) count += slack_check_text(field, "mrkdwn", 2000);
	return count;
}

static inline size_t slack_check_context(const json_t *block)
{
	const json_t *elements = json_object_get(block, "elements"), *element;
	size_t count = 0, i;

	assert_int_equal(json_object_size(block), 2);
	assert_in_range(json_array_size(elements), 1, 10);
	json_array_foreach(elements, i, element) count += slack_check_text(element, "mrkdwn", 2000);
	return count;
}

static inline size_t slack_check_words(const json_t *text, size_t most)
{
	assert_non_null(json_string_value(text));
	assert_in_range(slack_characters(json_string_value(text)), 1, most);
	return slack_characters(json_string_value(text));
}

/* A chart: a value in each series for each of its categories. */
static inline size_t slack_check_chart(const json_t *block)
{
	const json_t *chart = json_object_get(block, "chart"), *one;
	const json_t *axes = json_object_get(chart, "axis_config");
	const json_t *categories = json_object_get(axes, "categories");
	size_t count = slack_check_words(json_object_get(block, "title"), 50), i;

	assert_int_equal(json_object_size(block), 3);
	assert_int_equal(json_object_size(chart), 3);
	assert_string_equal(json_string_value(json_object_get(chart, "type")), "line");
	assert_in_range(json_array_size(categories), 1, 20);
	json_array_foreach(categories, i, one)
	{
		count += slack_check_words(one, 20);
		for (size_t k = 0; k < i; k++)
			assert_false(json_equal(json_array_get(categories, k), one));
	}
	count += slack_check_words(json_object_get(axes, "x_label"), 50);
	if (json_object_get(axes, "y_label"))
		count += slack_check_words(json_object_get(axes, "y_label"), 50);
	assert_in_range(json_array_size(json_object_get(chart, "series")), 1, 6);
	json_array_foreach(json_object_get(chart, "series"), i, one)
	{
		const json_t *data = json_object_get(one, "data");

		count += slack_check_words(json_object_get(one, "name"), 20);
		assert_int_equal(json_array_size(data), json_array_size(categories));
		for (size_t k = 0; k < json_array_size(data); k++) {
			const json_t *point = json_array_get(data, k);

			assert_true(json_is_number(json_object_get(point, "value")));
			assert_true(json_equal(
				json_object_get(point, "label"), json_array_get(categories, k)));
		}
	}
	return count;
}

/* The one body; the caller releases it. */
static inline json_t *slack_check(const char *payload, const char *channel)
{
	json_error_t problem;
	json_t *body = json_loads(payload, JSON_REJECT_DUPLICATES, &problem);
	const json_t *blocks, *block;
	size_t total = 0, charts = 0, i;

	if (!body)
		fail_msg("%s", problem.text);
	assert_in_range(
		slack_characters(json_string_value(json_object_get(body, "text"))), 1, 4000);
	if (channel)
		assert_string_equal(json_string_value(json_object_get(body, "channel")), channel);
	else
		assert_null(json_object_get(body, "channel"));
	blocks = json_object_get(body, "blocks");
	assert_in_range(json_array_size(blocks), 1, 50);
	json_array_foreach(blocks, i, block)
	{
		const char *type = json_string_value(json_object_get(block, "type"));

		if (strcmp(type, "section") == 0)
			total += slack_check_section(block);
		else if (strcmp(type, "context") == 0)
			total += slack_check_context(block);
		else if (strcmp(type, "data_visualization") == 0 && charts++ < 2)
			total += slack_check_chart(block);
		else
			assert_string_equal(type, "divider");
	}
	assert_in_range(total, 1, 13000);
	return body;
}

/* Each line is a body; returns their number. */
static inline size_t slack_check_all(const char *payload, const char *channel)
{
	char *copy = strdup(payload), *rest = copy, *line;
	size_t count = 0;

	while ((line = strsep(&rest, "\n"))) {
		json_decref(slack_check(line, channel));
		count++;
	}
	free(copy);
	return count;
}

#endif
