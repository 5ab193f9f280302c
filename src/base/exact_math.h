// exp, log, sine and cosine in double, of plain IEEE operations only: the same bits on every machine, compiler flags
// (-ffp-contract=off) and C library. Relative error below 1e-14 for exp and log, absolute below 1e-14 for sine, cosine.
#pragma once

namespace steadfast {

double exact_exp(double x);    // x < -745: 0; x > 709: infinity
double exact_log(double x);    // x > 0 and finite
double exact_log1m(double u);  // ln(1 - u) for u in (0, 1], precise near 0; u = 1 gives about -745
double exact_log1p(double x);  // ln(1 + x) for x >= 0, precise near 0
void exact_sincos(double angle, double& sine, double& cosine);  // |angle| < 2^30

}  // namespace steadfast
