/* SPDX-License-Identifier: ISC */
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The values that are not NAN, sorted, to be freed; NULL: there are none, or no memory. */
static double *
sorted_copy(const double *values, size_t n, size_t *n_out)
{
	double *copy = n == 0 ? NULL : malloc(n * sizeof(*copy));

	*n_out = 0;
	if (copy == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (!isnan(values[i]))
			copy[(*n_out)++] = values[i];
	}
	qsort(copy, *n_out, sizeof(*copy), compare_doubles);
	return copy;
}

static double
median_of_sorted(const double *v, size_t n)
{
	if (n == 0)
		return NAN;
	return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* In two passes: the sum of squares less the square of the sum loses everything when the spread is small. */
static void
mean_and_sd(const double *v, size_t n, double *mean, double *sd)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	*mean = n > 0 ? sum / (double)n : NAN;
	for (size_t i = 0; i < n; i++)
		squares += (v[i] - *mean) * (v[i] - *mean);
	*sd = n > 1 ? sqrt(squares / (double)(n - 1)) : NAN;
}

struct stats_summary
stats_summarize(const double *values, size_t n)
{
	struct stats_summary s = {.median = NAN, .mean = NAN, .sd = NAN, .min = NAN, .max = NAN};
	double *sorted = sorted_copy(values, n, &s.n);

	if (s.n > 0) {
		s.median = median_of_sorted(sorted, s.n);
		s.min = sorted[0];
		s.max = sorted[s.n - 1];
		mean_and_sd(sorted, s.n, &s.mean, &s.sd);
	}
	free(sorted);
	return s;
}

double
stats_median(const double *values, size_t n)
{
	return stats_summarize(values, n).median;
}

double
stats_percentile(const double *sorted, size_t n, double percent)
{
	double rank =
		ceil(percent / 100 * (double)n - 1e-9); /* 99.9 % of 1000 is the 999th, whatever the binary says */

	if (n == 0)
		return NAN;
	if (rank < 1)
		rank = 1;
	return sorted[rank > (double)n ? n - 1 : (size_t)rank - 1];
}

double
stats_ratio(const double *a, const double *b, size_t n)
{
	double *ratios = n == 0 ? NULL : malloc(n * sizeof(*ratios));
	double median;

	if (ratios == NULL)
		return NAN;
	for (size_t i = 0; i < n; i++)
		ratios[i] = b[i] == 0 ? NAN : a[i] / b[i];
	median = stats_median(ratios, n);
	free(ratios);
	return median;
}

void
stats_latency_from(double *ms, size_t n, struct stats_latency *out)
{
	if (n > 0)
		qsort(ms, n, sizeof(*ms), compare_doubles);
	out->n = n;
	mean_and_sd(ms, n, &out->avg_ms, &out->sd_ms);
	out->p50_ms = stats_percentile(ms, n, 50);
	out->p90_ms = stats_percentile(ms, n, 90);
	out->p99_ms = stats_percentile(ms, n, 99);
	out->p999_ms = stats_percentile(ms, n, 99.9);
	out->max_ms = n > 0 ? ms[n - 1] : NAN;
}
