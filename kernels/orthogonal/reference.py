"""Reference implementation of orthonormal rows and relaxed sensitivities in NumPy."""

import itertools

import numpy as np


def orthonormal_rows(w):
    """Computes (W Wᵀ)^(-1/2) W from the eigenvalues of W Wᵀ; full rank only."""
    w = np.asarray(w, np.float64)
    eigenvalues, vectors = np.linalg.eigh(w @ w.T)
    return vectors @ np.diag(eigenvalues**-0.5) @ vectors.T @ w


def relaxed_span_sensitivity(directions, width):
    """Returns the largest ‖Cα‖₁ and ‖Cα‖₂ with ‖Cα‖_∞ <= width, over all vertices.

    A convex function has its maximum at a vertex, where r independent constraints hold
    with equality. All subsets of r constraints and all signs are tried. Directions,
    ``[r, d]``, must be linearly independent.
    """
    columns = np.asarray(directions, np.float64).T
    rank = columns.shape[1]
    most = [0.0, 0.0]
    for tight in itertools.combinations(columns, rank):
        if np.linalg.matrix_rank(tight) < rank:
            continue
        for signs in itertools.product((-1.0, 1.0), repeat=rank):
            point = columns @ np.linalg.solve(tight, width * np.array(signs))
            if np.max(np.abs(point)) <= width * (1 + 1e-9):
                norms = np.sum(np.abs(point)), np.linalg.norm(point)
                most = [max(pair) for pair in zip(most, norms, strict=True)]
    return tuple(most)
