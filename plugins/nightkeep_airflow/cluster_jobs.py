"""The mark of a task -> what runs in a cluster under it, which is ended.

A task may be killed before it knows the name of its application, or die without ending it. Its mark finds both.
"""

from __future__ import annotations

import getpass
import logging
import os
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

import requests
from urllib3.exceptions import HTTPError

from nightkeep_airflow.job import MARK_LABEL

_log = logging.getLogger(__name__)

_SECONDS: Final = (5, 30)
"""To connect, and to answer."""
_ALIVE: Final = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
_ENDS_WITHIN: Final = 60


def end_in_yarn(manager: str, mark: str, auth: Any = None) -> list[str]:
    """End every application with this tag, by the ResourceManager at the address `manager`. Returns their ids once they
    have ended. Raises OSError (`requests.RequestException`) if the manager does not answer or allow it."""
    ended = list[str]()
    deadline = time.monotonic() + _ENDS_WITHIN
    while alive := list(_alive_in_yarn(manager, mark, auth)):
        for name in alive:
            if name not in ended:
                _log.info("ending the YARN application %s", name)
                url = f"{manager}/ws/v1/cluster/apps/{name}/state"
                answer = requests.put(url, params=_user(), json={"state": "KILLED"}, auth=auth, timeout=_SECONDS)
                answer.raise_for_status()
                ended.append(name)
        if time.monotonic() > deadline:
            raise requests.Timeout(f"{', '.join(alive)}: expected to end within {_ENDS_WITHIN} s, found running")
        time.sleep(0.5)
    return ended


def _alive_in_yarn(manager: str, mark: str, auth: Any) -> Iterator[str]:
    asked = {"applicationTags": mark, "states": _ALIVE, **_user()}
    answer = requests.get(f"{manager}/ws/v1/cluster/apps", params=asked, auth=auth, timeout=_SECONDS)
    answer.raise_for_status()
    for each in (answer.json().get("apps") or {}).get("app") or ():
        yield str(each["id"])


def _user() -> dict[str, str]:
    """Whom a manager without Kerberos takes the caller for: by default nobody, who may end nothing."""
    return {"user.name": os.environ.get("HADOOP_USER_NAME") or getpass.getuser()}


def end_in_kubernetes(namespace: str, mark: str) -> list[str]:
    """Delete every driver's pod with this label that has not ended; its executors go with it. Returns their names.

    Raises ImportError without Airflow's provider for Kubernetes, whose settings name the cluster, and OSError if the
    cluster does not answer or allow it.
    """
    kubernetes = import_module("airflow.providers.cncf.kubernetes.kube_client")
    no_pod = import_module("kubernetes.config").ConfigException
    try:
        try:
            api = kubernetes.get_kube_client()
        except no_pod:
            # By its settings' default, Airflow takes itself for a pod.
            api = kubernetes.get_kube_client(in_cluster=False)
        pods = api.list_namespaced_pod(namespace, label_selector=f"{MARK_LABEL}={mark}").items
        ended = [pod.metadata.name for pod in pods if pod.status.phase not in ("Succeeded", "Failed")]
        for name in ended:
            _log.info("deleting the driver's pod %s", name)
            api.delete_namespaced_pod(name, namespace)
    except (kubernetes.ApiException, no_pod, HTTPError) as failure:
        raise OSError(f"{namespace}: {failure}") from failure
    return ended
