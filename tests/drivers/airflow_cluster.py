"""The topology of docker-compose.yml as processes on loopback: Postgres, a store, Spark's master and workers, Airflow.

The locked environment and the two wheels are where the images have them: nothing is found through this clone. Each
service has a folder, a home and a temporary folder of its own, and shares nothing with another one but what goes
through the store, the database and the API. A service that ends is started again. Every wait is bounded, and every
process is ended by its id.

    client -- user, password --> api-server -- Postgres
                                     |
      scheduler (tasks, drivers) ----+---- dag-processor, triggerer
          |            \\
    Spark's master      store (policy, reports, tables), behind a proxy
          |            /
    two workers (executors)
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil  # type: ignore[import-untyped]
from cryptography.fernet import Fernet
from tests.drivers.airflow_rest import AirflowRest
from tests.drivers.postgres_server import PostgresServer, serve_postgres
from tests.drivers.pypaimon_oracle import locked_environment
from tests.drivers.s3_server import Bucket, S3Server, serve_s3
from tests.drivers.s3a import s3a_jars
from tests.drivers.store_proxy import StoreProxy
from tests.drivers.supervised import Service, until
from tests.drivers.toolchain import FEW_ROWS, free_port
from tests.support.installed import ROOT, UV, build_wheel
from tests.support.standalone_cluster import MASTER, WORKER

USERS = {"operator": "op", "reader": "viewer", "admin": "admin"}
"""Users of Airflow, by their role."""
START_SECONDS = 180.0
WORKERS = 2
CORES = 2
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_OURS = ("AIRFLOW", "AWS_", "NIGHTKEEP", "PYICEBERG", "PYSPARK", "PYTEST", "PYTHON", "SPARK_", "VIRTUAL")
_DAGS = """\
from nightkeep_airflow.dags import nightly, on_demand, weekly

