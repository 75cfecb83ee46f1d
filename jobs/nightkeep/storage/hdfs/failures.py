"""An error of the HDFS client -> one sentence that states what was asked, what came back, and what to set."""

from __future__ import annotations

import re
from typing import Final

from nightkeep.errors import AddressError, MissingFile, RefusedTable


def failure_of(subject: str, authority: str, failure: BaseException, *, of_bytes: bool = False) -> Exception:
    """MissingFile, FileExistsError, NotADirectoryError, PermissionError, RefusedTable, AddressError or an OSError.

    A call `of_bytes` is answered by datanodes, any other by the namenode.
    """
    match = _JAVA.search(str(failure))
    kind, text = (match[1], match[2]) if match else ("", _first_line(str(failure)))
    if _NO_FOLDER.search(text):
        return NotADirectoryError(f"{subject}: expected folders on its path, found a file")
    if isinstance(failure, FileNotFoundError):
        return MissingFile(subject, "a file that metadata names", "no such file")
    if isinstance(failure, FileExistsError):
        return FileExistsError(f"{subject}: {text}")
    if isinstance(failure, NotImplementedError):
        return RefusedTable(subject, f"{text} of HDFS", "keep the table in a folder without it")
    if refusal := _refusal(subject, authority, kind, text):
        return refusal
    if isinstance(failure, OSError) and not of_bytes:
        return silence_of(subject, authority, text)
    if isinstance(failure, OSError) or _NO_DATANODE.search(text):
        return idleness_of(subject, text)
    return OSError(f"{subject}: {kind.rpartition('.')[2]} {text}" if kind else f"{subject}: {text}")


def silence_of(subject: str, authority: str, why: str) -> OSError:
    """The error of a namenode that does not answer."""
    advice = "see that it runs, name its host and port, or set HADOOP_CONF_DIR to the folder of its hdfs-site.xml"
    return OSError(f"{subject}: no answer from the namenode at {authority} ({why}); {advice}")


def idleness_of(subject: str, why: str) -> OSError:
    """The error of datanodes that take or give no bytes."""
    advice = "see that the cluster's datanodes run, and that this machine reaches them and the namenode"
    return OSError(f"{subject}: no datanode takes or gives its bytes ({why}); {advice}")


def _refusal(subject: str, authority: str, kind: str, text: str) -> Exception | None:
    """The error of a cluster that answers and refuses; None if it is not one."""
    if "No NameNode hosts found" in text:
        advice = "set HADOOP_CONF_DIR to the folder of its hdfs-site.xml, or name a host and a port"
        return AddressError(f"{subject}: expected {authority} to be a nameservice, found no such setting; {advice}")
    if _KEYLESS in text:
        advice = "set hadoop.security.key.provider.path in core-site.xml, or keep the table in another folder"
        return RefusedTable(subject, "an encryption zone of HDFS", advice)
    if _KERBEROS.search(f"{kind} {text}"):
        return PermissionError(f"{subject}: the namenode at {authority} asks for Kerberos ({text}); {_SIGN_IN}")
    if _HUNG_UP in text:
        advice = f"see that it runs; if it asks for Kerberos, {_SIGN_IN}"
        return OSError(f"{subject}: the namenode at {authority} ended the connection ({text}); {advice}")
    if kind.endswith("AccessControlException"):
        return PermissionError(f"{subject}: access denied ({text}); set HADOOP_USER_NAME to a user who has access")
    if "SafeMode" in kind or "safe mode" in text:
        advice = "wait until it ends, or end it: hdfs dfsadmin -safemode leave"
        return OSError(f"{subject}: the namenode at {authority} is in safe mode and changes nothing; {advice}")
    if kind.endswith("StandbyException"):
        advice = "name the nameservice instead, and set HADOOP_CONF_DIR to the folder of its hdfs-site.xml"
        return OSError(f"{subject}: the namenode at {authority} is on standby; {advice}")
    return None


def _first_line(text: str) -> str:
    """What a person needs of an answer: no stack trace, and no description of every datanode."""
    line = re.split(r"\n|\\n", text, maxsplit=1)[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


_SIGN_IN: Final = (
    "set HADOOP_CONF_DIR to the folder of a core-site.xml with hadoop.security.authentication, and run kinit or name a "
    "keytab in KRB5_CLIENT_KTNAME"
)
_HUNG_UP: Final = "RPC listener disconnected"
"""The error of a namenode that requires Kerberos from a client without it, and of one that shuts down."""
_KEYLESS: Final = "is in an HDFS encryption zone but no KMS provider is configured"
_LONGEST: Final = 200
_JAVA: Final = re.compile(r'RPCError\("([\w.$]+)", "((?:[^"\\]|\\[^n])*)')
_NO_FOLDER: Final = re.compile(r"\(is not a directory\)")
_KERBEROS: Final = re.compile(
    r"SASLError|GSSAPIError|NoSASLMechanism|SIMPLE authentication is not enabled|GSSException"
)
_NO_DATANODE: Final = re.compile(
    r"DataTransferError|BlocksNotFound|could only be written to \d+ of the|All (?:DataNodes|nodes) failed"
)
