"""Every threshold by which steps are found: its value, what it decides, and what shows why.

*Shown by* names a test, a sample capture or a kind of made-up engine (`tests/engines.py`) that is judged wrong without
the threshold. Those of "points" weigh kinds of evidence against each other: they were set on made-up engines, and
`benchmarks/confidence.py` measures what they are worth on others.
"""

from __future__ import annotations

from typing import Final

# What an event is

HOST_WORK_NS: Final = 20_000
"""Pauses of the host shorter than this are the time between two calls, and say nothing of how long its work usually
is. Shown by engines whose host works for a few microseconds before every launch."""

LULL_NS: Final = 10_000_000
"""Shorter pauses are work, however quick the steps: loading a module took 36 ms, a step of 16 ms is mostly host.
Shown by hard_before.graph, and by a pause of the collector (30 ms) that must not move where steps begin."""

LULL_RATIO: Final = 10
"""A pause this many times as long as the usual one, or as a step, is no work of a step. Shown by
test_waits_for_requests_are_windows_of_their_own."""

PASSES: Final = 1.8
"""A replay with this many times as many nodes as it has different ones runs its body again: a WHILE node. Shown by
test_each_pass_of_a_while_node_is_a_step."""

CAPTURES_LEFT: Final = 3
"""At least this many events a stream capture come behind the last, else the program captures all along and has no
set-up. Shown by test_a_program_that_captures_in_every_step_has_no_set_up."""

# What recurs

FEWEST: Final = 3
"""What comes less often recurs by chance. Shown by test_without_repetition_there_are_no_steps."""

BY_TURNS: Final = 0.9
"""Share of cycles in which two things come once each, for both to be of one cycle. Lost records, prefills and chores
disturb a few. Shown by test_steps_survive_whatever_disturbs_a_loop."""

SPREAD: Final = 0.3
"""Share of the reads, uploads and waits (or of the graph launches) that cycles of a usual length hold, at least.
Shown by test_waits_for_requests_are_windows_of_their_own: the layers of three prefills are no steps."""

TELLING: Final = 0.5
"""Reads, uploads and waits, or graph launches, for each of the things that are judged by them: fewer are those of
prefills. Shown by test_steps_without_links_are_told_beside_prefills_that_read."""

LONG: Final = 3
"""A cycle this many times as long as the usual one is not of a usual length. Shown with SPREAD."""

MOST_MEMBERS: Final = 48
"""Of so many things that come once a cycle, more tell nothing new: bounds the time on programs of many kernels."""

AT_A_THING: Final = 0.8
"""A cycle begins at something that comes once in it, if the host works nearly as long there as elsewhere nearby.
Shown by engines that upload before each step and read behind it."""

GOES_ON: Final = 0.35
"""A cycle begins behind a read or a wait, if the host works there this share of the longest time it works anywhere:
under a profiler it may take longer between two launches. Shown by torch_piecewise.node, and by
test_a_read_in_the_middle_of_a_step_begins_none."""

ELSEWHERE: Final = 1.25
"""Behind the last layer's read the host works less than this many times as long as behind any other layer's: no step
begins there. Shown by test_a_step_begins_behind_the_token_and_not_behind_the_last_layers_read."""

NEARBY: Final = (0, 1, -1, 2, -2, 3, -3)
"""How many events from something that comes once a cycle its begin may lie: the uploads behind a read vary in size
with the batch. Shown by engines of several batch sizes and uploads."""

MOSTLY: Final = 0.5
"""More than half: of the occurrences of a thing that are reads or waits, of the kinds of work that two cycles share,
and of the ranges of one name that hold launches of several places of the cycle."""

WHOLE_CYCLE: Final = 0.15
"""By how much the events before the first begin may differ from a cycle's to be one. Shown by test_a_regular_loop."""

# Which of what recurs is the step

FILLED: Final = 0.8
"""Share of cycles that compute anything: copies alone make no steps. Shown by engines with three uploads a step."""

LEVEL: Final = 1.12
"""Segmentations whose numbers differ by less are of one level, and not held against each other."""

NEAR: Final = 1.3
"""Segmentations whose numbers differ by more are not the same. Shown by
test_an_optional_graph_leaves_the_steps_as_they_are."""

SAME: Final = 0.85
"""Share of cycles of one segmentation in which the other begins once, for both to be the same."""

INTERRUPTED: Final = 1.7
"""Up to this ratio of their numbers, one is the same as the other but for cycles in between, as prefills are: what
holds others of its kind holds two at least. Shown by test_prefills_between_steps_leave_no_rival."""

