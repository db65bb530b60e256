/* The pace of an emulated device. SPDX-License-Identifier: MIT */
#include "engine/pace.h"

#include <stdlib.h>

#include "base/clock.h"

static const double TOLERANCE = 1.05; /* what emulation promises: 5 % */

/* until[]: sums of the units' shares in the order in which they are worked on. */
static void divide(mu_pace *pace, const mu_vit *vit)
{
	double all = 3 * mu_vit_forward_flops(vit), sum = 0;
	for (size_t u = 0; u < pace->n_units; u++)
		pace->until[u] = (sum += mu_vit_unit_flops(vit, u)) / all;
	for (size_t u = pace->n_units; u-- > 0;)
		pace->until[pace->n_units + u] = (sum += 2 * mu_vit_unit_flops(vit, u)) / all;
}

mural_status mu_pace_init(mu_pace *pace, const mural_cluster_device *device, const mu_vit *vit, mural_error *err)
{
	*pace = (mu_pace){0};
	if (!device || mural_cluster_seconds(device, 1) == 0)
		return MURAL_OK;
	pace->n_units = vit->n_units;
	pace->until = calloc(2 * vit->n_units, sizeof *pace->until);
	if (!pace->until)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to emulate a device");
	pace->on = true;
	snprintf(pace->name, sizeof pace->name, "%s", device->name);
	pace->seconds_per_image = mural_cluster_seconds(device, 3 * mu_vit_forward_flops(vit));
	pace->seconds_per_batch = device->seconds_per_batch;
	divide(pace, vit);
	return MURAL_OK;
}

void mu_pace_release(mu_pace *pace)
{
	if (!pace)
		return;
	free(pace->until);
	*pace = (mu_pace){0};
}

void mu_pace_begin(mu_pace *pace, size_t images)
{
	if (!pace->on)
		return;
	pace->begun = mu_now();
	pace->window = images > 0 ? pace->seconds_per_batch + (double)images * pace->seconds_per_image : 0;
	pace->due = 0;
}

/* Waits until this share of the window has passed. */
static void wait_until(mu_pace *pace, double share)
{
	pace->due = share;
	double left = pace->begun + share * pace->window - mu_now();
	if (left > 0)
		mu_sleep(left);
}

void mu_pace_forward(mu_pace *pace, size_t unit)
{
	if (pace->on)
		wait_until(pace, pace->until[unit]);
}

void mu_pace_backward(mu_pace *pace, size_t unit)
{
	if (pace->on)
		wait_until(pace, pace->until[pace->n_units + unit]);
}

void mu_pace_end(mu_pace *pace)
{
	if (!pace->on)
		return;
	pace->step_window += pace->due * pace->window;
	pace->step_real += mu_now() - pace->begun;
}

mural_status mu_pace_end_step(mu_pace *pace, mural_error *err)
{
	if (!pace->on)
		return MURAL_OK;
	double window = pace->step_window, real = pace->step_real;
	bool late = window > 0 && real > window * TOLERANCE; /* a rank without images keeps up with anything */
	pace->step_window = pace->step_real = 0;
	pace->facts.steps++;
	pace->facts.seconds += window;
	pace->facts.late_steps += late;
	pace->facts.late_seconds += late ? real - window : 0;
	pace->late_in_a_row = late && pace->facts.steps > MU_PACE_LATE ? pace->late_in_a_row + 1 : 0;
	if (pace->late_in_a_row < MU_PACE_LATE)
		return MURAL_OK;
	return mu_fail(
	        err, MURAL_FAILED, NULL,
	        "this machine cannot be as fast as the emulated %s: a step's images take it %.4f s, and the "
	        "described device %.4f s; use a smaller model, fewer ranks, or a slower device in the cluster file",
	        pace->name, real, window);
}
