// Makes the table of a form's kernels.
#pragma once

#include "backend/cuda/device/linear_chain.h"
#include "backend/cuda/device/linear_mid.h"
#include "backend/cuda/device/linear_rows.h"
#include "backend/cuda/device/linear_wide.h"
#include "backend/cuda/linear_kernels.h"

namespace steadfast::cuda {

template <Form kForm, int kRows>
LinearKernel portable_kernel(const char* name) {
  using Shape = PortableShape<kForm, kRows>;
  return {linear_portable<kForm, kRows>,      name, kRows, Shape::kStrips, Shape::kUnits, Shape::kThreads,
          Shape::kStageBytes * Shape::kStages};
}

template <Form kForm, int kRows>
LinearKernel mid_kernel(const char* name) {
  using Shape = MidShape<kForm, kRows>;
  return {linear_mid<kForm, kRows>, name, kRows, kTileStrips, Shape::kTeams, Shape::kThreads, Shape::kSharedBytes};
}

template <Form kForm, bool kFolds>
LinearKernel wide_kernel(const char* name) {
  using Shape = WideShape<kForm, kFolds>;
  return {linear_wide<kForm, kFolds>, name, Shape::kRows, kTileStrips, 1, Shape::kThreads, Shape::kSharedBytes};
}

template <Form kForm>
ChainKernel chain_kernel() {
  return {linear_chain<kForm>, ChainShape<kForm>::kSharedBytes};
}

template <Form kForm>
FormKernels form_kernels() {
  return {
      {portable_kernel<kForm, 8>("linear, portable, 8 rows"), portable_kernel<kForm, 64>("linear, portable, 64 rows")},
      {mid_kernel<kForm, 16>("linear, 16 rows"), mid_kernel<kForm, 32>("linear, 32 rows"),
       mid_kernel<kForm, 48>("linear, 48 rows"), mid_kernel<kForm, 64>("linear, 64 rows"),
       mid_kernel<kForm, 96>("linear, 96 rows")},
      {wide_kernel<kForm, false>("linear, wide"), wide_kernel<kForm, true>("linear, wide, slices")},
      chain_kernel<kForm>()};
}

}  // namespace steadfast::cuda
