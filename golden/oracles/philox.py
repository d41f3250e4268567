# SPDX-License-Identifier: Apache-2.0
"""Philox4x32-10 (Salmon et al., SC 2011) in plain integers, and the draws
that core/philox.h defines on it."""
import math

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MASK = 0xFFFFFFFF
PARAMETERS, ROUTER_NOISE = 1, 3  # core/philox.h, RandomStream


def philox(counter, key):
    """The four words of the counter [4] under the key [2]."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = _MULTIPLIERS[0] * c[0], _MULTIPLIERS[1] * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & _MASK,
             (a >> 32) ^ c[3] ^ k[1], a & _MASK]
        k = [(k[0] + _WEYL[0]) & _MASK, (k[1] + _WEYL[1]) & _MASK]
    return c


def words(seed, stream, step, layer, index):
    return philox((index & _MASK, index >> 32, step, layer << 8 | stream),
                  (seed & _MASK, seed >> 32))


def uniform(word):
    return (word >> 8) * 2.0 ** -24


def normals(a, b):
    radius = math.sqrt(-2 * math.log((a + 0.5) * 2.0 ** -32))
    angle = 2 * math.pi * ((b + 0.5) * 2.0 ** -32)
    return radius * math.cos(angle), radius * math.sin(angle)


# Known answers of Random123's kat_vectors.
assert philox((0,) * 4, (0,) * 2) == [
    0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox((_MASK,) * 4, (_MASK,) * 2) == [
    0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
assert philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
              (0xA4093822, 0x299F31D0)) == [
    0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
