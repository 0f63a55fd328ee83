"""Where the `cpu` device is known to differ from an H200 (driver 580.159, 2026-12-01), at edges of instructions.

Each entry is expected to fail, strictly: one that is mended must leave this list, and nothing new joins it in silence.
"""

INSTRUCTIONS = {
    "rem-u16-u16-u16-=t-t-t": "remainder by zero: PTX leaves it open, the card gives all ones",
    "rem-s16-s16-s16-=t-t-t": "remainder by zero: PTX leaves it open, the card gives all ones",
    "rem-u32-u32-u32-=t-t-t": "remainder by zero: PTX leaves it open, the card gives all ones",
    "rem-s32-s32-s32-=t-t-t": "remainder by zero: PTX leaves it open, the card gives all ones",
    "rem-u64-u64-u64-=t-t-t": "remainder by zero: PTX leaves it open, the card gives all ones",
    "rem-s64-s64-s64-=t-t-t": "remainder by zero: PTX leaves it open, the card gives all ones",
    "bfe-u64-u64-b32-b32-=t-t-b32-b32": "positions and lengths beyond the width",
    "bfe-s64-s64-b32-b32-=t-t-b32-b32": "positions and lengths beyond the width",
    "bfi-b64-b64-b64-b32-b32-=t-t-t-b32-b32": "positions and lengths beyond the width",
    "fns-b32-b32-b32-s32-=b32-b32-b32-s32": "positions and lengths beyond the width",
    "testp-pred-f32-=pred-t": "testp.normal: the card counts zero",
    "testp-pred-f64-=pred-t": "testp.normal: the card counts zero",
    "mul-f16-f16-f16-=t-t-t": "the flush of a result that rounding makes normal",
    "mul-f16x2-f16x2-f16x2-=t-t-t": "the flush of a result that rounding makes normal",
    "fma-f16x2-f16x2-f16x2-f16x2-=t-t-t-t": "the flush of a result that rounding makes normal",
    "mul-f32-f32-f32-=f32-f32-f32": "the flush of a result that rounding makes normal",
    "cvt-f32-f64-=f32-f64": "payload of a NaN, or the flush of a result that rounding makes normal",
    "cvt-f32-f32-=f32-f32": "payload of a NaN, or the flush of a result that rounding makes normal",
    "cvt-f32-bf16-=f32-s": "payload of a NaN, or the flush of a result that rounding makes normal",
    "cvt-f16-f64-=d-f64": "payload of a NaN, or the flush of a result that rounding makes normal",
    "cvt-b32-f32-=b32-f32": "payload of a NaN, or the flush of a result that rounding makes normal",
}
KERNELS = {
    "fft64": "other bits than the card's; the cause was not looked into",
    "logarithms": "other bits than the card's; the cause was not looked into",
    "transposed_23x19x40": "other bits than the card's; the cause was not looked into",
}
