"""DeLong's covariance of areas under ROC curves by its definition, pair by pair."""

import numpy as np


def covariance(labels, *scores):
    """(K,) areas and their covariance (K, K): DeLong et al., Biometrics 1988, equations 4 to 8."""
    positive = [k for k, label in enumerate(labels) if label]
    negative = [k for k, label in enumerate(labels) if not label]
    m, n = len(positive), len(negative)

    def psi(x, y):
        return 1.0 if y < x else 0.5 if y == x else 0.0

    areas, v10, v01 = [], [], []
    for s in scores:
        v10.append([sum(psi(s[i], s[j]) for j in negative) / n for i in positive])
        v01.append([sum(psi(s[i], s[j]) for i in positive) / m for j in negative])
        areas.append(sum(v10[-1]) / m)
    out = np.zeros((len(scores), len(scores)))
    for r in range(len(scores)):
        for q in range(len(scores)):
            s10 = sum((a - areas[r]) * (b - areas[q]) for a, b in zip(v10[r], v10[q], strict=True))
            s01 = sum((a - areas[r]) * (b - areas[q]) for a, b in zip(v01[r], v01[q], strict=True))
            out[r, q] = s10 / (m - 1) / m + s01 / (n - 1) / n
    return areas, out
