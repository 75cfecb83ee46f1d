"""docker-compose.yml against what it refers to: files, commands, settings, ports. It starts no container."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml
from tests.drivers import s3a
from tests.support.airflow_home import airflow_home, with_database

from nightkeep.model import Operation, Outcome
from nightkeep.records import RunDocument, held, hold
from nightkeep.storage.objects.clients import _VARIABLES

ROOT = Path(__file__).parents[2]
IMAGE_ROOT = "/opt/nightkeep"
SERVICE_KEYS = {
    *("build", "image", "user", "restart", "environment", "volumes", "depends_on", "command", "ports"),
    *("healthcheck", "hostname", "logging", "mem_limit", "profiles", "stop_grace_period"),
}
HEALTHCHECK_KEYS = {"test", "interval", "timeout", "retries", "start_period"}
CONDITIONS = {"service_healthy", "service_completed_successfully"}
VARIABLE = re.compile(r"\$\{(\w+)(:[?-][^}]*)?\}")


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


SERVICES: dict[str, dict[str, Any]] = compose()["services"]
AIRFLOW_SERVICES = ("airflow-init", "apiserver", "scheduler", "dag-processor", "triggerer", "housekeeping")


def commands() -> list[list[str]]:
    """Every command line of services and health checks, shell scripts split into theirs, without their `exec`. The
    store's are arguments of its image's own program."""
    found = []
    for name, service in SERVICES.items():
        command = None if name == "store" else service.get("command")
        for line in (command, service.get("healthcheck", {}).get("test")):
            match line:
                case None:
                    continue
                case ["CMD", *words]:
                    found.append(words)
                case ["CMD-SHELL", script]:
                    found += [shlex.split(part) for part in script.split("|")]
                case ["bash", "-ec", script]:
                    found += [shlex.split(row.removeprefix("exec ")) for row in script.splitlines()]
                case _:
                    found.append(line)
    return found


def airflow_commands() -> list[list[str]]:
    return [line for line in commands() if line[0] == "airflow"]


def test_top_level_has_services_and_the_volumes_they_use() -> None:
    document = compose()
    assert {key for key in document if not key.startswith("x-")} == {"name", "services", "volumes"}
    named = {m.split(":")[0] for s in SERVICES.values() for m in s.get("volumes", [])}
    assert {name for name in named if name[0] not in "./$"} == set(document["volumes"])


@pytest.mark.parametrize("name", SERVICES)
def test_service_uses_known_keys(name: str) -> None:
    service = SERVICES[name]
    assert set(service) <= SERVICE_KEYS
    assert set(service.get("healthcheck", {})) <= HEALTHCHECK_KEYS
    assert "image" in service


@pytest.mark.parametrize("name", SERVICES)
def test_dependencies_exist_and_can_meet_their_condition(name: str) -> None:
    for target, dependency in SERVICES[name].get("depends_on", {}).items():
        assert dependency["condition"] in CONDITIONS
        runs_on = SERVICES[target]["restart"] != "no"
        assert runs_on == (dependency["condition"] == "service_healthy"), target
        assert not runs_on or "healthcheck" in SERVICES[target], target


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_that_keeps_running_has_a_healthcheck(name: str) -> None:
    assert (SERVICES[name]["restart"] == "no") != ("healthcheck" in SERVICES[name])


def test_ports_are_published_on_loopback_only_and_once() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in ports)
    assert len({port.split(":")[1] for port in ports}) == len(ports) == 3


@pytest.mark.parametrize("name", SERVICES)
def test_mounted_paths_exist_and_are_those_of_the_image(name: str) -> None:
    for source, target in (mount.split(":")[:2] for mount in _substituted(SERVICES[name].get("volumes", []))):
        assert not source.startswith(".") or (ROOT / source).exists(), source
        if source.startswith("."):
            assert target == f"{IMAGE_ROOT}/{source.removeprefix('./')}"


def test_secrets_come_from_outside_and_are_required() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    required = {name for name, rule in VARIABLE.findall(text) if rule.startswith(":?")}
    assert required == {
        *("NIGHTKEEP_WAREHOUSE", "POSTGRES_PASSWORD", "FERNET_KEY", "JWT_SECRET", "API_SECRET_KEY"),
        "NIGHTKEEP_ADMIN_PASSWORD",
    }
    assert all(rule for _, rule in VARIABLE.findall(text)), "a variable without a default must be required"
    settings = [item for s in SERVICES.values() for item in s.get("environment", {}).items() if item[1] is not None]
    of_store = SERVICES["store"]["environment"]
    assert of_store["ROOT_SECRET_KEY"] == "${AWS_SECRET_ACCESS_KEY:-}", "it is only needed where the store is started"
    named = [item for item in settings if item not in of_store.items()]
    secrets = [value for key, value in named if re.search("PASSWORD$|SECRET|FERNET", key)]
    assert all(re.fullmatch(r"\$\{\w+:\?[^}]+\}", value) for value in secrets)
    assert len(secrets) == 3 * len(AIRFLOW_SERVICES) + 2


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_bounded_and_has_time_to_end(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"\d+g", _by_default(str(service["mem_limit"])))
    assert service["stop_grace_period"] in ("30s", "1m")
    assert service["restart"] in ("unless-stopped", "no")
    assert service["logging"]["options"] == {"max-size": "20m", "max-file": "5"}


def test_limits_fit_what_runs_in_them_and_what_the_header_states() -> None:
    limits = {name: int(_by_default(str(each["mem_limit"])).rstrip("g")) for name, each in SERVICES.items()}
    running = {name: each for name, each in limits.items() if SERVICES[name]["restart"] != "no"}
    header = (ROOT / "docker-compose.yml").read_text().partition("\nname:")[0]
    assert f"together {sum(running.values()) - running['spark-worker'] - running['store']} GB" in header
    worker = _by_default(_option(SERVICES["spark-worker"]["command"], "--memory")).rstrip("g")
    assert running["spark-worker"] == 2 * int(worker) + 2
    # Two drivers of 2 GB of heap, one in each slot that the pool may get, beside Airflow's own processes.
    assert running["scheduler"] >= 6


def test_no_health_check_starts_a_python() -> None:
    """One each few seconds in each container would take more than the services do at rest."""
    tests = [each["healthcheck"]["test"] for each in SERVICES.values() if "healthcheck" in each]
    assert not [test for test in tests if {"python", "airflow", "nightkeep"} & {*test[1].split()}]


def test_the_store_and_its_bucket_start_together_and_nothing_waits_for_them() -> None:
    optional = {name for name, each in SERVICES.items() if each.get("profiles") == ["store"]}
    assert optional == {"store", "first-bucket"}
    assert {name for name, each in SERVICES.items() if optional & each.get("depends_on", {}).keys()} == {"first-bucket"}
    header = (ROOT / "docker-compose.yml").read_text().partition("\nname:")[0]
    assert "COMPOSE_PROFILES=store" in header
    assert SERVICES["first-bucket"]["environment"]["AWS_ENDPOINT_URL"] in header


def test_airflow_services_share_one_environment() -> None:
    shared = SERVICES["dag-processor"]["environment"]
    for name in AIRFLOW_SERVICES:
        assert shared.items() <= SERVICES[name]["environment"].items(), name


def test_airflow_settings_exist() -> None:
    # Not through an import: the package configures itself when it is imported.
    installed = Path(sysconfig.get_path("purelib"), "airflow")
    config = yaml.safe_load((installed / "config_templates/config.yml").read_text())
    for key in SERVICES["scheduler"]["environment"]:
        if key.startswith("AIRFLOW__"):
            _, section, option = key.lower().split("__")
            assert option in config[section]["options"], key


def test_variables_of_ours_are_read_by_code_or_policy() -> None:
    sources = [path for glob in ("plugins/**/*.py", "dags/*", "jobs/nightkeep/**/*.py") for path in ROOT.glob(glob)]
    sources += [*ROOT.glob("docker/*.py"), *ROOT.glob("docker/*.sh")]
    text = "\n".join(path.read_text() for path in sources if path.suffix in {".py", ".sh", ".yaml"})
    # Settings of minutes are read by their stem.
    text += "".join(f"NIGHTKEEP_{stem}_MINUTES" for stem in re.findall(r'minutes\("(\w+)"', text))
    ours = {k for s in SERVICES.values() for k in s.get("environment", {}) if k.startswith("NIGHTKEEP_")}
    assert {key for key in ours if key not in text} == set()
    assert f"AIRFLOW_CONN_{'nightkeep_spark'.upper()}" in SERVICES["scheduler"]["environment"]


def test_scheduler_and_worker_see_the_tables_at_the_same_place() -> None:
    mounts = [
        {mount for mount in SERVICES[name]["volumes"] if mount.endswith(":/warehouse")}
        for name in ("scheduler", "spark-worker")
    ]
    assert mounts[0] == mounts[1] != set()
    assert SERVICES["scheduler"]["environment"]["NIGHTKEEP_WAREHOUSE"] == "/warehouse"


def test_drivers_and_workers_reach_buckets_by_variables_that_we_read() -> None:
    """Executors of a standalone cluster have their worker's environment, not their driver's."""
    passed = [
        {name for name, value in SERVICES[service].get("environment", {}).items() if value is None}
        for service in ("scheduler", "spark-worker")
    ]
    assert passed[0] == passed[1] == {*compose()["x-buckets"]}
    assert passed[0] <= {name for names in _VARIABLES.values() for name in names}


def test_the_jars_of_the_image_are_those_of_sparks_hadoop() -> None:
    text = (ROOT / "docker/spark-jars/pom.xml").read_text()
    found = dict(re.findall(r"<artifactId>(hadoop-aws|bundle)</artifactId>\s*<version>([0-9.]+)</version>", text))
    (hadoop,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    assert found == {"hadoop-aws": hadoop.stem.rpartition("-")[2], "bundle": s3a.SDK}
    assert f"org.apache.hadoop:hadoop-aws:{found['hadoop-aws']}" == s3a.HADOOP
    image = (ROOT / "docker/Dockerfile").read_text()
    version = re.search(r"^FROM python:(3\.\d+)-", image, re.MULTILINE)
    assert version and f"/usr/local/lib/python{version[1]}/site-packages/pyspark/jars/" in image


def test_catalogs_are_reported_where_the_tables_are() -> None:
    """pyiceberg looks there for .pyiceberg.yaml; only drivers ask catalogs, and they run in the scheduler."""
    environment = SERVICES["scheduler"]["environment"]
    assert environment["PYICEBERG_HOME"] == environment["NIGHTKEEP_WAREHOUSE"]


def test_pages_are_served_from_where_the_scheduler_writes_them() -> None:
    reports = _by_default(SERVICES["scheduler"]["environment"]["NIGHTKEEP_REPORTS"])
    assert all(f"reports:{reports}" in SERVICES[name]["volumes"] for name in ("scheduler", "apiserver"))


def test_connection_points_at_the_master() -> None:
    connection = json.loads(SERVICES["scheduler"]["environment"]["AIRFLOW_CONN_NIGHTKEEP_SPARK"])
    address = f"{connection['host']}:{connection['port']}"
    assert address == SERVICES["spark-worker"]["command"][-1]
    master = SERVICES["spark-master"]
    assert address == f"spark://{master['hostname']}:{_option(master['command'], '--port')}"


def test_executables_are_in_the_environment() -> None:
    installed = Path(sys.executable).parent
    outside = {"bash", "find", "grep", "pg_isready", "wget", *installed_by_the_image()}
    assert {line[0] for line in commands() if not (installed / line[0]).exists()} <= outside


@pytest.mark.slow
def test_the_image_has_the_command_and_the_script_that_prepares_airflow() -> None:
    scripts = installed_by_the_image()
    assert scripts == {
        "nightkeep": "docker/nightkeep.sh",
        "nightkeep-init": "docker/init.sh",
        "nightkeep-entrypoint": "docker/entrypoint.sh",
        "nightkeep-healthy": "docker/healthy.sh",
        "nightkeep-housekeeping": "docker/housekeeping.sh",
    }
    for source in scripts.values():
        assert subprocess.run(["sh", "-n", ROOT / source], check=False).returncode == 0, source


@pytest.fixture
def image(tmp_path: Path) -> dict[str, str]:
    """The scheduler's environment, with its folders below `tmp_path` and the image's scripts on its path."""
    for folder in ("dags", "docker"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "bin").mkdir()
    for name, source in installed_by_the_image().items():
        shutil.copy(ROOT / source, tmp_path / "bin" / name)
        (tmp_path / "bin" / name).chmod(0o755)
    shutil.copytree(ROOT / "samples/paimon", tmp_path / "warehouse/paimon")
    told = {key: value for key, value in SERVICES["scheduler"]["environment"].items() if value is not None}
    placed = {key: _placed(value, tmp_path) for key, value in told.items() if key.startswith("NIGHTKEEP_")}
    path = [str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {**placed, "PATH": os.pathsep.join(path), "PYTHONPATH": str(ROOT / "jobs"), "HOME": str(tmp_path)}


@pytest.mark.slow
def test_the_command_finds_policy_and_reports_in_the_schedulers_container(
    image: dict[str, str], tmp_path: Path
) -> None:
    def call(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=image, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )

    explained = call("nightkeep", "explain", "shop.orders")
    assert (explained.returncode, explained.stderr) == (0, "")
    assert f"{tmp_path}/warehouse/paimon/shop.db/orders" in explained.stdout
    now = datetime.now(UTC)
    document = RunDocument(
        run_id="r",
        table="shop.orders",
        format="paimon",
        operation=Operation.UPGRADE,
        outcome=Outcome.MISMATCH,
        reason="on purpose",
        committed_version=8,
        started_at=now,
        finished_at=now,
    )
    hold(image["NIGHTKEEP_REPORTS"], "shop.orders", document)
    assert call("nightkeep", "release", "shop.orders").returncode == 0
    assert held(image["NIGHTKEEP_REPORTS"], "shop.orders") is None
    nothing = call("python", "-m", "nightkeep.commands.app", "restore", "shop.orders", "never-ran")
    assert nothing.returncode != 0
    assert "never-ran" in nothing.stdout + nothing.stderr


@pytest.mark.extended
def test_preparing_airflow_again_leaves_the_pool_as_it_was_set(
    image: dict[str, str], tmp_path: Path, airflow_database: Path
) -> None:
    airflow = with_database(airflow_home(_made(tmp_path / "home"), ()), airflow_database)

    def pool() -> list[tuple[int, ...]]:
        return airflow.query("select slots from slot_pool where pool = 'nightkeep_spark'")

    changes = {"delete from slot_pool where pool = 'nightkeep_spark'": 1, "update slot_pool set slots = 3": 3}
    for before, slots in changes.items():
        with sqlite3.connect(airflow.home / "airflow.db") as database:
            database.execute(before)
        done = subprocess.run(
            ["nightkeep-init"],
            env={**airflow.environ, "PATH": image["PATH"]},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert pool() == [(slots,)]


def passwords(path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    script = shlex.split(SERVICES["apiserver"]["command"][2].splitlines()[0])
    return subprocess.run(
        [sys.executable, *script[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(path), **environ},
    )


@pytest.mark.slow
@pytest.mark.parametrize("password", [None, "", "admin", "seven77", "Password"])
def test_a_password_that_others_would_guess_is_refused(tmp_path: Path, password: str | None) -> None:
    done = passwords(tmp_path / "p.json", **({} if password is None else {"NIGHTKEEP_ADMIN_PASSWORD": password}))
    assert done.returncode == 2
    assert done.stderr.startswith("NIGHTKEEP_ADMIN_PASSWORD: expected at least 8 characters")
    assert not password or f" {password} " not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.extended
def test_the_admins_password_is_the_one_that_was_set_in_every_container(tmp_path: Path, airflow_database: Path) -> None:
    airflow = with_database(airflow_home(_made(tmp_path / "home"), ()), airflow_database)
    file = tmp_path / "passwords.json"
    found = []
    for password in ("correct horse", "correct horse", 'other "battery'):
        # A container made anew has no file of the one before it.
        file.unlink(missing_ok=True)
        assert passwords(file, NIGHTKEEP_ADMIN_PASSWORD=password).returncode == 0
        assert file.stat().st_mode & 0o777 == 0o600
        found.append(json.loads(file.read_text())["admin"])
    assert found == ["correct horse", "correct horse", 'other "battery']
    said = airflow.python(
        """
