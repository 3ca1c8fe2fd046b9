"""`scipy.spatial.transform`: rotations, rigid transforms, interpolation."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace
from scipy.spatial.transform import RigidTransform, Rotation, Slerp

from benchmarks.reach.path import Draw, constant, exactly, normal, path, uniform

QUAT, VECTORS, ANGLES = normal(3, 4), normal(3, 3), uniform(-1, 1, 3, 3)
AXES = constant([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
COORDINATES = uniform(-1, 1, 3, 6)


def rotation(v: Any) -> Rotation:
    return Rotation.from_rotvec(v)


def rigid(x: Any) -> RigidTransform:
    return RigidTransform.from_exp_coords(x)


def affine(v: Any, t: Any) -> Any:
    """Return 4x4 matrices of rotations and translations."""
    return RigidTransform.from_components(t, rotation(v)).as_matrix()


def near_identity(*shape: int) -> Draw:
    """Return a matrix near a rotation."""
    return Draw(
        lambda random: (
            [[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]
            + 0.05 * random.normal(size=(*shape, 3, 3))
        )
    )


def assigned(many: Any, one: Any) -> Any:
    many[1] = one
    return many


def slerp(times: Any, v: Any) -> Any:
    knots = array_namespace(v).asarray([0.0, 1.0, 2.0], dtype=v.dtype)
    return Slerp(knots, rotation(v))(times).as_quat()


PATHS = [
    # Rotations: conversions
    path("Rotation.from_quat, as_matrix", lambda q: Rotation.from_quat(q).as_matrix(), QUAT),
    path("Rotation.from_quat, as_quat", lambda q: Rotation.from_quat(q).as_quat(), QUAT),
    path(
        "Rotation.from_quat, canonical, scalar first",
        lambda q: Rotation.from_quat(q, scalar_first=True).as_quat(
            canonical=True, scalar_first=True
        ),
        QUAT,
    ),
    path("Rotation.from_quat, as_rotvec", lambda q: Rotation.from_quat(q).as_rotvec(), QUAT),
    path("Rotation.from_quat, as_mrp", lambda q: Rotation.from_quat(q).as_mrp(), QUAT),
    path("Rotation.from_quat, one", lambda q: Rotation.from_quat(q).as_matrix(), normal(4)),
    path(
        "Rotation.from_matrix, as_quat",
        lambda m: Rotation.from_matrix(m).as_quat(),
        near_identity(3),
    ),
    path(
        "Rotation.from_matrix, as_rotvec",
        lambda m: Rotation.from_matrix(m).as_rotvec(),
        near_identity(),
    ),
    path(
        "Rotation.from_matrix, assume_valid",
        lambda m: Rotation.from_matrix(m, assume_valid=True).as_quat(),
        near_identity(3),
    ),
    path("Rotation.from_rotvec, as_matrix", lambda v: rotation(v).as_matrix(), VECTORS),
    path("Rotation.from_rotvec, as_quat", lambda v: rotation(v).as_quat(), VECTORS),
    path(
        "Rotation.from_rotvec, degrees",
        lambda v: Rotation.from_rotvec(v, degrees=True).as_rotvec(degrees=True),
        uniform(-50, 50, 3, 3),
    ),
    path(
        "Rotation.from_rotvec, at the identity",
        lambda v: rotation(v).as_matrix(),
        exactly([[0.0, 0.0, 0.0], [1e-4, 0.0, 2e-4]]),
    ),
    path(
        "Rotation.from_euler, as_matrix",
        lambda a: Rotation.from_euler("zyx", a).as_matrix(),
        ANGLES,
    ),
    path(
        "Rotation.from_euler, intrinsic", lambda a: Rotation.from_euler("ZXZ", a).as_quat(), ANGLES
    ),
    path(
        "Rotation.from_euler, one angle",
        lambda a: Rotation.from_euler("x", a, degrees=True).as_matrix(),
        uniform(-60, 60, 4, 1),
    ),
    path("Rotation.as_euler", lambda v: rotation(v).as_euler("xyz"), uniform(-0.6, 0.6, 3, 3)),
    path(
        "Rotation.as_euler, degrees",
        lambda v: rotation(v).as_euler("XYX", degrees=True),
        uniform(0.2, 0.9, 3, 3),
    ),
    path(
        "Rotation.from_davenport",
        lambda axes, a: Rotation.from_davenport(axes, "extrinsic", a).as_quat(),
        AXES,
        ANGLES,
    ),
    path(
        "Rotation.as_davenport",
        lambda axes, v: rotation(v).as_davenport(axes, "extrinsic"),
        AXES,
        uniform(-0.6, 0.6, 3, 3),
    ),
    path(
        "Rotation.from_mrp, as_matrix",
        lambda m: Rotation.from_mrp(m).as_matrix(),
        uniform(-0.5, 0.5, 3, 3),
    ),
    path(
        "Rotation.from_mrp, as_mrp",
        lambda m: Rotation.from_mrp(m).as_mrp(),
        uniform(-0.5, 0.5, 3, 3),
    ),
    # Rotations: operations
    path("Rotation.apply", lambda v, x: rotation(v).apply(x), VECTORS, VECTORS),
    path(
        "Rotation.apply, inverse", lambda v, x: rotation(v).apply(x, inverse=True), VECTORS, VECTORS
    ),
    path("Rotation.apply, one to many", lambda v, x: rotation(v).apply(x), normal(3), normal(5, 3)),
    path("Rotation, product", lambda v, w: (rotation(v) * rotation(w)).as_quat(), VECTORS, VECTORS),
    path("Rotation, power", lambda v: (rotation(v) ** 2.5).as_quat(), VECTORS),
    path("Rotation.inv", lambda v: rotation(v).inv().as_matrix(), VECTORS),
    path("Rotation.magnitude", lambda v: rotation(v).magnitude(), VECTORS),
    path("Rotation.mean", lambda v: rotation(v).mean().as_matrix(), uniform(-0.4, 0.4, 4, 3)),
    path(
        "Rotation.mean, weights",
        lambda v, w: rotation(v).mean(weights=w).as_matrix(),
        uniform(-0.4, 0.4, 4, 3),
        uniform(0.5, 2, 4),
    ),
    path(
        "Rotation.concatenate",
        lambda v, w: Rotation.concatenate([rotation(v), rotation(w)]).as_matrix(),
        VECTORS,
        VECTORS,
    ),
    path("Rotation, item", lambda v: rotation(v)[1].as_matrix(), VECTORS),
    path("Rotation, slice", lambda v: rotation(v)[::2].as_quat(), VECTORS),
    path("Rotation, iteration", lambda v: tuple(r.as_matrix() for r in rotation(v)), VECTORS),
    path(
        "Rotation, assignment",
        lambda v, w: assigned(rotation(v), rotation(w)).as_matrix(),
        VECTORS,
        normal(3),
    ),
    path(
        "Rotation.align_vectors",
        lambda a, b: Rotation.align_vectors(a, b)[0].as_matrix(),
        normal(5, 3),
        normal(5, 3),
    ),
    path(
        "Rotation.align_vectors, rssd",
        lambda a, b: Rotation.align_vectors(a, b)[1],
        normal(5, 3),
        normal(5, 3),
    ),
    path(
        "Rotation.align_vectors, one pair",
        lambda a, b: Rotation.align_vectors(a, b)[0].as_matrix(),
        normal(3),
        normal(3),
    ),
    path(
        "Slerp, of times",
        lambda t, v: slerp(t, v),
        uniform(0.1, 1.9, 4),
        constant([[0.1, 0.2, 0.3], [0.5, -0.2, 0.1], [0.0, 0.9, -0.4]]),
    ),
    path(
        "Slerp, of rotations",
        lambda t, v: slerp(t, v),
        constant([0.3, 0.7, 1.4]),
        uniform(-0.6, 0.6, 3, 3),
    ),
    # Rigid transforms
    path(
        "RigidTransform.from_matrix",
        lambda v, t: RigidTransform.from_matrix(affine(v, t)).as_matrix(),
        VECTORS,
        VECTORS,
    ),
    path(
        "RigidTransform.from_rotation",
        lambda v: RigidTransform.from_rotation(rotation(v)).as_matrix(),
        VECTORS,
    ),
    path(
        "RigidTransform.from_translation",
        lambda t: RigidTransform.from_translation(t).as_matrix(),
        VECTORS,
    ),
    path("RigidTransform.from_components", affine, VECTORS, VECTORS),
    path("RigidTransform.from_exp_coords", lambda x: rigid(x).as_matrix(), COORDINATES),
    path(
        "RigidTransform.as_exp_coords",
        lambda v, t: RigidTransform.from_components(t, rotation(v)).as_exp_coords(),
        VECTORS,
        VECTORS,
    ),
    path(
        "RigidTransform.from_dual_quat",
        lambda d: RigidTransform.from_dual_quat(d).as_matrix(),
        normal(3, 8),
    ),
    path("RigidTransform.as_dual_quat", lambda x: rigid(x).as_dual_quat(), COORDINATES),
    path(
        "RigidTransform.as_components",
        lambda x: (rigid(x).as_components()[0], rigid(x).as_components()[1].as_quat()),
        COORDINATES,
    ),
    path("RigidTransform.apply", lambda x, v: rigid(x).apply(v), COORDINATES, VECTORS),
    path(
        "RigidTransform.apply, inverse",
        lambda x, v: rigid(x).apply(v, inverse=True),
        COORDINATES,
        VECTORS,
    ),
    path("RigidTransform.inv", lambda x: rigid(x).inv().as_matrix(), COORDINATES),
    path(
        "RigidTransform, product",
        lambda x, y: (rigid(x) * rigid(y)).as_matrix(),
        COORDINATES,
        COORDINATES,
    ),
    path("RigidTransform, power", lambda x: (rigid(x) ** 2.5).as_matrix(), COORDINATES),
    path("RigidTransform.mean", lambda x: rigid(x).mean().as_matrix(), uniform(-0.4, 0.4, 4, 6)),
    path(
        "RigidTransform.concatenate",
        lambda x, y: RigidTransform.concatenate([rigid(x), rigid(y)]).as_matrix(),
        COORDINATES,
        COORDINATES,
    ),
    path("RigidTransform, item", lambda x: rigid(x)[1].as_matrix(), COORDINATES),
    path(
        "RigidTransform, assignment",
        lambda x, y: assigned(rigid(x), rigid(y)).as_matrix(),
        COORDINATES,
        uniform(-1, 1, 6),
    ),
]
