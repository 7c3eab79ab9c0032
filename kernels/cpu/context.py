"""The table through which compiled code finds everything: slot numbers, no code.

A step gets one address, that of an int64 array: sizes, buffer addresses, and the address of a table with one row of
`LAYER_SLOTS` integers a layer (row `n_layers` describes the top: final norm and head).  All addresses are bytes as i64.
"""

from __future__ import annotations

# -- sizes -------------------------------------------------------------------------------------------------------
N_ROWS = 0
HIDDEN = 1
N_HEADS = 2
N_KV = 3
HEAD_DIM = 4
FFN = 5
Q_WIDTH = 6  # floats of the query part of a qkv row, padded to whole tiles
KV_WIDTH = 7
QKV_WIDTH = 8
VOCAB_WIDTH = 9  # floats of a row of logits, padded to whole tiles
N_LAYERS = 10
ACTIVATION = 11  # 0 SiLU, 1 GELU (tanh)
STORE = 12  # attend.Store of the cache
FLOATS = 13  # address of float32 [eps, attn_scale, embed_scale]

# -- tables ------------------------------------------------------------------------------------------------------
LAYERS = 16
TOKENS = 17  # int32 [n]
POSITIONS = 18  # int32 [n]
ROW_SEQ = 19  # int32 [n], which sequence a row belongs to
LOGIT_ROWS = 20  # int32 [m]
PLANS = 21  # address of int64 [n_groups, PLAN_SLOTS]

# -- buffers -----------------------------------------------------------------------------------------------------
X = 24  # residual stream [n, hidden]
H = 25  # normed rows [n, hidden], and rounded: H_Q int8, H_META
H_Q = 26
H_META = 27
QKV = 28  # [n, QKV_WIDTH]
ATT = 29  # attention output [n, heads * head_dim], and rounded
ATT_Q = 30
ATT_META = 31
PROJ = 32  # output of wo or w_down, before it joins the residual [n, hidden padded]
ACT = 33  # gated activations [n, ffn], and rounded
ACT_Q = 34
ACT_META = 35
LOGITS = 36  # [m, VOCAB_WIDTH]
SCRATCH = 37  # per thread
SCRATCH_BYTES = 38
PARTS = 39  # partial attention results, see plan.py
SCORES_KERNEL = 40
VALUES_KERNEL = 41
PROJ_WIDTH = 42
ROW_BLOCK = 43  # rows a matrix tile is used for before the next tile

N_LOGITS = 44
HEAD_TERMS = 45  # int8 numbers an input of the head is written as: 2, or 1 if its weights are dense

CONTEXT_SLOTS = 48

# -- a layer's row -----------------------------------------------------------------------------------------------
ATTN_NORM = 0
FFN_NORM = 1
POST_ATTN = 2  # 0 where there is none, like the next four
POST_FFN = 3
Q_NORM = 4
K_NORM = 5
BIAS = 6  # one qkv row of floats
ROPE = 7  # float32 [positions, 2, half]: cosines, then sines
ROPE_HALF = 8
GROUP = 9  # cache group
KEYS = 10
VALUES = 11
KEY_SCALES = 12
VALUE_SCALES = 13
MATRICES = 16  # seven records of MATRIX_SLOTS: q, k, v, o, gate, up, down (the top uses the first, for the head)

MATRIX_SLOTS = 5
M_DATA, M_KERNEL, M_GROUPS, M_TILE_BYTES, M_TILES = range(5)
M_Q, M_K, M_V, M_O, M_GATE, M_UP, M_DOWN = range(7)
LAYER_SLOTS = MATRICES + 7 * MATRIX_SLOTS

# -- the embedding (its own record behind the layer table's top row) ----------------------------------------------
EMBED_DATA = 0
EMBED_FORMAT = 1
EMBED_GROUPS = 2
EMBED_TILE_BYTES = 3

# -- attention plan of a cache group -------------------------------------------------------------------------------
P_TABLE = 0  # int32 [n_seq, blocks]
P_BLOCKS = 1
P_PAGE = 2  # positions a page
P_PAGE_BLOCKS = 3  # 16-wide key blocks a page
P_WINDOW = 4  # 0: none
P_CHUNK = 5  # positions a chunk
P_SETS = 6  # int32 [n_sets, 4]: chunk, first index into ROWS, number of rows, a sequence whose table to use
P_N_SETS = 7
P_SET_ROWS = 8  # int32
P_STRIPS = 9  # int32 [n_strips, 2]: first row, number of rows (one sequence, computed over all its chunks)
P_N_STRIPS = 10
P_PART_BASE = 11  # int32 [n]: index of a row's first partial result, or -1 for rows of strips
P_FIRST_CHUNK = 12  # int32 [n]
P_LAST_CHUNK = 13  # int32 [n]
P_SLOTS = 14  # score slots of a chunk (positions, padded to 16 a page)
PLAN_SLOTS = 16
