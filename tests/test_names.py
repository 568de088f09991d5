# SPDX-License-Identifier: Apache-2.0
"""Who serves the import name `nki`: Sterna, a real package, or nobody. Each case runs in an interpreter of its own.

The cases use a small stand-in for an installation (the real hook and .pth, a `nki` of one line), so that they say what
the finder does and nothing about the front end; the last ones use the installed package.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHOW = "import nki; print(nki.OWNER)"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def site(tmp_path):
    """A folder like site-packages that holds Sterna's hook and a stand-in front end."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name in ("_sterna_hook.py", "sterna_compat.pth"):
        shutil.copy(ROOT / "python" / name, folder / name)
    # Importing the package at start-up would cost every Python program; here it is an error.
    write(folder / "sterna/__init__.py", "raise SystemExit('the hook imported the package sterna')")
    write(folder / "sterna/_names/nki/__init__.py", "OWNER = 'sterna'\n")
    write(folder / "sterna/_names/nki/language.py", "OWNER = 'sterna language'\n")
    write(folder / "sterna/_names/neuronxcc/__init__.py", "OWNER = 'sterna'\n")
    return folder


def install(folder, name, version, owner, distribution=None):
    """An installed distribution with one package."""
    distribution = distribution or name
    write(folder / name / "__init__.py", f"OWNER = {owner!r}\n")
    info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")


def python(code, site, cwd, compat=None):
    """Runs `code` with `site` as a site folder (its .pth files count) and `cwd` first on the path, as `python -c`."""
    environment = {key: value for key, value in os.environ.items() if key not in ("STERNA_COMPAT", "PYTHONPATH")}
    if compat is not None:
        environment["STERNA_COMPAT"] = compat
    start = f"import site, sys; site.addsitedir({str(site)!r}); "
    done = subprocess.run(
        [sys.executable, "-S", "-c", start + code], cwd=cwd, env=environment, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def test_the_name_is_served(site, tmp_path):
    assert python(SHOW, site, tmp_path) == "sterna"


def test_submodules_are_served(site, tmp_path):
    assert python("import nki.language as nl; print(nl.OWNER)", site, tmp_path) == "sterna language"
    assert python("from nki import language; print(language.__name__)", site, tmp_path) == "nki.language"
    assert python("import nki.nothing", site, tmp_path) == "ModuleNotFoundError: No module named 'nki.nothing'"


def test_every_folder_is_a_name(site, tmp_path):
    assert python("import neuronxcc; print(neuronxcc.OWNER)", site, tmp_path) == "sterna"
    assert "No module named 'torch_neuronx'" in python("import torch_neuronx", site, tmp_path)


def test_the_finder_stands_in_front_once(site, tmp_path):
    code = "import _sterna_hook; _sterna_hook.install(); names = [type(f).__module__ for f in sys.meta_path]; "
    code += "print(names.index('_sterna_hook'), names.count('_sterna_hook'))"
    assert python(code, site, tmp_path) == "0 1"


def test_a_folder_of_that_name_does_not_shadow(site, tmp_path):
    (tmp_path / "nki" / "docs").mkdir(parents=True)
    write(tmp_path / "nki" / "kernels.py", "")
    assert python(SHOW, site, tmp_path) == "sterna"
    assert python("import nki.language as nl; print(nl.OWNER)", site, tmp_path) == "sterna language"


def test_a_placeholder_distribution_does_not_win(site, tmp_path):
    install(site, "nki", "0.0.1", "placeholder")
    assert python(SHOW, site, tmp_path) == "sterna"


@pytest.mark.parametrize("version", ["0.2.0", "0.6.1", "2.29.5", "0.1.0"])
def test_a_real_package_wins(site, tmp_path, version):
    install(site, "nki", version, "aws")
    assert python(SHOW, site, tmp_path) == "aws"
    assert python("import nki.language", site, tmp_path) == "ModuleNotFoundError: No module named 'nki.language'"


def test_a_distribution_of_another_name_is_judged_too(site, tmp_path):
    install(site, "neuronxcc", "1.0.post1", "placeholder", distribution="neuronx-cc")
    assert python("import neuronxcc; print(neuronxcc.OWNER)", site, tmp_path) == "sterna"
    shutil.rmtree(site / "neuronx_cc-1.0.post1.dist-info")
    install(site, "neuronxcc", "2.21.1", "aws", distribution="neuronx-cc")
    assert python("import neuronxcc; print(neuronxcc.OWNER)", site, tmp_path) == "aws"


def test_a_real_package_in_the_working_folder_wins_beside_a_placeholder(site, tmp_path):
    install(site, "nki", "0.0.1", "placeholder")
    write(tmp_path / "nki" / "__init__.py", "OWNER = 'mine'\n")
    assert python(SHOW, site, tmp_path) == "mine"


def test_a_single_module_counts_as_real(site, tmp_path):
    write(tmp_path / "nki.py", "OWNER = 'mine'\n")
    assert python(SHOW, site, tmp_path) == "mine"


def test_force_wins_over_a_real_package(site, tmp_path):
    install(site, "nki", "0.6.1", "aws")
    assert python(SHOW, site, tmp_path, compat="force") == "sterna"


def test_off_serves_nothing(site, tmp_path):
    assert python(SHOW, site, tmp_path, compat="off") == "ModuleNotFoundError: No module named 'nki'"
    install(site, "nki", "0.0.1", "placeholder")
    assert python(SHOW, site, tmp_path, compat="off") == "placeholder"


def test_an_unknown_switch_is_said(site, tmp_path):
    said = "ImportError: STERNA_COMPAT='on' is not known: use off, force or auto"
    assert python(SHOW, site, tmp_path, compat="on") == said


def test_find_spec_without_import(site, tmp_path):
    code = "import importlib.util as u; print(u.find_spec('nki').origin, 'nki' in sys.modules)"
    assert python(code, site, tmp_path) == f"{site}/sterna/_names/nki/__init__.py False"


def test_other_names_are_left_alone(site, tmp_path):
    code = "import json, nki; print(json.__spec__.loader.__class__.__name__, sys.meta_path[0].find_spec('json'))"
    assert python(code, site, tmp_path).endswith("None")


def test_start_up_costs_less_than_a_millisecond(site, tmp_path):
    # The fastest of several starts: load on the machine adds time, never takes it away.
    code = "import time; del sys.meta_path[0], sys.modules['_sterna_hook']; t = time.perf_counter(); "
    code += "import _sterna_hook; _sterna_hook.install(); print(time.perf_counter() - t)"
    assert min(float(python(code, site, tmp_path)) for _ in range(7)) < 1e-3


def test_the_installed_package_serves_nki(tmp_path):
    (tmp_path / "nki").mkdir()
    code = "import sys, importlib.util as u; assert 'sterna' not in sys.modules; print(u.find_spec('nki').origin)"
    environment = {key: value for key, value in os.environ.items() if key not in ("STERNA_COMPAT", "PYTHONPATH")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.strip().endswith("/sterna/_names/nki/__init__.py"), done.stderr


def test_compat_is_the_same_hook():
    import _sterna_hook

    import sterna.compat

    assert sterna.compat.Finder is _sterna_hook.Finder
