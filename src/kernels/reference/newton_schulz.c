/* The Newton-Schulz polynomial of a matrix, as the paper writes it: on X with its short side first, so a tall matrix is
 * turned on the way in and out (the result is the same). Everything is double in scratch and rounded once, at the end.
 * SPDX-License-Identifier: MIT */
#include "kernels/reference/reference.h"

struct matrices {
	size_t side, length; /* short and long side */
	double *x, *next; /* [side, length] */
	double *gram, *polynomial; /* [side, side] */
};

static struct matrices matrices_of(const mu_newton_schulz *op)
{
	struct matrices m = {.side = op->rows, .length = op->cols, .x = op->scratch};
	if (op->rows > op->cols)
		m.side = op->cols, m.length = op->rows;
	if (m.x) {
		m.next = m.x + m.side * m.length;
		m.gram = m.next + m.side * m.length;
		m.polynomial = m.gram + m.side * m.side;
	}
	return m;
}

size_t mu_reference_newton_schulz_workspace(mu_ops_context *context, const mu_newton_schulz *op)
{
	(void)context;
	const struct matrices m = matrices_of(op);
	return (2 * m.side * m.length + 2 * m.side * m.side) * sizeof(double);
}

/* Element (i, j) of X in op->x. */
static size_t place(const mu_newton_schulz *op, size_t i, size_t j)
{
	return op->rows > op->cols ? j * op->cols + i : i * op->cols + j;
}

static void load_normalised(const mu_newton_schulz *op, const struct matrices *m)
{
	double squares = 0;
	for (size_t i = 0; i < m->side; i++)
		for (size_t j = 0; j < m->length; j++) {
			const double x = mu_element_load(mu_stat_type(op->type), op->x, place(op, i, j));
			m->x[i * m->length + j] = x;
			squares += x * x;
		}
	for (size_t i = 0; i < m->side * m->length; i++)
		m->x[i] /= sqrt(squares) + 1e-7;
}

/* polynomial = b gram + c gram^2 with gram = X X^T */
static void make_polynomial(const mu_newton_schulz *op, const struct matrices *m)
{
	const size_t n = m->side, length = m->length;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			double sum = 0;
			for (size_t k = 0; k < length; k++)
				sum += m->x[i * length + k] * m->x[j * length + k];
			m->gram[i * n + j] = sum;
		}
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			double sum = 0;
			for (size_t k = 0; k < n; k++)
				sum += m->gram[i * n + k] * m->gram[k * n + j];
			m->polynomial[i * n + j] = op->b * m->gram[i * n + j] + op->c * sum;
		}
}

/* X = a X + polynomial X */
static void advance(const mu_newton_schulz *op, struct matrices *m)
{
	for (size_t i = 0; i < m->side; i++)
		for (size_t j = 0; j < m->length; j++) {
			double sum = 0;
			for (size_t k = 0; k < m->side; k++)
				sum += m->polynomial[i * m->side + k] * m->x[k * m->length + j];
			m->next[i * m->length + j] = op->a * m->x[i * m->length + j] + sum;
		}
	double *old = m->x;
	m->x = m->next;
	m->next = old;
}

mural_status mu_reference_newton_schulz(mu_ops_context *context, const mu_newton_schulz *op, mural_error *err)
{
	(void)context;
	(void)err;
	struct matrices m = matrices_of(op);
	load_normalised(op, &m);
	for (size_t step = 0; step < op->steps; step++) {
		make_polynomial(op, &m);
		advance(op, &m);
	}
	for (size_t i = 0; i < m.side; i++)
		for (size_t j = 0; j < m.length; j++)
			mu_element_store(mu_stat_type(op->type), op->x, place(op, i, j), m.x[i * m.length + j]);
	return MURAL_OK;
}
