"""Values for the charts: by the charts' own schemas, and against what they promise.

SCHEMAS=folder: jupyterhub.schema.yaml and jupyterhub.values.yaml are jupyterhub/values.schema.yaml and values.yaml
of github.com/jupyterhub/zero-to-jupyterhub-k8s, dask.values.yaml is dask/values.yaml of github.com/dask/helm-chart
(which has no schema: its values are all the keys that its templates know).
"""

import ast
import os
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
K8S = ROOT / "docker" / "k8s"
SCHEMAS = Path(os.environ.get("SCHEMAS", "no such folder"))
ROOM = yaml.safe_load((K8S / "room.yaml").read_text())
DASK = {file.stem: yaml.safe_load(file.read_text()) for file in K8S.glob("dask*.yaml")}
# Kubernetes' own objects, which the chart passes on as they are.
OPEN = ("resources", "securityContext", "tolerations", "affinity", "nodeSelector", "env")


def published(name):
    if not (SCHEMAS / name).is_file():
        pytest.skip(f"SCHEMAS names no folder with {name}")
    return yaml.safe_load((SCHEMAS / name).read_text())


def merged(chart, ours):
    """The chart's own values with ours over them, as helm lays them."""
    if not isinstance(chart, dict) or not isinstance(ours, dict):
        return ours
    return chart | {key: merged(chart.get(key), value) for key, value in ours.items()}


def test_the_room_follows_the_chart():
    import jsonschema

    values = merged(published("jupyterhub.values.yaml"), ROOM)
    values["hub"]["extraFiles"]["room"]["stringData"] = (ROOT / "docker/hub/room.py").read_text()  # --set-file
    jsonschema.validate(values, published("jupyterhub.schema.yaml"))


@pytest.mark.parametrize("name", DASK)
def test_dask_has_these_keys(name):
    known = published("dask.values.yaml")

    def walk(values, chart, where):
        for key, value in values.items():
            at = f"{where}.{key}"
            # One key is a comment in the chart's values: `# threads_per_worker: 1`.
            assert key in chart or key == "threads_per_worker", f"{at}: the chart does not know it"
            if isinstance(value, dict) and key not in OPEN:
                walk(value, chart[key] or {}, at)

    walk(DASK[name], known, name)


def test_each_gpu_has_a_profile():
    overrides = [profile.get("kubespawner_override", {}) for profile in ROOM["singleuser"]["profileList"]]
    gpus = {gpu for override in overrides for gpu in override.get("extra_resource_limits", {})}
    assert gpus == {"amd.com/gpu", "nvidia.com/gpu"}
    for vendor in ("amd", "nvidia"):
        assert DASK[f"dask-{vendor}"]["worker"]["resources"]["limits"][f"{vendor}.com/gpu"] == 1


def test_the_hubs_own_code_can_be_read():
    ast.parse(ROOM["hub"]["extraConfig"]["room"])


def test_pods_cannot_become_more_than_they_are():
    assert ROOM["singleuser"]["allowPrivilegeEscalation"] is False
    context = DASK["dask"]["worker"]["securityContext"]
    assert context["runAsNonRoot"] and context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