import json
from airflow.api_fastapi.app import create_app
from fastapi.testclient import TestClient
with TestClient(create_app(apps="core")) as client:
    def log_in(password):
        return client.post("/auth/token", json={"username": "admin", "password": password}).status_code
    print(json.dumps([log_in('other "battery'), log_in("correct horse"), log_in("admin")]))""",
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE=str(file),
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS=SERVICES["apiserver"]["environment"][
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"
        ],
    )
    assert said == [201, 401, 401]


def test_the_header_states_how_the_paused_dags_are_switched_on() -> None:
    header = (ROOT / "docker-compose.yml").read_text().partition("\nname:")[0]
    for dag in ("nightly", "orphan_sweep"):
        assert f"docker compose exec scheduler airflow dags unpause {dag}" in header
    assert set(re.findall(r"exec scheduler nightkeep (\w+)", header)) == {"history", "explain", "release", "restore"}


@pytest.mark.slow
def test_airflow_parses_the_commands() -> None:
    # In a process of its own: the command line's modules configure Airflow when they are imported.
    script = (
        "import json, sys; from airflow.cli.cli_parser import get_parser\n"
        "[get_parser().parse_args(line[1:]) for line in json.loads(sys.argv[1])]"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(airflow_commands())], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_spark_classes_are_in_the_distribution() -> None:
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-core_*.jar")
    with zipfile.ZipFile(jar) as archive:
        names = set(archive.namelist())
    classes = [line[1] for line in commands() if line[0] == "spark-class"]
    assert len(classes) == 2
    assert {name for name in classes if f"{name.replace('.', '/')}.class" not in names} == set()


def test_image_copies_what_exists_and_its_context_lets_it_through() -> None:
    lines = (ROOT / "docker/Dockerfile").read_text().splitlines()
    copies = [shlex.split(line)[1:-1] for line in lines if line.startswith("COPY")]
    copies = [copy for copy in copies if not copy[0].startswith("--from=")]
    sources = [s for s in itertools.chain.from_iterable(copies) if not s.startswith("--")]
    assert {source for source in sources if not (ROOT / source).exists()} == set()
    allowed = {
        line.removeprefix("!")
        for line in (ROOT / "docker/Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    assert set(sources) == allowed
    assert SERVICES["scheduler"]["build"] == {"context": ".", "dockerfile": "docker/Dockerfile"}


def installed_by_the_image() -> dict[str, str]:
    """Scripts that the image has on its path, by name, and where they come from."""
    text = (ROOT / "docker/Dockerfile").read_text()
    return {
        name: source
        for source, name in re.findall(r"^COPY --chmod=755 (\S+) /usr/local/bin/(\S+)$", text, re.MULTILINE)
    }


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _placed(value: str, root: Path) -> str:
    inside = _by_default(value).replace(IMAGE_ROOT, str(root))
    return str(root / "warehouse") if inside == "/warehouse" else inside


def _by_default(value: str) -> str:
    """A value without variables of the shell that starts the services."""
    return re.sub(r"\$\{\w+:-(.*?)\}", r"\1", value)


def _substituted(mounts: list[str]) -> list[str]:
    return [VARIABLE.sub("/outside", mount) for mount in mounts]


def _option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]
