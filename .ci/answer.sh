#!/usr/bin/env bash
# Turns the exit code of the check into that of the job. A wrong budget file or an internal error always fails.
set -euo pipefail

case "$INPUT_FAIL_ON:$EXIT_CODE" in
  *:0 | never:1 | never:3 | fail:3) exit 0 ;;
  unknown:* | fail:* | never:*) exit "$EXIT_CODE" ;;
esac
echo "::error::fail-on is one of unknown, fail and never"
exit 2
