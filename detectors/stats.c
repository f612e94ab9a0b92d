/*
 * Sums run in four lanes that are added at the end: that is fast without reassociation by the
 * compiler, and the same everywhere. Student's p is the regularised incomplete beta function
 * I_x(df/2, 1/2) at x = df/(df + t^2), by the continued fraction of Abramowitz and Stegun 26.5.8,
 * whose factor is held as a logarithm until the end, which keeps full relative precision far into
 * the tail.
 */
#include "detectors/stats.h"

#include <math.h>

/* The sum of the deviations from a value, or of their squares. */
static inline __attribute__((always_inline)) double sum_around(
	const double *values, size_t n, double from, bool squared)
{
	double lanes[4] = {0};
	size_t i = 0;
	for (; i + 4 <= n; i += 4)
		for (size_t lane = 0; lane < 4; lane++) {
			double apart = values[i + lane] - from;
			lanes[lane] += squared ? apart * apart : apart;
		}
	for (; i < n; i++)
		lanes[0] += squared ? (values[i] - from) * (values[i] - from) : values[i] - from;
	return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

struct moments moments_of(const double *values, size_t n)
{
	if (n == 0)
		return (struct moments){0};
	double mean = values[0] + sum_around(values, n, values[0], false) / (double)n;
	return (struct moments){.n = n, .mean = mean, .squares = sum_around(values, n, mean, true)};
}

struct moments moments_join(struct moments a, struct moments b)
{
	if (a.n == 0)
		return b;
	if (b.n == 0)
		return a;
	double delta = b.mean - a.mean;
	double share = (double)b.n / (double)(a.n + b.n);
	return (struct moments){
		.n = a.n + b.n,
		.mean = a.mean + delta * share,
		.squares = a.squares + b.squares + delta * delta * ((double)a.n * share),
	};
}

double moments_variance(struct moments sample, size_t ddof)
{
	return sample.n > ddof ? sample.squares / (double)(sample.n - ddof) : 0;
}

double moments_stddev(struct moments sample, size_t ddof)
{
	return sqrt(moments_variance(sample, ddof));
}

double moments_moderated(struct moments side, double pooled)
{
	return (side.squares + MODERATION * pooled) / ((double)side.n + MODERATION - 1);
}

double correlation_corrected(double r, double n)
{
	r += (2 + 3 * fmax(r, 0)) / n;
	r -= 0.25 / sqrt(n);
	return fmin(fmax(r, 0), 0.9);
}

double correlation_inflation(double r, size_t n)
{
	if (r == 0)
		return 1;
	double count = (double)n, rest = 1 - r;
	return fmax(1, (1 + r) / rest - 2 * r * (1 - pow(r, count)) / (count * rest * rest));
}

double moments_lagged(const double *values, struct moments sample)
{
	double sum = 0;
	for (size_t i = 1; i < sample.n; i++)
		sum += (values[i - 1] - sample.mean) * (values[i] - sample.mean);
	return sum;
}

/*
 * Gamma(a + 1/2) / Gamma(a): the asymptotic series where a >= 20, carried down from there by the
 * recurrence.
 */
static double gamma_ratio(double a)
{
	double factor = 1;
	for (; a < 20; a++)
		factor *= a / (a + 0.5);
	double u = 1 / (a * a);
	double series =
		(-1.0 / 8 + u * (1.0 / 192 +
					u * (-1.0 / 640 + u * (17.0 / 14336 - u * 31.0 / 18432)))) /
		a;
	return factor * sqrt(a) * exp(series);
}

/* Numerator and denominator of a continued fraction cut off after its newest and its second newest
 * term. */
struct fraction {
	double top, last_top, bottom, last_bottom;
};

static inline void add_term(struct fraction *fraction, double term)
{
	double top = fraction->top + term * fraction->last_top;
	double bottom = fraction->bottom + term * fraction->last_bottom;
	fraction->last_top = fraction->top;
	fraction->last_bottom = fraction->bottom;
	fraction->top = top;
	fraction->bottom = bottom;
}

/*
 * 1 / (1 + d1 / (1 + d2 / (1 + ...))), the continued fraction of I_x(a, b), by forward recurrence:
 * without divisions in the chain. Numerator and denominator shrink or grow slowly and are brought
 * back before they leave the range.
 */
static double beta_fraction(double a, double b, double x)
{
	struct fraction f = {.top = 1, .last_top = 1, .bottom = 1, .last_bottom = 0};
	add_term(&f, -(a + b) * x / (a + 1));
	for (double m = 1; m < 1e7; m++) {
		double middle = a + 2 * m;
		add_term(&f, m * (b - m) * x / ((middle - 1) * middle));
		add_term(&f, -(a + m) * (a + b + m) * x / (middle * (middle + 1)));
		double cross = f.last_top * f.bottom;
		if (fabs(f.top * f.last_bottom - cross) <= 1.2e-16 * fabs(cross))
			break;
		double size = fabs(f.top) + fabs(f.bottom);
		if (size < 1e-100 || size > 1e100) {
			f.top /= size;
			f.last_top /= size;
			f.bottom /= size;
			f.last_bottom /= size;
		}
	}
	return f.bottom / f.top;
}

/*
 * The tail where df is so large that the fraction converges slowly: the integral of the density
 * from t on, by the trapezoidal rule after Takahasi and Mori's substitution s = w exp(v - exp(-v)),
 * which makes it double exponential.
 */
static double integrated_tail(double t, double df)
{
	const double step = 1.0 / 16;
	double width = 1 / (1 + t), sum = 0;
	for (int i = -64; i <= 80; i++) {
		double v = step * i, e = exp(-v), s = width * exp(v - e);
		double fall = 0.5 * (df + 1) * log1p(s * (2 * t + s) / (df + t * t));
		sum += exp(-fall) * s * (1 + e);
	}
	double density =
		gamma_ratio(0.5 * df) / sqrt(df * M_PI) * exp(-0.5 * (df + 1) * log1p(t * t / df));
	return 2 * density * sum * step;
}

double student_two_sided(double t, double df)
{
	const double large = 5000;
	if (isnan(t) || isnan(df))
		return nan("");
	t = fabs(t);
	if (isinf(t))
		return 0;
	double u = t / sqrt(df), a = 0.5 * df;
	double log_tail = u > 1e8 ? 2 * log(u) : log1p(u * u); /* -ln x */
	double rest = u > 1e8 ? 1 : u * u / (1 + u * u);       /* 1 - x */
	double x = u > 1e8 ? 1 / u / u : 1 / (1 + u * u);
	/* x^a (1 - x)^(1/2) / B(a, 1/2); B(a, 1/2) = sqrt(pi) / gamma_ratio(a) */
	double front = exp(-a * log_tail) * sqrt(rest) * gamma_ratio(a) / sqrt(M_PI);
	if (x < (a + 1) / (a + 2.5) && df > large && t < 1000)
		return integrated_tail(t, df);
	if (x < (a + 1) / (a + 2.5))
		return front * beta_fraction(a, 0.5, x) / a;
	return 1 - front * beta_fraction(0.5, a, rest) / 0.5;
}

/* Two-sided quantiles of the normal distribution. */
static const struct {
	double p, t;
} normal_quantiles[] = {{1e-1, 1.6448536}, {1e-2, 2.5758293}, {1e-3, 3.2905267}, {1e-4, 3.8905919},
	{1e-5, 4.4171734}, {1e-6, 4.8916385}};

/* A t clearly beyond or below a known quantile needs no integral. */
bool student_can_be(double t, double p)
{
	const size_t count = sizeof normal_quantiles / sizeof *normal_quantiles;
	double size = fabs(t);
	for (size_t k = 0; k < count; k++) {
		if (p <= normal_quantiles[k].p && size < normal_quantiles[k].t * (1 - 1e-6))
			return false;
		if (p >= normal_quantiles[k].p && size > normal_quantiles[k].t * (1 + 1e-6))
			return true;
	}
	return erfc(size * M_SQRT1_2) <= p * (1 + 1e-9);
}

bool student_at_most(double t, double df, double p)
{
	return student_can_be(t, p) && student_two_sided(t, df) <= p;
}

/* t and df of the pooled test, without p. */
static struct ttest pooled_t(struct moments a, struct moments b)
{
	double n1 = (double)a.n, n2 = (double)b.n, df = n1 + n2 - 2;
	double variance =
		((n1 - 1) * moments_variance(a, 0) + (n2 - 1) * moments_variance(b, 0)) / df;
	double t = (a.mean - b.mean) / sqrt(variance * (1 / n1 + 1 / n2));
	return (struct ttest){.t = t, .df = df};
}

bool ttest_pooled_at_most(struct moments a, struct moments b, double p)
{
	struct ttest test = pooled_t(a, b);
	return a.n + b.n <= 2 ? p >= 1 : student_at_most(test.t, test.df, p);
}

struct ttest ttest_pooled(struct moments a, struct moments b)
{
	if (a.n + b.n <= 2)
		return (struct ttest){.p = 1};
	struct ttest test = pooled_t(a, b);
	test.p = student_two_sided(test.t, test.df);
	return test;
}

struct ttest ttest_welch(struct moments a, struct moments b)
{
	if (a.n < 2 || b.n < 2)
		return (struct ttest){.p = 1};
	double e1 = moments_variance(a, 1) / (double)a.n, e2 = moments_variance(b, 1) / (double)b.n;
	double delta = a.mean - b.mean, error = e1 + e2;
	if (error == 0)
		return (struct ttest){.t = delta == 0 ? nan("") : copysign(HUGE_VAL, delta),
			.df = 1,
			.p = delta == 0 ? 1 : 0};
	double t = delta / sqrt(error), w1 = e1 / error, w2 = e2 / error;
	double df = 1 / (w1 * w1 / (double)(a.n - 1) + w2 * w2 / (double)(b.n - 1));
	return (struct ttest){.t = t, .df = df, .p = student_two_sided(t, df)};
}

double ttest_any(struct moments a, struct moments b)
{
	double n1 = (double)a.n, n2 = (double)b.n, df = n1 + n2 - 2, delta = a.mean - b.mean;
	if (a.n >= 2 && b.n >= 2)
		return ttest_welch(a, b).p;
	if (a.n == 0 || b.n == 0 || df < 1 || delta == 0)
		return 1;
	return student_two_sided(
		delta / sqrt((a.squares + b.squares) / df * (1 / n1 + 1 / n2)), df);
}
