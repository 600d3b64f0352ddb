"""Every metric in the registry keeps the contract, on small made images of its kind."""

import pytest

from bsdsbench.integrations.metric_contract import MetricContract
from bsdsbench.metrics import registry
from tests.helpers.metric_cases import case_of


@pytest.mark.parametrize("case", registry.BUILT_IN, indirect=True)
class TestEveryMetric(MetricContract):
    @pytest.fixture
    def case(self, request):
        return case_of(request.param)
