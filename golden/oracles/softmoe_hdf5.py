# SPDX-License-Identifier: Apache-2.0
"""Writes HDF5 files with the envelope of core/HDF5_ENVELOPE.md from Python.

    with EnvelopedFile("lapsum.h5", kind="lapsum-oracle", version=1) as file:
        file.attribute("source", "mpmath 1.3.0")
        file.dataset("scores", numpy_array)

It writes only what the C++ reader knows: float64, int64, int32, strings of a
fixed length in UTF-8; no time stamps, so that equal contents give equal bytes.
"""
import hashlib
import os
import struct

import h5py
import numpy as np

ENVELOPE_BYTES = 512
MAGIC = b"\x8aSMOE\r\n\x1a"
CHUNKED_FROM_BYTES = 4 << 10


class EnvelopedFile:
    def __init__(self, path, kind, version):
        self.path, self.kind, self.version = path, kind, version
        self.temporary = path + ".tmp"

    def __enter__(self):
        creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        creation.set_userblock(ENVELOPE_BYTES)
        creation.set_obj_track_times(False)
        access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        access.set_libver_bounds(h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V18)
        self.file = h5py.File(h5py.h5f.create(
            self.temporary.encode(), h5py.h5f.ACC_TRUNC, creation, access))
        return self

    def attribute(self, name, value, group="/"):
        attributes = self.file[group].attrs
        if isinstance(value, str):
            text = value.encode("utf-8")
            kind = h5py.string_dtype("utf-8", max(1, len(text)))
            attributes.create(name, np.array(text, kind), dtype=kind)
        elif isinstance(value, int):
            attributes.create(name, np.int64(value))
        else:
            attributes.create(name, np.float64(value))

    def group(self, path):
        self.file.create_group(path, track_order=False)

    def dataset(self, path, values):
        values = np.ascontiguousarray(values)
        options = {}
        if values.nbytes >= CHUNKED_FROM_BYTES:
            options = dict(chunks=values.shape, compression="gzip",
                           compression_opts=9, shuffle=True, fletcher32=True)
        self.file.create_dataset(path, data=values, track_times=False,
                                 **options)

    def __exit__(self, failure, *_):
        self.file.close()
        if failure is not None:
            os.unlink(self.temporary)
            return
        with open(self.temporary, "r+b") as file:
            content = file.read()
            envelope = bytearray(ENVELOPE_BYTES)
            struct.pack_into("<8sII32sQ32s", envelope, 0, MAGIC, 1,
                             self.version, self.kind.encode("ascii"),
                             len(content),
                             hashlib.sha256(content[ENVELOPE_BYTES:]).digest())
            envelope[480:] = hashlib.sha256(envelope[:480]).digest()
            file.seek(0)
            file.write(envelope)
            file.flush()
            os.fsync(file.fileno())
        os.rename(self.temporary, self.path)