WHERE = {{"policy": "{bucket}/policy/tables.yaml", "reports": "{bucket}/reports"}}
nightly(schedule=None, is_paused_upon_creation=False, cores={both}, **WHERE)
nightly("second_night", schedule=None, is_paused_upon_creation=False, cores=1, **WHERE)
weekly(schedule=None, is_paused_upon_creation=False, cores={both}, **WHERE)
on_demand(cores=1, **WHERE)
"""
DAGS = ("nightly", "second_night", "orphan_sweep", "on_demand")
_HEALTHY = ("metadatabase", "scheduler", "dag_processor", "triggerer")


@dataclass(frozen=True, slots=True)
class Spark:
    """The standalone cluster, by its master."""

    master: str
    status_url: str

    def status(self) -> Mapping[str, Any]:
        with urlopen(self.status_url, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def applications(self) -> list[str]:
        """Those that the master knows as active."""
        return [str(each["name"]) for each in self.status()["activeapps"]]

    def workers(self) -> int:
        return sum(each["state"] == "ALIVE" for each in self.status()["workers"])


@dataclass(frozen=True)
class Cluster:
    """A running topology. `services` are by the names that docker-compose.yml has."""

    folder: Path
    bucket: Bucket
    store: S3Server
    proxy: StoreProxy
    postgres: PostgresServer
    catalog: str = field(repr=False)
    spark: Spark
    services: Mapping[str, Service]
    base: str
    passwords: Mapping[str, str] = field(repr=False)

    def user(self, name: str) -> AirflowRest:
        return AirflowRest(self.base, name, self.passwords[name])

    @cached_property
    def operator(self) -> AirflowRest:
        return self.user("operator")

    def drivers(self) -> list[Any]:
        """Processes of jobs: spark-submit, its JVM, drivers and looks."""
        return [each for each in self.services["scheduler"].family() if _is_job(each)]

    def executors(self) -> list[Any]:
        names = [name for name in self.services if name.startswith("spark-worker")]
        return [each for name in names for each in self.services[name].family() if "CoarseGrained" in _words(each)]

    def until_idle(self, seconds: float = 60.0) -> None:
        """Until no application, driver or executor is left."""
        until(lambda: not self.left(), "a cluster without jobs", seconds, every=1)

    def left(self) -> list[str]:
        """What is still at work."""
        return [*self.spark.applications(), *filter(None, map(_words, [*self.drivers(), *self.executors()]))]

    def until_healthy(self, seconds: float = START_SECONDS) -> None:
        """Until Airflow's health has no fault and all of Spark's workers are there."""
        until(lambda: not self.faults(), "a healthy cluster", seconds, every=1)

    def faults(self) -> list[str]:
        try:
            health = _get(f"{self.base}/api/v2/monitor/health")
            ill = [name for name in _HEALTHY if (health.get(name) or {}).get("status") != "healthy"]
            return [*ill, *([] if self.spark.workers() == WORKERS else ["spark-worker"])]
        except OSError as failure:
            return [str(failure)]

    def logs_of_tasks(self, characters: int = 4000) -> str:
        """The ends of the newest logs of tasks, for a failure."""
        found = sorted((self.services["scheduler"].folder / "airflow" / "logs").rglob("attempt=*.log"), key=_time)
        return "\n".join(f"--- {log}\n{log.read_text(errors='replace')[-characters:]}" for log in found[-6:])


def _words(process: Any) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def _is_job(process: Any) -> bool:
    words = _words(process)
    return "job_scripts" in words or "SparkSubmit" in words


def _time(path: Path) -> float:
    return path.stat().st_mtime


def _get(url: str) -> dict[str, Any]:
    with urlopen(url, timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


@contextmanager
def serve_cluster(folder: Path) -> Iterator[Cluster]:
    """The whole topology below `folder`, healthy, ended with the context."""
    with ExitStack() as stack:
        environment = stack.enter_context(_Installed(folder / "image").built())
        store = stack.enter_context(serve_s3())
        proxy = stack.enter_context(StoreProxy(store.endpoint))
        postgres = stack.enter_context(serve_postgres())
        bucket = store.bucket()
        making = _Making(folder, environment, postgres, proxy, store, bucket)
        services = making.services()
        for name in ("spark-master", *(each for each in services if each.startswith("spark-worker"))):
            services[name].start()
            stack.callback(services[name].stop)
        making.migrate()
        for name in ("apiserver", "scheduler", "dag-processor", "triggerer"):
            services[name].start()
            stack.callback(services[name].stop)
        cluster = making.cluster(services)
        try:
            cluster.until_healthy()
            _prepare(cluster)
        except (TimeoutError, OSError, RuntimeError) as failure:
            ends = "\n".join(f"--- {each.name}\n{each.tail()}" for each in services.values())
            raise RuntimeError(f"{failure}\n{cluster.faults()}\n{ends}") from failure
        yield cluster


def _prepare(cluster: Cluster) -> None:
    """What an administrator does once: the pool of Spark jobs. The DAGs are there when this returns."""
    admin = cluster.user("admin")
    admin.call("POST", "/pools", {"name": "nightkeep_spark", "slots": 3, "description": "Spark"})

    def known() -> set[str]:
        if broken := admin.call("GET", "/importErrors")["import_errors"]:
            raise RuntimeError(f"expected DAGs, found {broken}")
        return {each["dag_id"] for each in admin.call("GET", "/dags?exclude_stale=true")["dags"]}

    until(lambda: known() >= {*DAGS}, f"the DAGs {DAGS}", START_SECONDS)


@dataclass(frozen=True)
class _Environment:
    """What an image has: programs, packages, and the wheels."""

    programs: Path
    site: Path

    def variables(self, folder: Path) -> dict[str, str]:
        """Of a service with a folder of its own."""
        for name in ("home", "tmp"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        outside = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        return {
            **outside,
            "PATH": f"{self.programs}{os.pathsep}{os.defpath}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.site),
            "PYSPARK_PYTHON": str(self.programs / "python"),
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "tmp"),
            "GX_ANALYTICS_ENABLED": "false",
        }


@dataclass(frozen=True)
class _Installed:
    folder: Path

    @contextmanager
    def built(self) -> Iterator[_Environment]:
        """The locked environment, which is kept, and both wheels in a folder of this cluster."""
        site, wheels = self.folder / "site", self.folder / "wheels"
        environment = locked_environment("cluster", ROOT / "requirements.txt", ROOT / "docker/postgres.txt")
        with ThreadPoolExecutor(2) as pool:
            built = list(pool.map(lambda part: build_wheel(wheels / part, ROOT / part), (".", "plugins")))
        command = [str(UV), "pip", "install", "-q", "--no-deps", "--target", str(site)]
        python = environment / "bin" / "python"
        subprocess.run([*command, "--python", str(python), *map(str, built)], check=True, timeout=START_SECONDS)
        yield _Environment(environment / "bin", site)
        shutil.rmtree(site)


@dataclass(frozen=True)
class _Making:
    folder: Path
    environment: _Environment
    postgres: PostgresServer
    proxy: StoreProxy
    store: S3Server
    bucket: Bucket

    @cached_property
    def ports(self) -> dict[str, int]:
        return {name: free_port() for name in ("api", "health", "logs", "trigger-logs", "master", "status")}

    @cached_property
    def secrets(self) -> dict[str, str]:
        return {name: os.urandom(24).hex() for name in ("jwt", "api", "evidence", *USERS)}

    @cached_property
    def fernet(self) -> str:
        return Fernet.generate_key().decode()

    @cached_property
    def database(self) -> str:
        return self.postgres.uri(self.postgres.database())

    @cached_property
    def catalog(self) -> str:
        return self.postgres.uri(self.postgres.database())

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.ports['api']}"

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.ports['master']}"

    def cluster(self, services: Mapping[str, Service]) -> Cluster:
        return Cluster(
            folder=self.folder,
            bucket=self.bucket,
            store=self.store,
            proxy=self.proxy,
            postgres=self.postgres,
            catalog=self.catalog,
            spark=Spark(self.master, f"http://127.0.0.1:{self.ports['status']}/json/"),
            services=services,
            base=self.base,
            passwords={name: self.secrets[name] for name in USERS},
        )

    def services(self) -> dict[str, Service]:
        python = str(self.environment.programs / "python")
        airflow = {
            "apiserver": (["api-server", "--port", str(self.ports["api"]), "--workers", "1"], self._apiserver),
            "scheduler": (["scheduler"], self._scheduler),
            "dag-processor": (["dag-processor"], dict[str, str]),
            "triggerer": (["triggerer"], dict[str, str]),
        }
        made = {
            name: Service(name, [python, "-m", "airflow", *words], {**self._airflow(name), **more()}, self._of(name))
            for name, (words, more) in airflow.items()
        }
        ports = ["--port", str(self.ports["master"]), "--webui-port", str(self.ports["status"])]
        made["spark-master"] = self._spark("spark-master", [MASTER, "--host", "127.0.0.1", *ports])
        for number in range(WORKERS):
            name = f"spark-worker-{number}"
            size = ["--cores", str(CORES), "--memory", f"{CORES}g", "--work-dir", str(self._of(name) / "work")]
            made[name] = self._spark(name, [WORKER, "--host", "127.0.0.1", *size, self.master])
        return made

    def migrate(self) -> None:
        """Airflow's own preparation of its database, as the service airflow-init does it."""
        command = [str(self.environment.programs / "python"), "-m", "airflow", "db", "migrate"]
        done = subprocess.run(
            command,
            env=self._airflow("airflow-init"),
            cwd=self._of("airflow-init"),
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"airflow db migrate: expected status 0, found {done.returncode}: {done.stderr[-3000:]}")

    def _of(self, name: str) -> Path:
        return self.folder / name

    def _spark(self, name: str, words: Sequence[str]) -> Service:
        daemon = {"SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false", "SPARK_DAEMON_JAVA_OPTS": _QUICK}
        environ = {**self.environment.variables(self._of(name)), **self._spark_conf(name), **daemon}
        if name != "spark-master":
            environ |= self._buckets()
        return Service(name, [str(self.environment.programs / "spark-class"), *words], environ, self._of(name))

    def _spark_conf(self, name: str) -> dict[str, str]:
        """spark-defaults.conf, in a folder of the service. The images have the jars of S3A among Spark's own."""
        jars = os.pathsep.join(map(str, s3a_jars()))
        settings = {
            **FEW_ROWS,
            "spark.driver.extraClassPath": jars,
            "spark.executor.extraClassPath": jars,
            "spark.executor.extraJavaOptions": _QUICK,
            "spark.driver.host": "127.0.0.1",
        }
        folder = self._of(name) / "conf"
        folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{key} {value}\n" for key, value in settings.items())
        (folder / "spark-defaults.conf").write_text(lines, encoding="utf-8")
        return {"SPARK_CONF_DIR": str(folder)}

    def _buckets(self) -> dict[str, str]:
        return dict(self.store.environment(self.proxy.endpoint))

    def _airflow(self, name: str) -> dict[str, str]:
        """What docker-compose.yml gives each service of Airflow, and shorter waits for what has died."""
        dags = self._of(name) / "dags"
        dags.mkdir(parents=True, exist_ok=True)
        text = _DAGS.format(bucket=self.bucket.uri, both=WORKERS)
        (dags / "lake.py").write_text(text, encoding="utf-8")
        return {
            **self.environment.variables(self._of(name)),
            "AIRFLOW_HOME": str(self._of(name) / "airflow"),
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "AIRFLOW__CORE__FERNET_KEY": self.fernet,
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.base}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in USERS.items()),
            "AIRFLOW__CORE__HOSTNAME_CALLABLE": "airflow.utils.net.get_host_ip_address",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": self.database,
            "AIRFLOW__API__SECRET_KEY": self.secrets["api"],
            "AIRFLOW__API__BASE_URL": self.base,
            "AIRFLOW__API_AUTH__JWT_SECRET": self.secrets["jwt"],
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(self.ports["logs"]),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(self.ports["trigger-logs"]),
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "40",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
            "AIRFLOW_CONN_NIGHTKEEP_SPARK": json.dumps(
                {"conn_type": "spark", "host": self.master, "extra": {"deploy-mode": "client"}}
            ),
            "NIGHTKEEP_RETRY_DELAY_SECONDS": "2",
        }

    def _apiserver(self) -> dict[str, str]:
        """The passwords of the users, in a file that only this service has."""
        file = self._of("apiserver") / "passwords.json"
        file.write_text(json.dumps({name: self.secrets[name] for name in USERS}), encoding="utf-8")
        return {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(file), **self._buckets()}

    def _scheduler(self) -> dict[str, str]:
        """Drivers run here: it has what reaches the store and the catalog, and Spark's settings."""
        return {
            **self._buckets(),
            **self._spark_conf("scheduler"),
            "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "true",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(self.ports["health"]),
            "NIGHTKEEP_EVIDENCE_SECRET": self.secrets["evidence"],
            "PYICEBERG_CATALOG__LAKE__URI": self.catalog,
            "SPARK_SUBMIT_OPTS": _QUICK,
            "SPARK_LAUNCHER_OPTS": _QUICK,
        }
