/*
 * The step-up procedure: docs/design/algorithms.md section 5.
 */
#include "detectors/fdr.h"

#include <stdlib.h>
#include <string.h>

#include "detectors/sort.h"

const struct field fdr_fields[] = {
	OPTION_STRING(struct fdr_options, fdr, "off",
		"accepted false discovery rate among the changes of a run, such as 0.05, or off",
		.metavar = "SHARE"),
	{0},
};

bool fdr_parse(const char *text, double *share, struct error *error)
{
	char *end;
	*share = 0;
	if (strcmp(text, "off") == 0)
		return true;
	*share = strtod(text, &end);
	if (end == text || *end != '\0' || !(*share > 0 && *share < 1))
		return error_set(error, ERROR_USAGE,
			"fdr: \"%s\": expected off or a share between 0 and 1", text);
	return true;
}

double fdr_limit(double *pvalues, size_t count, size_t hypotheses, double share)
{
	if (share == 0)
		return 1;
	if (count == 0)
		return -1;
	sort_sort(pvalues, count);
	for (size_t k = count; k > 0; k--)
		if (pvalues[k - 1] <= share * (double)k / (double)hypotheses)
			return pvalues[k - 1];
	return -1;
}

size_t fdr_rank(const double *pvalues, size_t count, double pvalue)
{
	size_t rank = 1;

	for (size_t i = 0; i < count; i++)
		rank += pvalues[i] < pvalue;
	return rank;
}
