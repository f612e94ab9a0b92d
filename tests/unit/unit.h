/*
 * cmocka with the headers it needs before it; what a unit test includes first.
 */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* behind them */

/* A test that is skipped says why. */
#undef skip
#define skip(why) (print_message("%s\n", why), _skip(__FILE__, __LINE__))

#endif
