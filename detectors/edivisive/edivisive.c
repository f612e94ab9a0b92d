/*
 * The detector edivisive: its options, and the choice of the profile.
 */
#include "detectors/edivisive/edivisive.h"

#include <string.h>

#include "detectors/edivisive/internal.h"

static const char *const profiles[] = {"default", "otava", NULL};

static const struct field edivisive_fields[] = {
	OPTION_INT(struct edivisive_options, window, "50", 2, 1e6,
		"window length in points; at least 4 in the default profile", .alias = "window_len",
		.metavar = "POINTS"),
	OPTION_DOUBLE(struct edivisive_options, p_value, "0.001", 0, 1,
		"significance level of a change point; at most 0.1 in the default profile",
		.alias = "max_pvalue", .flags = FIELD_MIN_OPEN, .letter = 'P', .metavar = "P"),
	OPTION_DOUBLE(struct edivisive_options, magnitude, "0.0", 0, 1e300,
		"minimum relative size of a change; 0.05 is 5%", .alias = "min_magnitude",
		.letter = 'M', .metavar = "SHARE"),
	OPTION_CHOICE(struct edivisive_options, profile, "default", profiles,
		"default, or otava for the change points of Apache Otava"),
	{0},
};

static struct stream *stream_new(const void *options, size_t excursion)
{
	const struct edivisive_options *given = options;
	const struct profile *profile =
		given->profile == EDIVISIVE_OTAVA ? &otava_profile : &default_profile;
	struct stream *stream = profile->begin(given, excursion);
	stream->profile = profile;
	return stream;
}

static const struct change *stream_append(struct stream *stream, const double *values, size_t n,
	struct scratch *scratch, size_t *count)
{
	return stream->profile->append(stream, values, n, scratch, count);
}

static void stream_free(struct stream *stream)
{
	if (stream)
		stream->profile->end(stream);
}

static size_t stream_rest(struct stream *stream, size_t *fixed)
{
	return stream->profile->rest(stream, fixed);
}

static size_t stream_chunk(const struct stream *stream, size_t at)
{
	return stream->profile->chunk(stream, at);
}

/* All values are appended at once. */
static size_t edivisive_detect(const struct samples *samples, const void *options,
	struct scratch *scratch, struct change *out)
{
	struct stream *stream = stream_new(options, samples->excursion);
	size_t count;
	const struct change *changes =
		stream_append(stream, samples->values, samples->n, scratch, &count);
	if (count > 0)
		memcpy(out, changes, count * sizeof *out);
	stream_free(stream);
	return count;
}

/* The default profile needs two points on each side of a change, and takes no place for a candidate
 * that is likelier than 0.1 by chance. */
static bool edivisive_check(const void *options, struct error *error)
{
	const struct edivisive_options *given = options;
	if (given->profile == EDIVISIVE_OTAVA)
		return true;
	if (given->window < 4)
		return error_set(error, ERROR_USAGE, "window: \"%lld\" is below 4, the minimum",
			(long long)given->window);
	return given->p_value <= 0.1 || error_set(error, ERROR_USAGE,
						"p_value: \"%g\" is above 0.1, the maximum with an "
						"effect (profile otava accepts up to 1)",
						given->p_value);
}

const struct detector edivisive_detector = {
	.plugin = {.name = "edivisive",
		.summary = "windowed e-divisive (Hunter), cut by an exact kernel partition",
		.fields = edivisive_fields,
		.options_size = sizeof(struct edivisive_options),
		.check = edivisive_check},
	.thrift = "choose a smaller window or p_value",
	.detect = edivisive_detect,
	.stream_new = stream_new,
	.stream_append = stream_append,
	.stream_free = stream_free,
	.stream_rest = stream_rest,
	.stream_chunk = stream_chunk,
};
