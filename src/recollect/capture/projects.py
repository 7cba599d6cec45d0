"""Which project a folder belongs to: its git remote, or else its path. Nothing is run to find out."""

import re
from configparser import ConfigParser, Error
from pathlib import Path

from ..memory.offline.work import PROJECT_AGENT

_LONGEST = 200  # characters
_SCP = re.compile(r"(?:[^@/]+@)?(?P<host>[^:/]+):(?P<path>(?!//).+)")
_URL = re.compile(r"\w+://(?:[^@/]*@)?(?P<host>[^:/]+)(?::\d+)?/(?P<path>.+)")


def agent_of(cwd: str | None, remote: str | None = None) -> str:
    """The agent whose memory is that of the project in a folder."""
    return f"{PROJECT_AGENT}{project_of(cwd, remote)}"[:_LONGEST]


def project_of(cwd: str | None, remote: str | None = None) -> str:
    """The name of a project, such as `github.com/acme/shop`; the path of its folder if it has no remote."""
    if remote and (name := _name_of(remote)):
        return name
    if not cwd:
        return "unknown"
    folder = Path(cwd)
    root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    found = _remote_of(root / ".git") if root else None
    return (found and _name_of(found)) or _shown(root or folder)


def is_within(cwd: str | None, folders: list[str]) -> bool:
    """Whether a folder is one of these, or inside one."""
    if cwd is None:
        return False
    places = (Path(cwd), Path(cwd).resolve())  # a link leads into the folder, too
    return any(place.is_relative_to(folder) for place in places for folder in folders)


def _shown(folder: Path) -> str:
    home = Path.home()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)


def _name_of(remote: str) -> str | None:
    """Host and path of a remote, however it is written, and without credentials."""
    found = _URL.fullmatch(remote) or _SCP.fullmatch(remote)
    if found is None:
        return None
    return f"{found['host'].lower()}/{found['path'].strip('/').removesuffix('.git')}"


def _remote_of(git: Path) -> str | None:
    try:
        if git.is_file():  # a worktree, or a submodule
            git = (git.parent / git.read_text("utf-8").removeprefix("gitdir:").strip()).resolve()
            common = git / "commondir"
            git = (git / common.read_text("utf-8").strip()).resolve() if common.is_file() else git
        parser = ConfigParser(strict=False, interpolation=None, allow_no_value=True)
        parser.read(git / "config", "utf-8")
        names = [name for name in parser.sections() if name.startswith("remote ")]
        first = 'remote "origin"' if 'remote "origin"' in names else next(iter(names), None)
        return parser.get(first, "url", fallback=None) if first else None
    except (OSError, UnicodeDecodeError, Error):
        return None
