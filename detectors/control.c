/*
 * docs/design/algorithms.md section 7.
 *
 * A ratio is multiplied by the control's usual level, so that it keeps the series' unit.
 *
 * A load is fitted by a Huber regression on the load and its square, each minus its moving median:
 * it learns from how value and load move together from point to point, and a step of the value
 * alone has no part in it. The load itself, with its lasting steps, is then put into the fitted
 * curve, and what that gives is removed.
 */
#include "detectors/control.h"

#include <math.h>
#include <string.h>

#include "detectors/detector.h"
#include "detectors/scratch.h"
#include "detectors/sort.h"

enum { WINDOW = 25, ROUNDS = 12 };

static const double HUBER = 1.345; /* deviations beyond which a residual has less weight */
static const double LIMIT = 0.95;  /* a fit is used if it leaves less than this of the deviation */

/* The pairs of a fit: value, load and its square, on their scales, with buffers. */
struct load_pairs {
	size_t n;
	double *value, *load, *square;
	double *window, *residuals;
};

/* The median distance of successive points in ms, without distances of 0; 0: there are no others.
 */
static int64_t step_of(struct points points, double *buffer)
{
	size_t count = 0;
	for (size_t i = 1; i < points.n; i++)
		if (points.times[i] > points.times[i - 1])
			buffer[count++] = (double)(points.times[i] - points.times[i - 1]);
	return count > 0 ? (int64_t)sort_median(buffer, count) : 0;
}

/* The value of the existing point of `other` that is nearest to the time, NaN if there is none
 * within the tolerance; `at` is the index of the first point not before it. */
static double nearest(int64_t tolerance, int64_t time, struct points other, size_t at)
{
	size_t before = at, after = at;
	while (before > 0 && time - other.times[before - 1] <= tolerance &&
		isnan(other.values[before - 1]))
		before--;
	while (after < other.n && other.times[after] - time <= tolerance &&
		isnan(other.values[after]))
		after++;
	bool has_before = before > 0 && time - other.times[before - 1] <= tolerance;
	bool has_after = after < other.n && other.times[after] - time <= tolerance;
	if (has_before &&
		(!has_after || time - other.times[before - 1] < other.times[after] - time))
		return other.values[before - 1];
	return has_after ? other.values[after] : (double)NAN;
}

void control_join(int64_t tolerance, struct points series, struct points other, double *out)
{
	if (series.times == other.times) { /* rows of one table, some perhaps of one time */
		memmove(out, other.values, series.n * sizeof *out);
		return;
	}
	for (size_t i = 0, at = 0; i < series.n; i++) {
		while (at < other.n && other.times[at] < series.times[i])
			at++;
		out[i] = nearest(tolerance, series.times[i], other, at);
	}
}

/* Whether all values that have a partner are positive. */
static bool all_positive(const double *values, const double *partners, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (values[i] <= 0 && !isnan(partners[i]))
			return false;
	return true;
}

/* The load on its scale; 0 is the usual load. */
static double scaled_load(const struct control *control, double load)
{
	return control->log_load ? log(load) - control->centre
				 : (load - control->centre) / control->unit;
}

/* The square of a scaled load between the limits, and its tangent outside of them. */
static double square_of(const struct control *control, double load)
{
	double edge = fmin(fmax(load, control->lower), control->upper);
	return edge * edge + 2 * edge * (load - edge);
}

/* Subtracts from each value the centred moving median; at the ends that of the first or last
 * window. `out` is a buffer. */
static void detrend(double *values, size_t n, double *window, double *out)
{
	for (size_t i = 0; i < n; i++) {
		size_t from = i > WINDOW / 2 ? i - WINDOW / 2 : 0;
		if (from + WINDOW > n)
			from = n - WINDOW;
		memcpy(window, values + from, WINDOW * sizeof *window);
		out[i] = values[i] - sort_median(window, WINDOW);
	}
	memcpy(values, out, n * sizeof *values);
}

/* Computes the residuals for the coefficients and returns their robust deviation, around 0. */
static double residuals_of(const struct load_pairs *pairs, double slope, double bend)
{
	for (size_t i = 0; i < pairs->n; i++) {
		pairs->residuals[i] =
			pairs->value[i] - slope * pairs->load[i] - bend * pairs->square[i];
		pairs->window[i] = fabs(pairs->residuals[i]);
	}
	return 1.4826 * sort_median(pairs->window, pairs->n);
}

/* One weighted least-squares fit, with Huber's weights for this deviation of the residuals. */
static void fit_weighted(
	const struct load_pairs *pairs, double deviation, double *slope, double *bend)
{
	double uu = 0, us = 0, ss = 0, uy = 0, sy = 0;
	for (size_t i = 0; i < pairs->n; i++) {
		double far = fabs(pairs->residuals[i]), u = pairs->load[i], s = pairs->square[i];
		double weight = far > HUBER * deviation ? HUBER * deviation / far : 1;
		uu += weight * u * u;
		us += weight * u * s;
		ss += weight * s * s;
		uy += weight * u * pairs->value[i];
		sy += weight * s * pairs->value[i];
	}
	double determinant = uu * ss - us * us;
	bool curved = determinant > 1e-6 * uu * ss;
	*slope = curved ? (uy * ss - sy * us) / determinant : uu > 0 ? uy / uu : 0;
	*bend = curved ? (sy * uu - uy * us) / determinant : 0;
}

