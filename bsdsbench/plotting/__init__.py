"""Pictures: Display objects over computed results. The only package that imports matplotlib."""

from bsdsbench.files.late import late

# Imported when first used, so that matplotlib is loaded only for a picture.
_HOME = {
    "DETCurveDisplay": "plotting.displays",
    "FThresholdDisplay": "plotting.displays",
    "PRCurveDisplay": "plotting.displays",
    "ROCCurveDisplay": "plotting.displays",
    "ReliabilityDisplay": "plotting.displays",
    "plot_curves": "plotting.figures",
    "plot_runs": "plotting.figures",
}

__all__ = sorted(_HOME)
__getattr__ = late(__name__, _HOME)
