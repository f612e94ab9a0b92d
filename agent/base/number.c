/*
 * Reading: up to 19 digits fit a 64-bit integer, so the decimal is digits * 10^k with both
 * factors exact. With at most 53 bits and |k| <= 22 one double operation rounds once and is
 * correct (Clinger 1990). With more bits and |k| <= 19 a 128-bit product, or a quotient and
 * whether there is a remainder, holds all that rounding to nearest even needs. Everything else
 * goes to strtod.
 *
 * Writing is the reverse: the 53 bits times 10^k, shifted and rounded once, are 17 digits; 15 or
 * 16 of them are tried first, by reading them back.
 */
#include "agent/base/number.h"

#include <endian.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/base/arena.h"

_Static_assert(FLT_EVAL_METHOD == 0 && DBL_MANT_DIG == 53, "a product of doubles must round once");

typedef unsigned __int128 wide;

enum {
	MAX_DIGITS = 19,      /* fit 64 bits, whatever the digits */
	MAX_POWER = 19,       /* 10^19 < 2^64 */
	MAX_EXACT_POWER = 22, /* 10^22 is a double */
};

/* Beyond any double, however many digits precede or follow the point. */
static const int64_t exponent_limit = 1000000000000000;

static const uint64_t powers[MAX_POWER + 1] = {
	1u,
	10u,
	100u,
	1000u,
	10000u,
	100000u,
	1000000u,
	10000000u,
	100000000u,
	1000000000u,
	10000000000u,
	100000000000u,
	1000000000000u,
	10000000000000u,
	100000000000000u,
	1000000000000000u,
	10000000000000000u,
	100000000000000000u,
	1000000000000000000u,
	10000000000000000000u,
};

static const double exact_powers[MAX_EXACT_POWER + 1] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7,
	1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* `high` * 2^`power`, plus a bit more if `sticky`, rounded to nearest even. Normal doubles only. */
static double round_bits(uint64_t high, bool sticky, int power)
{
	int zeros = __builtin_clzll(high);
	uint64_t bits = high << zeros;
	uint64_t rest = bits & 0x7FF;
	uint64_t mantissa = bits >> 11;
	if (rest > 0x400 || (rest == 0x400 && (sticky || (mantissa & 1))))
		mantissa++;
	/* A mantissa that was rounded up to 2^53 carries into the exponent, as it should. */
	uint64_t exponent = (uint64_t)(1023 + 52 + 11 - zeros + power);
	double value;
	bits = (exponent << 52) + (mantissa - ((uint64_t)1 << 52));
	memcpy(&value, &bits, sizeof value);
	return value;
}

static double multiply(uint64_t digits, uint64_t power)
{
	wide product = (wide)digits * power;
	uint64_t high = (uint64_t)(product >> 64);
	if (high == 0)
		return (double)(uint64_t)product;
	int zeros = __builtin_clzll(high);
	product <<= zeros;
	return round_bits((uint64_t)(product >> 64), (uint64_t)product != 0, 64 - zeros);
}

/* The quotient of the shifted operands has 62 to 64 bits, so there are always the 53 and the one
 * to round by. */
static double divide(uint64_t digits, uint64_t power)
{
	int up = __builtin_clzll(digits);
	int under = __builtin_clzll(power);
	wide dividend = (wide)(digits << up) << 63;
	uint64_t divisor = power << under;
	uint64_t quotient = (uint64_t)(dividend / divisor);
	uint64_t rest = (uint64_t)dividend - quotient * divisor;
	return round_bits(quotient, rest != 0, under - up - 63);
}

