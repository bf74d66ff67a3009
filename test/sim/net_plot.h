/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A run of a simulated network as a picture.
 */
#ifndef NET_PLOT_H
#define NET_PLOT_H

#include "net_scenario.h"

/**
 * Write an SVG by gnuplot: what came of each flow, and the longest queue, over time.
 *
 * @return whether it was written
 */
bool
net_plot(const struct net_run *run, const char *path);

#endif /* NET_PLOT_H */