LITTLE: Final = 2
"""Things that come once a cycle of the more frequent one, at most: a read and an upload, which prefills have as well.
Steps have more in common. Shown by test_pieces_with_a_prefill_in_every_fourth_batch."""

STRETCH: Final = 60_000
"""Events from the middle of a long capture that are enough to tell the steps by: bounds time and memory."""

MOST_LEVELS: Final = 8
"""Segmentations with the most things that come once a cycle, that are held against each other: others come about by
chance in programs of many kernels. Shown by eager_item."""

UNCONTRADICTED: Final = 5.0
"""Points for a segmentation each of whose cycles reads, uploads or waits, before any other is held against it."""

UNLINKED: Final = 1.2
"""The same where cycles pass nothing between host and GPU: layers don't either, so they are never surer than
medium."""

ALTERNATING: Final = 8
"""Batch sizes by turns make cycles of at most this many steps, and every kernel of one size is lacking in the others:
what boundaries lack counts against longer cycles up to here. Shown by
test_batch_sizes_that_recur_in_a_pattern_make_no_longer_step."""

ONE_MAKE: Final = 0.6
"""Share of what a cycle computes that the next one computes as well, for them to be of one make: what sets some of them
apart may be another batch size, and speaks against longer cycles as much as for them. Parts of a step share less.
Shown by test_parts_of_a_step_are_no_batch_sizes_by_turns."""

MORE: Final = 0.5
"""By how much the share of boundaries with a thing must be greater at those of the longer cycles: chores and prefills
come at few of them. Shown by engines with a kernel more in every fourth step."""

FEWER: Final = 0.3
"""The same for what they lack: one of three batch sizes by turns is at a third of the boundaries."""

BASE_POINTS: Final = -2.0
"""Longer cycles need evidence of this many points. Shown by
test_batch_sizes_that_recur_in_a_pattern_make_no_longer_step."""

LINK_POINTS: Final = 1.5
"""For each kind of read, upload or wait that only the boundaries of the longer cycles have, up to two: the token's
way. Shown by test_layers_are_no_steps."""

KERNEL_POINTS: Final = 0.5
"""For each kind of kernel that only they have, up to eight: embedding, head, sampling. Shown by
test_layers_are_no_steps."""

GRAPH_POINTS: Final = 2.5
"""For a graph that only they have, where the others have neither graphs nor reads, uploads or waits. Shown by
test_a_long_run_of_kernel_launches_between_replays_is_an_eager_phase."""

LACKING_POINTS: Final = 0.5
"""Against, for each kind of kernel that only the others have. Shown by engines of several batch sizes."""

LEAST_WORK: Final = -0.5
"""What less host work at the boundaries of the longer cycles counts against them at most: experts on the CPU take
longer than what lies between steps. Shown by test_layers_with_experts_on_the_cpu_are_no_steps."""

MOST_WORK: Final = 2.3
"""What more host work counts for them at most; the natural logarithm of how many times as much."""

MOST_WORK_OF_FEW: Final = 1.0
"""The same where longer cycles are fewer than MANY: pauses of the host slow some steps. Shown by
test_a_few_slow_steps_make_no_longer_step."""

PROMPT: Final = 16
"""Uploads this many times as large as the usual are prompts, be they short; those of a target are its drafts'.
Shown by test_a_prefill_every_few_steps_makes_no_longer_step."""

TOKEN_BYTES: Final = 64
"""Smaller uploads count as so large: eight ids. Shown with PROMPT."""

PASS_KINDS: Final = 3
"""Kinds of kernels of a pass of its own, where steps have no links: a sort has one or two. Shown by
test_steps_without_links_are_told_beside_prefills_that_read."""

TARGET_POINTS: Final = 5.0
"""For a graph that comes once a longer cycle and takes more than ANOTHER_SIZE times as long as those of the shorter
ones: the target of their drafts, or of a draft and its extension that come once each. Shown by
test_a_draft_graph_and_its_target_make_one_step and sglang/chain_2.graph."""

UNTOLD: Final = 0.9
"""What speaks for either of two readings at most, where only their length tells graphs by turns apart: a draft and its
target, or two batch sizes. More than MEDIUM, less than HIGH, and the other reading is named. Shown by
test_a_draft_and_its_target_of_which_only_the_lengths_are_known_are_never_sure."""

ANOTHER_LENGTH: Final = 1.1
"""Graphs of which no nodes were recorded, and whose lengths differ by more, may be of different kinds. Shown with
UNTOLD."""

