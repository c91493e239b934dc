#!/usr/bin/env bash
# Finds the commit that made decode steps longer:
#
#   git bisect start BAD GOOD
#   git bisect run ~/bisect.sh ~/good1.sqlite ~/good2.sqlite ~/good3.sqlite
#
# The arguments are captures of the good commit; keep them, and this script, outside of the work tree. ./build.sh builds the
# commit at hand, ./capture.sh FILE captures it; a commit that does either badly is skipped. It captures LEAST times, and again
# up to MOST times while the comparison can't tell.
set -uo pipefail

least=${LEAST:-1} most=${MOST:-3}
captures=$(mktemp -d)
trap 'rm -rf "$captures"' EXIT

./build.sh || exit 125
heads=()
status=125
for ((number = 1; number <= most; number++)); do
  ./capture.sh "$captures/$number.sqlite" || exit 125
  heads+=("$captures/$number.sqlite")
  if ((number < least)); then continue; fi
  status=0
  bubblefinder diff --bisect --quiet --base "$@" --head "${heads[@]}" || status=$?
  if ((status != 125)); then break; fi
done
case $status in
  0 | 1 | 125) exit "$status" ;;
  *) exit 128 ;; # no answer: to git every other code below 128 is a bad commit
esac
