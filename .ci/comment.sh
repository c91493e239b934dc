#!/usr/bin/env bash
# Writes the comment of a pull request, or updates the one that is there. It runs in the workflow_run job, which has a
# token and must trust nothing that the pull request's own job made: the file is a body and never a command, and which pull
# request it is comes from GitHub.
set -euo pipefail

limit=65536
marker="$(tail -n 1 "$INPUT_FILE")"
if [[ ! "$marker" =~ ^'<!-- bubblefinder:'[A-Za-z0-9._-]+' -->'$ ]]; then
  echo "::error::the last line of the comment is no bubblefinder marker"
  exit 2
fi
if (($(wc -c <"$INPUT_FILE") > limit)); then
  echo "::error::the comment is longer than GitHub takes"
  exit 2
fi

number="$(gh api --method GET "repos/$GITHUB_REPOSITORY/pulls" -f state=open -f "head=$HEAD_OWNER:$HEAD_BRANCH" \
  --jq "map(select(.head.sha == \"$HEAD_SHA\")) | first.number // empty")"
if [[ -z "$number" ]]; then
  echo "No open pull request has this commit as its head: nothing to comment on."
  exit 0
fi

mine="$(MARKER="$marker" gh api --paginate "repos/$GITHUB_REPOSITORY/issues/$number/comments?per_page=100" \
  --jq '.[] | select(.user.login == "github-actions[bot]") | select(.body | rtrimstr("\n") | endswith(env.MARKER)) | .id' | head -n 1)"
if [[ -n "$mine" ]]; then
  gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$mine" -F "body=@$INPUT_FILE"
else
  gh api --silent --method POST "repos/$GITHUB_REPOSITORY/issues/$number/comments" -F "body=@$INPUT_FILE"
fi
