"""The change of the mean step, taken apart until every nanosecond of it lies with a kernel, a call or a wait."""
