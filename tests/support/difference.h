/* Gradients by central differences, to hold hand-written ones against. SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_DIFFERENCE_H
#define TESTS_SUPPORT_DIFFERENCE_H

#include <stddef.h>

/* A number that depends on whatever `self` points to. */
typedef double difference_loss(void *self);

/* How wrong `gradient` is: the largest |difference quotient - gradient| over the n variables, divided by the largest
 * |gradient| or 1, whichever is more. variable is changed and put back. NaN if anything on the way is.
 *
 * The quotient is (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h with h = 2^-10. Its truncation error is h^4 / 30 times the
 * fifth derivative, below 3e-9 while that is below 1e5 (LayerNorm of two numbers with eps 0.05 has about eps^-2.5 = 2e3);
 * its rounding error about 1.5 * 2^-53 * |f| / h, below 2e-10 while |f| is below 1000. */
double difference_error(double *variable, const double *gradient, size_t n, difference_loss *loss, void *self);

/* Twice the sum of both errors. */
#define DIFFERENCE_TOLERANCE 1e-8

#endif
