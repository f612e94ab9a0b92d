# Tests of `detect` and of the readers and writers it is made of.
hunter_test(number hunter_core)
