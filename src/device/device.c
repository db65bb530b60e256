/* Opening a device with its main queue. SPDX-License-Identifier: MIT */
#include "device/device.h"

mural_status mu_device_open(mu_device *device, const mu_device_table *table, int index, mural_error *err)
{
	*device = (mu_device){.table = table};
	MU_TRY(table->open(index, &device->handle, err));
	mural_status status = table->queue_create(device->handle, &device->queue, err);
	if (status != MURAL_OK) {
		table->close(device->handle);
		*device = (mu_device){0};
	}
	return status;
}

void mu_device_close(mu_device *device)
{
	if (!device || !device->table)
		return;
	device->table->queue_free(device->queue);
	device->table->close(device->handle);
	*device = (mu_device){0};
}
