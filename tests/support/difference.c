/* Central differences, fourth order. SPDX-License-Identifier: MIT */
#include "difference.h"

#include <math.h>

static double loss_at(double *variable, double value, difference_loss *loss, void *self)
{
	*variable = value;
	return loss(self);
}

static double quotient(double *variable, difference_loss *loss, void *self)
{
	const double h = 1.0 / 1024, x = *variable;
	const double near = loss_at(variable, x + h, loss, self) - loss_at(variable, x - h, loss, self);
	const double far = loss_at(variable, x + 2 * h, loss, self) - loss_at(variable, x - 2 * h, loss, self);
	*variable = x;
	return (8 * near - far) / (12 * h);
}

double difference_error(double *variable, const double *gradient, size_t n, difference_loss *loss, void *self)
{
	double worst = 0, largest = 1;
	for (size_t i = 0; i < n; i++) {
		const double error = fabs(quotient(&variable[i], loss, self) - gradient[i]);
		if (!(error <= worst)) /* keeps a NaN */
			worst = error;
		largest = fmax(largest, fabs(gradient[i]));
	}
	return worst / largest;
}