/* Sets the scale of the load and the limits of the curve: all but the outermost hundredth of the
 * loads on each side. */
static void set_load(struct control *control, const double *loads, size_t n, double *buffer)
{
	for (size_t i = 0; i < n; i++)
		buffer[i] = control->log_load ? log(loads[i]) : loads[i];
	control->centre = sort_median(buffer, n);
	control->unit = 1;
	if (!control->log_load) {
		for (size_t i = 0; i < n; i++)
			buffer[i] = fabs(loads[i] - control->centre);
		double spread = sort_median(buffer, n);
		control->unit = spread > 0 ? spread : 1;
	}
	for (size_t i = 0; i < n; i++)
		buffer[i] = scaled_load(control, loads[i]);
	sort_sort(buffer, n);
	control->lower = buffer[n / 100];
	control->upper = buffer[n - 1 - n / 100];
}

static void fit_load(struct control *control, const double *values, const double *joined, size_t n,
	bool known, struct scratch *scratch)
{
	struct load_pairs pairs = {.value = scratch_take(scratch, n, sizeof(double)),
		.load = scratch_take(scratch, n, sizeof(double)),
		.square = scratch_take(scratch, n, sizeof(double)),
		.window = scratch_take(scratch, n + WINDOW, sizeof(double)),
		.residuals = scratch_take(scratch, n, sizeof(double))};
	control->log_values = all_positive(values, joined, n);
	control->log_load = all_positive(joined, values, n);
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(values[i]) || !isfinite(joined[i]))
			continue;
		pairs.value[pairs.n] = control->log_values ? log(values[i]) : values[i];
		pairs.load[pairs.n++] = joined[i];
	}
	control->joined = pairs.n;
	if (pairs.n < CONTROL_LEAST)
		return;
	set_load(control, pairs.load, pairs.n, pairs.window);
	for (size_t i = 0; i < pairs.n; i++) {
		pairs.load[i] = scaled_load(control, pairs.load[i]);
		pairs.square[i] = square_of(control, pairs.load[i]);
	}
	detrend(pairs.value, pairs.n, pairs.window, pairs.residuals);
	detrend(pairs.load, pairs.n, pairs.window, pairs.residuals);
	detrend(pairs.square, pairs.n, pairs.window, pairs.residuals);
	double without = residuals_of(&pairs, 0, 0), with = HUGE_VAL;
	for (int round = 0; round < ROUNDS && with != 0; round++) {
		fit_weighted(&pairs, with, &control->slope, &control->bend);
		with = residuals_of(&pairs, control->slope, control->bend);
	}
	control->used = with < (known ? 1 : LIMIT) * without;
	if (control->used)
		control->explained = 1 - (with / without) * (with / without);
}

struct control control_fit(enum control_mode mode, struct points series, struct points other,
	bool known, struct scratch *scratch)
{
	struct control control = {.mode = mode};
	if (mode == CONTROL_NONE)
		return control;
	scratch_reset(scratch);
	size_t most = series.n > other.n ? series.n : other.n;
	double *buffer = scratch_take(scratch, most, sizeof *buffer);
	double *joined = scratch_take(scratch, series.n, sizeof *joined);
	int64_t own = step_of(series, buffer), others = step_of(other, buffer);
	control.tolerance = (own > others ? own : others) / 2;
	control_join(control.tolerance, series, other, joined);
	if (mode != CONTROL_RATIO) {
		fit_load(&control, series.values, joined, series.n, known, scratch);
		return control;
	}
	for (size_t i = 0; i < series.n; i++)
		if (!isnan(series.values[i]) && joined[i] > 0 && isfinite(joined[i]))
			buffer[control.joined++] = joined[i];
	control.centre = control.joined > 0 ? sort_median(buffer, control.joined) : 1;
	control.used = true;
	return control;
}

bool control_takes(
	const struct control *control, const double *values, const double *joined, size_t n)
{
	if (!control->used || control->mode != CONTROL_LOAD)
		return true;
	return (!control->log_values || all_positive(values, joined, n)) &&
	       (!control->log_load || all_positive(joined, values, n));
}

void control_remove(const struct control *control, const double *values, const double *joined,
	size_t n, double *out)
{
	bool load = control->mode == CONTROL_LOAD;
	for (size_t i = 0; i < n; i++) {
		double value = values[i], other = joined[i];
		if (!control->used || isnan(value)) {
			out[i] = value;
		} else if (!isfinite(other) || ((!load || control->log_load) && !(other > 0))) {
			out[i] = (double)NAN;
		} else if (load) {
			double scaled = scaled_load(control, other);
			double part = control->slope * scaled +
				      control->bend * square_of(control, scaled);
			out[i] = control->log_values ? value * exp(-part) : value - part;
		} else {
			out[i] = value / other * control->centre;
		}
	}
}
