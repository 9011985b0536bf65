/* SPDX-License-Identifier: MIT */
/* Celery 5 with any broker. */
#pragma once

extern const struct traits celery_traits;
extern const struct framework celery_framework;
