from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import UsageError
from bubblefinder.rules.packs import load_packs, own_rules, read_pack
from bubblefinder.rules.shipped import shipped
from bubblefinder.rules.suggest import FileError

if TYPE_CHECKING:
    from pathlib import Path

RULE = """
pack = "{pack}"
prefix = "{prefix}"
about = "our own loop"
[[rule]]
id = "{prefix}001"
name = "{name}"
title = "Our read"
status = "drawn"
since = "0.1.0"
finds = "x"
says = "x"
remedy = "x"
[[rule.wait]]
nvtx_stack = "our_sampler"
"""


def write(folder: Path, pack: str = "ours", prefix: str = "OUR", name: str = "our-read") -> Path:
    path = folder / f"{pack}.toml"
    path.write_text(RULE.format(pack=pack, prefix=prefix, name=name))
    return path


def test_the_shipped_packs_are_read_core_first() -> None:
    packs = load_packs()
    assert packs.packs[0].pack == "core"
    assert {"pytorch", "sglang", "flashinfer", "vllm", "tensorrt-llm"} < {pack.pack for pack in packs.packs}


def test_every_shipped_rule_has_at_least_a_drawn_case() -> None:
    assert all(rule.status != "unverified" for rule in load_packs().rules)


def test_a_team_adds_its_own(tmp_path: Path) -> None:
    write(tmp_path)
    assert "OUR001" in {rule.id for rule in load_packs([tmp_path]).rules}
    assert own_rules([tmp_path]) == ["OUR001"]
    assert "CUDA001" in own_rules([])


def test_an_id_or_name_is_used_once(tmp_path: Path) -> None:
    write(tmp_path, prefix="SGL", name="seq-lens-resolve")
    with pytest.raises(FileError) as error:
        load_packs([tmp_path])
    assert str(error.value).count("is already used in") == 2


def test_a_folder_without_packs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no rule packs"):
        load_packs([tmp_path])
    with pytest.raises(UsageError, match="no rule packs"):
        load_packs([tmp_path / "missing"])


def test_mistakes_in_all_files_are_told_at_once(tmp_path: Path) -> None:
    for pack in ("a", "b"):
        path = write(tmp_path, pack=pack)
        path.write_text(path.read_text().replace("remedy", "remdy"))
    with pytest.raises(FileError) as error:
        load_packs([tmp_path])
    assert str(error.value).count("did you mean 'remedy'") == 2


def test_a_teams_kernel_categories_come_first(tmp_path: Path) -> None:
    (tmp_path / "kernels.toml").write_text('[[category]]\nname = "ours"\npattern = "nvjet"\n')
    assert load_packs([tmp_path]).category("nvjet_sm90_tst") == "ours"


@pytest.mark.parametrize(
    ("kernel", "category"),
    [
        ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<...>", "comm.allreduce"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "comm.allreduce"),
        ("ncclDevKernel_Broadcast_RING_LL", "comm.other"),
        ("lamport_style_one_shot_all_reduce_norm_kernel", "comm.allreduce"),
        ("set_mla_kv_buffer_kernel", "kv_write"),
        ("vllm::reshape_and_cache_flash_kernel", "kv_write"),
        ("_draft_extend_inputs_kernel", "speculation"),
        ("fused_sigmoid_gating_delta_rule_update_kernel", "linear_attention"),
        ("_causal_conv1d_update_kernel", "linear_attention"),
        ("BatchMLAPagedAttentionKernel", "attention.mla"),
        ("fmhaSm100aKernel_HQk576HV512", "attention.mla"),
        ("BatchDecodeWithPagedKVCacheKernel", "attention"),
        ("PersistentVariableLengthMergeStatesKernel", "attention.merge"),
        ("moe_align_block_size_kernel", "moe.align"),
        ("_router_gemv_kernel", "moe.router"),
        ("fused_moe_kernel", "moe.gemm"),
        ("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "gemm"),
        ("FusedAddRMSNormKernel", "norm"),
        ("vllm::rotary_embedding_kernel", "rope"),
        ("vllm::act_and_mul_kernel", "activation"),
        ("TopKTopPSamplingFromProbKernel", "sampling"),
        ("create_flashinfer_kv_indices_triton", "metadata"),
        ("void cub::DeviceSelectSweepKernel<...>", "torch.count_or_select"),
        ("void at::native::vectorized_elementwise_kernel<4, ...>", "torch.elementwise"),
        ("my_secret_sauce", "other"),
    ],
)
def test_a_kernel_is_told_by_its_name(kernel: str, category: str) -> None:
    assert load_packs().category(kernel) == category


def test_references_name_real_places() -> None:
    repositories = {ref.split("#")[0] for rule in load_packs().rules for ref in rule.references}
    assert repositories == {
        "sgl-project/sglang",
        "flashinfer-ai/flashinfer",
        "vllm-project/vllm",
        "NVIDIA/TensorRT-LLM",
    }


def test_no_remedy_tells_to_capture_a_plan() -> None:
    texts = {rule.id: " ".join(rule.remedy.split()) for rule in load_packs().rules}
    assert all(
        re.search(r"Never (put|capture a) plan\(\)", texts[rule])
        for rule in ("FI001", "FI002", "SGL003", "CUDA111", "TRT003")
    )


def test_every_shipped_pack_tells_editors_its_schema() -> None:
    for path in shipped().glob("*.toml"):
        assert path.read_text().startswith("#:schema ../docs/schema/"), path
        read_pack(path)