DEEPER: Final = 1.15
"""How many times as often a pass runs the kernels of its layers, for it to be another model. Shown by
test_a_draft_and_its_target_by_turns_are_one_step."""

NEARLY_ALL_WORK: Final = 0.95
"""A cycle that runs so much of the work of a longer one is all of it, and counts as TARGET_POINTS does. Shown by
test_a_step_with_a_read_after_sampling_and_another_behind_is_one."""

PREFILL_POINTS: Final = -5.0
"""Against longer cycles at whose boundaries a pass of its own runs, where the shorter ones have links of their own:
these are steps, and the pass is a prefill. Shown by test_prefills_that_come_regularly_make_no_longer_step."""

DRAFTS: Final = 5.5
"""Up to this many shorter cycles, such a pass is the target's behind its drafts. Shown by
test_a_draft_model_and_its_target_make_one_step."""

DOUBTED: Final = 0.4
"""What speaks for longer cycles at most, where one shorter cycle of each uploads a little more than the others do: a
short prompt with the steps behind it looks as a target with its drafts does. Too little for MEDIUM, and the shorter
cycles are named as a rival. Shown by test_a_short_prompt_at_every_other_step_is_never_sure."""

LAYERS: Final = 4
"""Times that a kind of kernel comes in a pass of its own, at least; a head whose kernels are called as a layer's are
makes two. Shown by engines that share names."""

SLIGHT: Final = 0.125
"""Steps behind a prefill run the same layers: cycles without graphs that launch at most this share of the longest one's
kernels, and all together at most this share of the compute, are none. Shown by
test_a_row_of_reads_behind_each_step_is_no_row_of_steps and engines whose step is a single kernel."""

LINKED: Final = 0.9
"""Links at each of the other boundaries from which on the shorter cycles have links of their own. Shown with
DRAFTS."""

PIECES_POINTS: Final = 2.0
"""For longer cycles in which each of many graphs comes once: the pieces of one pass. Shown by
torch_piecewise.node."""

PASS_POINTS: Final = 14.0
"""For the passes of a WHILE node that does most of the work. Shown by test_each_pass_of_a_while_node_is_a_step."""

PASS_SHARE: Final = 0.6
"""Share of the work, prefills and all, from which on passes of WHILE nodes are the steps, and no part of one."""

KNOWN_POINTS: Final = 4.0
"""For ranges whose names are known to be those of a step. Shown by test_known_marks_are_taken."""

OUTER_POINTS: Final = 1.5
"""For ranges around nearly all launches, if no longer ones are: what the program calls a step, or a token. Shown by
engines with ranges around tokens and around layers."""

NEARLY_ALL: Final = 0.9
"""Share of the launches that such ranges cover. Shown by test_a_range_around_a_part_of_the_step_does_not_cut_it."""

MOST_NAMES: Final = 64
"""Names of ranges that are tried, longest first: bounds the time on programs with thousands of names."""

# How sure

NEARLY_AS_GOOD: Final = 2.0
"""A segmentation with so few points less is named beside the one chosen. Shown by test_a_rival_is_named."""

HIGH: Final = 1.3
"""Points from which on steps are sure. Measured: see docs/steps.md."""

HIGH_OF_FEW: Final = 1.9
"""The same for fewer cycles than PLENTY: batches in turns make a few by chance. Measured: see docs/steps.md."""

PLENTY: Final = 8
"""Cycles from which on they are many. Measured: see docs/steps.md."""

MEDIUM: Final = 0.5
"""Points from which on steps are fairly sure. Measured: see docs/steps.md."""

MANY: Final = 5
"""Fewer cycles are never sure. Shown by test_a_few_cycles_are_found_with_less_confidence."""

LEFT_OUT: Final = 0.05
"""Share of the capture, without set-up, prefills and waits for requests, by which windows left out may be longer than
steps, before steps lose a degree of confidence. Shown by test_windows_left_out_cost_confidence."""

GRAPH_STEPS: Final = 0.5
"""Share of the cycles that launch graphs, from which on steps are told by cadence. Shown by
test_an_eager_program_steps_by_its_sequence."""

# What is no step

RARE: Final = 0.35
"""What fewer windows have is foreign to the steps. Shown by test_one_graph_with_eager_prefills_in_between: every
fourth."""

USUAL: Final = 0.65
"""What more windows have is a step's own."""

WORTH: Final = 0.25
"""Foreign work shorter than this share of a step is a chore. Shown by engines with a kernel more in every fourth
step."""

FAR_MORE: Final = 3
"""Work this many times a step's is no larger batch. Shown by test_a_batch_size_that_comes_once_is_no_prefill."""

