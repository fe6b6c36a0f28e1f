# ruff: noqa: E501  # lines are as trainers print them
"""Lines of trainers about results that are not finite: as the trainers print them, and ordinary lines beside them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.not_finite import MARKERS, NotFinite, read, same_host

_MEGATRON = (
    " iteration      120/  500000 | consumed samples:        61440 | elapsed time per iteration (ms): 5212.4 | learning rate: 1.5E-04"
    " | global batch size:   512 | lm loss: {loss} | loss scale: 1.0 | grad norm: {norm} | number of skipped iterations:   0 |"
    " number of nan iterations:   {nan} |"
)
LOSS, GRADIENT = NotFinite(what="loss"), NotFinite(what="gradient")
LINES: dict[str, NotFinite | None] = {
    # Megatron-LM
    _MEGATRON.format(loss="2.013312E+00", norm="0.731", nan=0): None,
    _MEGATRON.format(loss="nan", norm="nan", nan=0): LOSS,
    _MEGATRON.format(loss="2.013312E+00", norm="0.731", nan=3): LOSS,
    _MEGATRON.format(loss="2.013312E+00", norm="inf", nan=0): GRADIENT,
    "AssertionError: Rank 7: found NaN in local forward loss calculation. Device: 3, node: gpu-0042.example.com": NotFinite(
        what="local", rank=7, device=3, node="gpu-0042.example.com"
    ),
    "[rank255]: RuntimeError: Rank 255, node gpu-0042, device 7, iteration 812: Unexpected result nan (message='found NaN in local "
    "forward loss calculation')": NotFinite(what="local", rank=255, device=7, node="gpu-0042"),
    "Unexpected result tensor(nan, device='cuda:3') at /opt/pretrain_gpt.py line 88, invokation #1 at iteration #150 (message='loss is "
    "NaN')": NotFinite(what="local"),
    "ERROR:megatron.core.rerun_state_machine:Rank 3, node gpu-0042, device 3: Possible transient error!!": NotFinite(
        what="not_reproducible", rank=3, device=3, node="gpu-0042"
    ),
    "Rank 3, node gpu-0051, device 1: Possible persistent error!!": NotFinite(
        what="other_gpu_differs", rank=3, device=1, node="gpu-0051"
    ),
    "Rank 3, node gpu-0051, device 1: Correct result (but possible Application error) (loss is NaN)!": NotFinite(
        what="reproduced", rank=3, device=1, node="gpu-0051"
    ),
    "Possible errors of the tokenizer are ignored": None,
    # NeMo and Lightning
    "Epoch 0: 3%|  | 12/400 [01:02<33:20, loss=nan.0, v_num=3, reduced_train_loss=nan.0, global_step=11.00]": LOSS,
    "Epoch 0: 3%|  | 12/400 [01:02<33:20, v_num=3, reduced_train_loss=2.310, global_step=11.00]": None,
    # DeepSpeed
    "[2025-01-02 10:11:01,021] [INFO] [logging.py:96:log_dist] [Rank 0] Overflow detected. Skipping step. Attempted loss scale: "
    "65536, reducing to 32768.0": NotFinite(what="gradient", rank=0),
    "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4096, reducing to 2048": NotFinite(what="gradient", rank=0),
    "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.": LOSS,
    "[INFO] [fused_optimizer.py:352:_update_scale] No Grad overflow for 500 iterations": None,
    "Time: 10:11:38, Epoch: 0, Step: 10, Rank: 0, loss = nan": NotFinite(what="loss", rank=0),
    # Apex
    "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0": GRADIENT,
    # Hugging Face's Trainer
    "{'loss': nan, 'grad_norm': nan, 'learning_rate': 5e-05, 'epoch': 0.1}": LOSS,
    "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 5e-05, 'epoch': 0.1}": GRADIENT,
    "{'loss': 2.31, 'grad_norm': 1.02, 'learning_rate': 5e-05, 'epoch': 0.1}": None,
    "{'train_loss': inf, 'epoch': 1.0}": LOSS,
    # PyTorch, torchtitan, MAE, JAX, Keras
    "[rank3]: RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.": NotFinite(what="loss", rank=3),
    "step: 10  loss:     nan  grad_norm:     nan  memory: 30.10GiB(38.0%)": LOSS,
    "Loss is nan, stopping training": LOSS,
    "loss tensor(nan, device='cuda:0', grad_fn=<NllLossBackward0>)": LOSS,
    "FloatingPointError: invalid value (nan) encountered in jit(train_step)": LOSS,
    "Batch 12: Invalid loss, terminating training": LOSS,
    # Ordinary ones
    "EarlyStopping: best loss: inf": None,
    "min_val_loss=inf": None,
    "lm loss: 2.0133 | nan checks on": None,
    "loss: nanny": None,
    "loss: information": None,
    "found no NaN in local data": None,
    "glossy nan": None,
    "lossless": None,
}  # fmt: skip


@pytest.mark.parametrize(("text", "found"), LINES.items())
def test_lines_as_trainers_print_them(text: str, found: NotFinite | None) -> None:
    """What is not finite, and whose it is as far as the line says it; the source hands every such line on."""
    assert read(text) == found
    assert found is None or any(marker in text for marker in MARKERS)


@given(st.text(max_size=300))
def test_no_line_breaks_it(text: str) -> None:
    """Whatever a user prints is read."""
    found = read(f"loss: {text} node {text}")
    assert found is None or found.what


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("gpu-1", "GPU-1.example.com", True),
        ("gpu-1", "gpu-11", False),
        ("", "", False),
        ("", "gpu-1", False),
    ],
)
def test_host_names(one: str, other: str, *, same: bool) -> None:
    """With or without a domain; no name is nobody's."""
    assert same_host(one, other) is same
