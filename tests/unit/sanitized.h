/*
 * SANITIZED is defined where a sanitizer has the memory of this program in its hands, so that
 * measuring it says nothing. gcc and clang tell it in their own ways.
 */
#ifndef TESTS_SANITIZED_H
#define TESTS_SANITIZED_H

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

/* How many random cases a test tries: a sanitizer makes each of them ten times as slow, and looks
 * at the same code in a twelfth of them. */
#ifdef SANITIZED
#define CASES(count) ((count) / 12)
#else
#define CASES(count) (count)
#endif

#endif
