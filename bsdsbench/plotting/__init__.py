"""Plots of computed results. The only subpackage that imports matplotlib."""

from typing import TYPE_CHECKING

from bsdsbench.lazy import lazy_getattr

if TYPE_CHECKING:
    from bsdsbench.plotting.comparison_plots import plot_ranks as plot_ranks
    from bsdsbench.plotting.comparison_plots import plot_slices as plot_slices
    from bsdsbench.plotting.displays import DETCurveDisplay as DETCurveDisplay
    from bsdsbench.plotting.displays import FThresholdDisplay as FThresholdDisplay
    from bsdsbench.plotting.displays import PRCurveDisplay as PRCurveDisplay
    from bsdsbench.plotting.displays import ReliabilityDisplay as ReliabilityDisplay
    from bsdsbench.plotting.displays import ROCCurveDisplay as ROCCurveDisplay
    from bsdsbench.plotting.displays import ToleranceDisplay as ToleranceDisplay
    from bsdsbench.plotting.figures import plot_curves as plot_curves
    from bsdsbench.plotting.figures import plot_runs as plot_runs
    from bsdsbench.plotting.figures import plot_spaces as plot_spaces

# Imported when first used, so that matplotlib is loaded only for a plot.
_MODULES = {
    "plotting.comparison_plots": "plot_ranks plot_slices",
    "plotting.displays": "DETCurveDisplay FThresholdDisplay PRCurveDisplay ROCCurveDisplay "
    "ReliabilityDisplay ToleranceDisplay",
    "plotting.figures": "plot_curves plot_runs plot_spaces",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_HOME)
if not TYPE_CHECKING:  # it would give every name the type Any
    __getattr__ = lazy_getattr(__name__, _HOME)
