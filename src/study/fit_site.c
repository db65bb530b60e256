/* What a described cluster says of a row's devices and links. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "mural/device.h"
#include "study/fit_inside.h"

/* As described, or as the table of known devices says; 0 if neither tells. */
static double seconds_of(const mural_cluster_device *device, double flops_per_image)
{
	double seconds = mural_cluster_seconds(device, flops_per_image);
	const mural_device_profile *known = seconds > 0 ? NULL : mural_device_profile_find(device->name);
	return known ? flops_per_image / (known->fp32_tflops * 1e12 * MURAL_DEVICE_REACHED) : seconds;
}

/* Of the first n ranks; first: of rank 0. */
static mural_status find_devices(const mu_fit_settings *settings, const mural_place *places, uint32_t n, double *first,
                                 double *slowest, mural_error *err)
{
	*slowest = 0;
	for (uint32_t r = 0; r < n; r++) {
		const mural_cluster_device *device = &settings->cluster->devices[places[r].device];
		double seconds = seconds_of(device, settings->flops_per_image);
		if (!(seconds > 0))
			return mu_fail(err, MURAL_USAGE, NULL,
			               "the cluster's device \"%s\" has neither seconds_per_image nor tflops, and is "
			               "none that is known by name",
			               device->name);
		if (r == 0)
			*first = seconds;
		*slowest = fmax(*slowest, seconds);
	}
	return MURAL_OK;
}

/* Ranks on one node use the link inside it; a ring over nodes waits for the slowest uplink. */
static double slowest_link(const mural_cluster *cluster, const mural_place *places, uint32_t n)
{
	double slowest = 0;
	bool several = false;
	for (uint32_t r = 1; r < n; r++)
		several |= places[r].node != places[0].node;
	for (uint32_t r = 0; r < n; r++) {
		const mural_cluster_node *node = &cluster->nodes[places[r].entry];
		int32_t link = several ? node->uplink : node->inside;
		if (link >= 0)
			slowest = fmax(slowest, 1e9 / cluster->links[link].bytes_per_second);
	}
	return slowest;
}

mural_status mu_fit_site_of(const mu_fit_settings *settings, const mu_epoch_row *row, mu_fit_site *site,
                            mural_error *err)
{
	*site = (mu_fit_site){.slowness = 1, .seconds_per_gigabyte = 1};
	if (!settings->cluster || strcasecmp(settings->cluster->name, row->cluster) != 0)
		return MURAL_OK;
	mural_place *places = calloc(row->gpus, sizeof *places);
	if (!places)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %u places", row->gpus);
	double first = 1, slowest = 1;
	mural_status status = mural_cluster_place(settings->cluster, settings->placement, (int)row->gpus, places, err);
	if (status == MURAL_OK)
		status = find_devices(settings, places, row->gpus, &first, &slowest, err);
	if (status == MURAL_OK)
		*site = (mu_fit_site){.described = true,
		                      .slowness = slowest / first,
		                      .seconds_per_gigabyte = slowest_link(settings->cluster, places, row->gpus)};
	free(places);
	return status;
}
