/* SHA-256 against the examples of FIPS 180-4 and NIST's vectors, HMAC against RFC 4231. */
#include "unit.h"
#include <stdlib.h>
#include <string.h>

#include "agent/base/sha256.h"

/* The sum of the text, repeated. */
static void assert_sum(const char *text, size_t times, const char *expected)
{
	size_t length = strlen(text) * times;
	char *whole = malloc(length + 1), hex[2 * SHA256_BYTES + 1];
	unsigned char out[SHA256_BYTES];

	for (size_t i = 0; i < times; i++)
		memcpy(whole + i * strlen(text), text, strlen(text));
	sha256(whole, length, out);
	sha256_hex(out, hex);
	assert_string_equal(hex, expected);
	free(whole);
}

static void test_sums(void **state)
{
	static const struct {
		const char *text;
		size_t times;
		const char *sum;
	} examples[] = {
		{"", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
			"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
		{"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
		 "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
			1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
		{"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
		assert_sum(examples[i].text, examples[i].times, examples[i].sum);
}

static void assert_code(
	const void *key, size_t key_length, const void *data, size_t length, const char *expected)
{
	char hex[2 * SHA256_BYTES + 1];
	unsigned char out[SHA256_BYTES];

	sha256_hmac(key, key_length, data, length, out);
	sha256_hex(out, hex);
	assert_string_equal(hex, expected);
}

static void test_codes(void **state)
{
	static const char big[] = "Test Using Larger Than Block-Size Key - Hash Key First";
	unsigned char key[131], data[50];

	(void)state;
	memset(key, 0x0b, 20);
	assert_code(key, 20, "Hi There", 8,
		"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	assert_code("Jefe", 4, "what do ya want for nothing?", 28,
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof key);
	memset(data, 0xdd, sizeof data);
	assert_code(key, 20, data, sizeof data,
		"773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	assert_code(key, sizeof key, big, strlen(big),
		"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
