"""Writes secure_masks.json and secure_masks_extra.json: keys, digests and masks of a secure job of six participants.

Run with: python secure_masks.py. X25519 is written out as RFC 7748, section 5, has it, and HKDF as RFC 5869; nothing here shares code with
what is tested.
"""

import hashlib
import hmac
import json
import random
import struct
from pathlib import Path

P = 2**255 - 19
N, COLLUDERS, JOB = 6, 2, b"job-1"


def x25519(scalar, point):
    k = bytearray(scalar)
    k[0] &= 248
    k[31] = k[31] & 127 | 64
    k = int.from_bytes(k, "little")
    x1 = (int.from_bytes(point, "little") & ((1 << 255) - 1)) % P
    x2, z2, x3, z3, swapped = 1, 0, x1, 1, 0
    for t in range(254, -1, -1):
        bit = k >> t & 1
        if swapped ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swapped = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a, b * b, d * a, c * b
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % P, x1 * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swapped:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def digest(data):
    return hashlib.sha256(data).digest()


def mac(key, data):
    return hmac.new(key, data, "sha256").digest()


def le(number, size=8):
    return number.to_bytes(size, "little")


def fields(*parts):
    return b"".join(le(len(part)) + part for part in parts)


def bits(values):
    return b"".join(struct.pack("<d", value) for value in values)


def signed(number):
    return number - (1 << 64) if number >> 63 else number


rng = random.Random(1)
spec = digest(b"spec")
secrets = [bytes(rng.randrange(256) for _ in range(32)) for _ in range(N)]
members = [(b"party-%d" % i, digest(b"spki%d" % i), x25519(secret, le(9, 32))) for i, secret in enumerate(secrets)]
R = digest(fields(b"conclave roster 1", JOB, spec, le(COLLUDERS), le(N), *(part for member in members for part in member)))


def pair(own, other):
    low, high = sorted((own, other))
    info = fields(b"conclave pair 1", le(low), le(high), members[low][2], members[high][2])
    return mac(mac(R, x25519(secrets[own], members[other][2])), info + b"\x01")


keys = {(i, j): pair(i, j) for i in range(N) for j in range(N) if i != j}
assert all(keys[i, j] == keys[j, i] for i, j in keys)


def question(chain, start, end, kind, scale):
    return digest(fields(b"conclave question 1", bits([2.0**-32]), le(chain, 4), bits(start), bits(end), le(kind, 4), le(scale)))


def message(iteration, attempt, questions):
    return digest(fields(b"conclave round 1", R, le(iteration), le(attempt, 4), le(len(questions)), *questions))


def lane(key, of, place):
    code = mac(key, b"conclave mask 1" + of + le(place // 4, 4))
    return int.from_bytes(code[8 * (place % 4):][:8], "little")


def masks(of, lanes):
    def share(i, j, place):
        return lane(keys[i, j], of, place) * (1 if i < j else -1)

    return [[sum(share(i, j, place) for j in range(N) if j != i) % 2**64 for place in range(lanes)] for i in range(N)]


one = question(0, [0.0], [1.0], 0, 1 << 20)
D = message(7, 0, [one])
D0 = digest(fields(b"conclave confirm 1", R))
questions = [
    question(0, [0.0, -0.0], [1.0, 0.25], 0, 1 << 20),
    question(3, [], [], 2 + 4, 3 << 20),
    question(1, [0.5, 0.5], [0.5, 0.5], 1, 1 << 21),
]
three = message((1 << 40) + 5, 0, questions)
x = [[(-1) ** i * (2**61 - i * 1000003), -i - 1, 2**20 * i] for i in range(N)]
under = masks(three, 7)
y = [[signed((value + mask) % 2**64) for value, mask in zip(*rows)] for rows in zip(x, under)]
twin = bytearray(members[3][2])
twin[31] |= 128
assert x25519(secrets[2], bytes(twin)) == x25519(secrets[2], members[3][2])
low_order = [
    *(le(number, 32) for number in (0, 1, P, P + 1, P - 1)),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
]
assert all(x25519(secrets[0], point) == bytes(32) for point in low_order)

first = {
    "R": R.hex(),
    "members": [[name.decode(), identity.hex(), public.hex()] for name, identity, public in members],
    "secrets": [secret.hex() for secret in secrets],
    "job": JOB.decode(),
    "spec_digest": spec.hex(),
    "colluders": COLLUDERS,
    "pair_0_1": keys[0, 1].hex(),
    "pair_2_5": keys[2, 5].hex(),
    "question": one.hex(),
    "D_iteration_7": D.hex(),
    "lanes_0_1": [lane(keys[0, 1], D, place) for place in range(6)],
    "masks": masks(D, 6),
}
extra = {
    "D0": D0.hex(),
    "confirm": masks(D0, 4),
    "questions": [one.hex() for one in questions],
    "D_three": three.hex(),
    "x": x,
    "y": y,
    # Three queries of seven integers, so that the masks are of two blocks; the first three are those under y.
    "masks_three": under,
    "mask_key_message_party_0": fields(b"conclave mask key 1", JOB, spec, members[0][0], members[0][2]).hex(),
    "high_bit_twin_of_party_3": twin.hex(),
    "low_order_publics": [point.hex() for point in low_order],
}
for file, content in (("secure_masks.json", first), ("secure_masks_extra.json", extra)):
    Path(__file__).with_name(file).write_text(json.dumps(content, indent=1), encoding="utf-8")
