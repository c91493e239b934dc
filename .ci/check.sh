#!/usr/bin/env bash
# Judges one capture for the GitHub action. Inputs come in the environment, never as script text; the exit code becomes an
# output, so that the reports are uploaded before the job fails.
set -euo pipefail

mkdir -p "$INPUT_OUTPUT"
report="$INPUT_OUTPUT/report"
comment="$INPUT_OUTPUT/budget.md"

against=()
while IFS= read -r path; do
  if [[ -n "$path" ]]; then against+=("--baseline=$path"); fi
done <<<"${INPUT_BASELINE:-}"
if [[ -n "${INPUT_HISTORY:-}" ]]; then against+=("--history=$INPUT_HISTORY"); fi

status=0
"$BUBBLEFINDER" analyze --quiet -o "$report.html" -o "$report.json" -- "$INPUT_TRACE" || status=$?

# A capture without the work of its graphs has a report too, and every limit on it is `missing`.
if [[ -s "$report.json" ]]; then
  status=0
  "$BUBBLEFINDER" budget check "$report.json" "--budget=$INPUT_BUDGET" "${against[@]}" "--report-url=${INPUT_REPORT_URL:-}" \
    -o "$comment" -o "$INPUT_OUTPUT/budget.html" -o "$INPUT_OUTPUT/budget.xml" -o "$INPUT_OUTPUT/budget.json" || status=$?
fi
if [[ ! -s "$comment" ]]; then
  printf '### bubblefinder budget\n\n**The capture could not be judged.** The log of the job says why.\n\n<!-- bubblefinder:budget -->\n' >"$comment"
fi

case "$status" in
  0) verdict=pass ;;
  1) verdict=fail ;;
  3) verdict=unknown ;;
  *) verdict=error ;;
esac
cat "$comment" >>"$GITHUB_STEP_SUMMARY"
{
  echo "verdict=$verdict"
  echo "exit-code=$status"
  echo "report=$report.html"
  echo "comment-file=$comment"
} >>"$GITHUB_OUTPUT"