/* Computes digits * 10^exponent exactly rounded; false if the fast paths cannot. */
static bool compose(uint64_t digits, int64_t exponent, double *out)
{
	bool small = digits >> 53 == 0;
	if (digits == 0)
		*out = 0;
	else if (small && exponent >= 0 && exponent <= MAX_EXACT_POWER)
		*out = (double)digits * exact_powers[exponent];
	else if (small && exponent < 0 && exponent >= -MAX_EXACT_POWER)
		*out = (double)digits / exact_powers[-exponent];
	else if (exponent >= 0 && exponent <= MAX_POWER)
		*out = multiply(digits, powers[exponent]);
	else if (exponent < 0 && exponent >= -MAX_POWER)
		*out = divide(digits, powers[-exponent]);
	else
		return false;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A parsed decimal. */
struct decimal {
	const char *whole,
		*fraction; /* where their digits start; fraction is NULL without a point */
	size_t whole_count, fraction_count;
	uint64_t digits;  /* of both together, modulo 2^64 */
	int64_t exponent; /* as written, clamped to exponent_limit */
};

/* The value of eight digits, within a register: sums of pairs, then fours, then eight. */
static bool eight_digits(const char *at, uint64_t *value)
{
	uint64_t word;
	memcpy(&word, at, sizeof word);
	word = le64toh(word);
	uint64_t high = word & 0xF0F0F0F0F0F0F0F0;
	uint64_t carried = (word + 0x0606060606060606) & 0xF0F0F0F0F0F0F0F0;
	if ((high | carried >> 4) != 0x3333333333333333)
		return false;
	word = (word & 0x0F0F0F0F0F0F0F0F) * (10 * 256 + 1) >> 8;
	word = (word & 0x00FF00FF00FF00FF) * (100 * 65536 + 1) >> 16;
	*value = (word & 0x0000FFFF0000FFFF) * (10000 * ((uint64_t)1 << 32) + 1) >> 32;
	return true;
}

static const char *scan_digits(const char *at, const char *end, uint64_t *digits)
{
	uint64_t sum = *digits, eight;
	for (; end - at >= 8 && eight_digits(at, &eight); at += 8)
		sum = sum * 100000000 + eight;
	while (at < end && is_digit(*at))
		sum = sum * 10 + (uint64_t)(*at++ - '0');
	*digits = sum;
	return at;
}

/* "e-12" at `at`; its end, or NULL if no digit follows. */
static const char *scan_exponent(const char *at, const char *end, int64_t *out)
{
	bool negative = false;
	int64_t exponent = 0;
	at++;
	if (at < end && (*at == '+' || *at == '-'))
		negative = *at++ == '-';
	if (at == end || !is_digit(*at))
		return NULL;
	for (; at < end && is_digit(*at); at++)
		if (exponent < exponent_limit)
			exponent = exponent * 10 + (*at - '0');
	*out = negative ? -exponent : exponent;
	return at;
}

/* Parses the decimal without sign at `at`, with digits on at least one side of the point;
 * returns its end, or NULL. */
static const char *scan_decimal(const char *at, const char *end, struct decimal *out)
{
	*out = (struct decimal){.whole = at};
	at = scan_digits(at, end, &out->digits);
	out->whole_count = (size_t)(at - out->whole);
	if (at < end && *at == '.') {
		out->fraction = ++at;
		at = scan_digits(at, end, &out->digits);
		out->fraction_count = (size_t)(at - out->fraction);
	}
	if (out->whole_count + out->fraction_count == 0)
		return NULL;
	if (at < end && (*at == 'e' || *at == 'E'))
		return scan_exponent(at, end, &out->exponent);
	return at;
}

/* Whether there are at most MAX_DIGITS digits after the leading zeros. */
static bool digits_fit(const struct decimal *decimal)
{
	size_t count = decimal->whole_count + decimal->fraction_count;
	if (count <= MAX_DIGITS)
		return true;
	size_t zeros = 0;
	while (zeros < decimal->whole_count && decimal->whole[zeros] == '0')
		zeros++;
	if (zeros == decimal->whole_count) {
		size_t more = 0;
		while (more < decimal->fraction_count && decimal->fraction[more] == '0')
			more++;
		zeros += more;
	}
	return count - zeros <= MAX_DIGITS;
}

/* By strtod, from a copy that ends where the decimal does. */
static double compose_slowly(const struct decimal *decimal, const char *end)
{
	size_t length = (size_t)(end - decimal->whole);
	char *copy = memcpy(memory_new(length + 1, 1), decimal->whole, length);
	double value = strtod(copy, NULL);
	free(copy);
	return value;
}

static double decimal_value(const struct decimal *decimal, const char *end)
{
	double value;
	int64_t exponent = decimal->exponent - (int64_t)decimal->fraction_count;
	if (digits_fit(decimal) && compose(decimal->digits, exponent, &value))
		return value;
	return compose_slowly(decimal, end);
}

const char *number_scan(const char *text, const char *end, double *out)
{
	struct decimal decimal;
	bool negative = text < end && *text == '-';
	const char *after = scan_decimal(text + negative, end, &decimal);
	if (!after || decimal.whole_count == 0 ||
		(decimal.whole_count > 1 && *decimal.whole == '0') ||
		(decimal.fraction && decimal.fraction_count == 0))
		return NULL;
	double value = decimal_value(&decimal, after);
	*out = negative ? -value : value;
	return after;
}

static void trim(const char **text, size_t *length)
{
	while (*length > 0 && (**text == ' ' || **text == '\t')) {
		++*text;
		--*length;
	}
	while (*length > 0 && ((*text)[*length - 1] == ' ' || (*text)[*length - 1] == '\t'))
		--*length;
}

static bool is_word(const char *text, size_t length, const char *word)
{
	return length == strlen(word) && strncasecmp(text, word, length) == 0;
}

bool number_parse(const char *text, size_t length, double *out)
{
	struct decimal decimal;
	trim(&text, &length);
	bool negative = length > 0 && *text == '-';
	if (length > 0 && (*text == '-' || *text == '+')) {
		text++;
		length--;
	}
	double value = HUGE_VAL;
	if (!is_word(text, length, "inf") && !is_word(text, length, "infinity")) {
		if (scan_decimal(text, text + length, &decimal) != text + length)
			return false;
		value = decimal_value(&decimal, text + length);
	}
	*out = negative ? -value : value;
	return true;
}

bool number_missing(const char *text, size_t length)
{
	trim(&text, &length);
	return length == 0 || is_word(text, length, "nan") || is_word(text, length, "-nan") ||
	       is_word(text, length, "null"); /* -nan: printf's output for 0.0/0.0 on x86 */
}

/* The first 17 decimal digits of a value; the remainder is `rest` of a power of two. */
struct scaled {
	uint64_t digits;
	wide rest, half;
	int point; /* the power of ten of the first digit */
};

static struct scaled scale(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	int binary = (int)(bits >> 52) - 1023;
	uint64_t mantissa = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
	int shift = 52 - binary;
	/* log10(2) is a little more than 1233/4096: this is the power of ten or one less. */
	struct scaled scaled = {.point = (binary * 1233 + 4 * 4096) / 4096 - 4};
	wide product = (wide)mantissa * powers[16 - scaled.point];
	if (product >> shift >= powers[17])
		product = (wide)mantissa * powers[16 - ++scaled.point];
	scaled.digits = (uint64_t)(product >> shift);
	scaled.rest = product & (((wide)1 << shift) - 1);
	scaled.half = ((wide)1 << shift) >> 1;
	return scaled;
}

/* The nearest multiple of `unit` (1, 10, 100), divided by it; ties to even. */
static uint64_t round_digits(const struct scaled *scaled, uint64_t unit)
{
	uint64_t digits = scaled->digits / unit;
	uint64_t tail = scaled->digits % unit;
	bool odd = digits & 1;
	if (unit > 1)
		return digits +
		       (tail > unit / 2 || (tail == unit / 2 && (scaled->rest > 0 || odd)));
	wide rest = scaled->rest;
	return digits +
	       (scaled->half > 0 && (rest > scaled->half || (rest == scaled->half && odd)));
}

/* The shortest of 15, 16, 17 digits that reads back as `value`, without trailing zeros. */
static int choose_digits(double value, uint64_t *digits, int *point)
{
	struct scaled scaled = scale(value);
	uint64_t unit = 100;
	int count = 15;
	*point = scaled.point;
	*digits = round_digits(&scaled, unit);
	for (double again;
		count < 17 && !(compose(*digits, *point + 1 - count, &again) && again == value);
		count++)
		*digits = round_digits(&scaled, unit /= 10);
	if (*digits == powers[count]) {
		*digits = 1;
		++*point;
		return 1;
	}
	for (; count > 1 && *digits % 10 == 0; count--)
		*digits /= 10;
	return count;
}

/* Writes a value to which scale() applies as JSON without an exponent. Returns the length. */
static size_t write_scaled(double value, char *out)
{
	uint64_t digits;
	int point;
	int count = choose_digits(value, &digits, &point);
	int length = 0;
	for (int place = point < 0 ? 0 : point; place > point - count || place >= 0; place--) {
		int index = point - place;
		if (place == -1)
			out[length++] = '.';
		out[length++] = index < 0 || index >= count
					? '0'
					: (char)('0' + digits / powers[count - 1 - index] % 10);
	}
	out[length] = '\0';
	return (size_t)length;
}

size_t number_format(double value, char out[NUMBER_TEXT])
{
	int length = 0;
	/* From 2^-9 to 2^53 the 53 bits times 10^19 or less fit 128 bits: scale() applies. */
	if (fabs(value) >= 0x1p-9 && fabs(value) < 0x1p53) {
		out[0] = '-';
		return write_scaled(fabs(value), out + (value < 0)) + (value < 0);
	}
	if (isnan(value)) {
		memcpy(out, "nan", 4);
		return 3;
	}
	for (int digits = 15; digits <= 17; digits++) {
		length = snprintf(out, NUMBER_TEXT, "%.*g", digits, value);
		if (strtod(out, NULL) == value)
			break;
	}
	return (size_t)length;
}

size_t number_display(double value, char out[NUMBER_TEXT])
{
	char digits[NUMBER_TEXT];
	size_t length = 0;

	if (!(fabs(value) >= 999.95 && fabs(value) < 1e15))
		return (size_t)snprintf(out, NUMBER_TEXT, "%.4g", value);
	snprintf(digits, sizeof digits, "%.3e", value);
	snprintf(digits, sizeof digits, "%.0f", strtod(digits, NULL));
	for (size_t i = 0, count = strlen(digits); i < count; i++) {
		if (i > 0 && digits[i - 1] != '-' && (count - i) % 3 == 0)
			out[length++] = ',';
		out[length++] = digits[i];
	}
	out[length] = '\0';
	return length;
}