NONE_LACKING: Final = 0.1
"""A window that lacks less of a step's own has foreign work beside a step, not instead of it. Shown with FAR_MORE."""

ALL_LACKING: Final = 0.9
"""A window that lacks more has foreign work alone. Shown by
test_known_marks_around_prefills_keep_the_decode_steps_clean."""

HALF: Final = 0.5
"""Share of a far longer window's work that is foreign, for it to mix prefill and decode. Shown by
test_pieces_with_a_prefill_in_every_fourth_batch."""

WHOLE_STEP: Final = 0.7
"""Share of a step's own kinds, and of what they take, that make a step of what lies before or behind a prefill. Shown
by test_a_prefill_in_between_is_labelled and test_what_samples_a_prompts_first_token_is_no_step."""

ASLEEP: Final = 0.8
"""Share of a pause in one call of the operating system, for it to be a wait. Shown by
test_waits_for_requests_are_windows_of_their_own."""

FEW_STEPS: Final = 16
"""A request takes more decode steps: a call of the operating system that comes as often is the host's wait. Shown by
test_a_poll_every_few_steps_is_the_hosts_wait_and_no_wait_for_work."""

STANDS_OUT: Final = 1.015
"""The first step is set aside if it is longer than the others by this factor and STANDS_OUT_MADS. Shown by
tp2_after.graph."""

STANDS_OUT_MADS: Final = 5
"""Median deviations by which it must be longer besides, since steps vary. Shown by null_host_2.graph."""

REGIME: Final = 5
"""Fewer steps of another make are no regime. Shown by test_a_batch_size_that_comes_once_is_no_regime."""

# What part a replay plays

LENGTH_RATIO: Final = 1.5
"""Graphs whose lengths differ by more are of different kinds, where nodes weren't recorded. Shown by
test_graphs_captured_for_another_batch_size_play_the_same_role."""

NODES_RATIO: Final = 1.25
"""Graphs whose nodes differ by more are of different kinds. Shown by the same test in node mode."""

STRANGERS: Final = 0.2
"""Graphs of one size whose counts of names have a smaller cosine are of different kinds. Shown by
test_graphs_of_one_size_with_a_read_before_each_are_told_apart_by_their_nodes."""

MAX_PERIOD: Final = 2048
"""Longest cycle of replays that is looked for: bounds the time."""

PERIOD_STRETCH: Final = 8192
"""Replays to each side of the middle in which it is looked for: bounds the time."""

GOOD_PERIOD: Final = 0.5
"""Share of replays that recur one period later, at least."""

NEAR_BEST: Final = 0.85
"""A period nearly as good as the best is taken if it is shorter: multiples of a period are as good."""

TRUST_IDS: Final = 0.9
"""Graphs that recur so strictly by id are the pieces of a step. Shown by
test_piecewise_graphs_are_pieces_of_one_step."""

SURE_PERIOD: Final = 0.6
"""Below this, ids tell more than kinds. Shown by torch_adaptive.node."""

SETTLED: Final = 0.8
"""Share of a graph's replays in one place of the cycle, for the others to belong there. Shown by
test_each_graph_of_a_piecewise_step_has_one_place_from_the_first_replay_on."""

RARE_WEIGHT: Final = 0.25
"""Power of a symbol's count that weighs it: else the many alike pieces of a step would hide its end."""

COMPARABLE: Final = 0.5
"""Share of the usual host work before a step that begins one. Shown by
test_a_step_whose_launches_were_lost_in_part_begins_where_the_host_worked. So a seam is cut where most are, if its gap
there is as this to its widest. Shown by test_seams_of_nearly_equal_gaps_are_all_cut_at_one_place."""

ANOTHER_SIZE: Final = 4
"""Another batch size makes no graph longer by more. Shown by test_a_prefill_captured_as_a_graph_is_no_step."""

READ_MOSTLY: Final = 0.5
"""Share of replays of a place behind a read of results, for a step to begin there."""

GROWN_ALONE: Final = 2
"""By what factor one graph a step may grow with the batch, for a longer cycle to be several steps."""

GROWN_ALIKE: Final = 4
"""The same where several graphs grow alike. Shown by test_two_graphs_of_one_size_stay_two_whatever_the_batch."""

DOMINANT: Final = 1.5
"""A replay that takes this many times as long as any other verifies. Shown by test_a_regular_loop."""

PIECES: Final = 8
"""Cycles of more replays are the pieces of a pass, none of which verifies. Shown by
test_piecewise_graphs_are_pieces_of_one_step."""
