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

#endif
